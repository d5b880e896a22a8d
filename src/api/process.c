// Owns: process and thread life cycle, process figures, registered functions, questions about addresses.
// May include: base, prim, sys, heap, alloc, mimalloc.h.
// Called by: programs.
// Invariants: every function may be the first call of the process.
#include "src/api/api.h"
#include "src/heap/process.h"
#include "src/heap/query.h"
#include "src/prim/prim.h"
#include "src/sys/deferred.h"
#include "src/sys/log.h"
#include "src/sys/stats.h"

// Declared here, as in C's stdlib.h, which would be of no other use.
extern void* malloc(size_t size);
extern void free(void* p);

int mi_version(void) { return MI_MALLOC_VERSION; }
void mi_collect(bool force) { _mi_collect(force); }
void mi_collect_reduce(size_t target_thread_owned) { _mi_thread_reduce(target_thread_owned); }
size_t mi_thread_id_of(const void* p) { return _mi_thread_of(p); }
void mi_process_init(void) { _mi_process_init(); }
void mi_process_done(void) { _mi_process_done(); }
void mi_thread_init(void) { _mi_thread_init(); }
void mi_thread_done(void) { _mi_thread_done(); }
void mi_thread_set_in_threadpool(void) { _mi_tls.in_threadpool = true; }

void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs, size_t* current_rss,
                     size_t* peak_rss, size_t* current_commit, size_t* peak_commit, size_t* page_faults) {
  mi_prim_process_info_t info;
  _mi_prim_process_info(&info);
  const mi_stat_view_t committed = _mi_stat_view(&_mi_stats.committed);
  _mi_api_store(elapsed_msecs, (size_t)_mi_stats_elapsed_ms());
  _mi_api_store(user_msecs, (size_t)info.user_ms);
  _mi_api_store(system_msecs, (size_t)info.system_ms);
  _mi_api_store(current_rss, info.current_rss);
  _mi_api_store(peak_rss, info.peak_rss);
  _mi_api_store(current_commit, (size_t)committed.current);
  _mi_api_store(peak_commit, (size_t)committed.peak);
  _mi_api_store(page_faults, info.page_faults);
}

void mi_process_info_print_out(mi_output_fun* out, void* arg) { _mi_stats_print_process(out, arg); }
void mi_process_info_print(void) { _mi_stats_print_process(NULL, NULL); }

bool mi_is_in_heap_region(const void* p) { return _mi_is_in_heap(p); }
bool mi_check_owned(const void* p) { return _mi_is_in_heap(p); }

// Only a call tells: which malloc the program got is up to the linker and the order in which libraries were loaded.
bool mi_is_redirected(void) {
  const int saved_errno = errno;
  void* const p = malloc(1);
  const bool redirected = _mi_is_in_heap(p);
  free(p);
  errno = saved_errno;
  return redirected;
}

void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) {
  _mi_deferred_register(deferred_free, arg);
}

void mi_register_output(mi_output_fun* out, void* arg) { _mi_log_register_output(out, arg); }
void mi_register_error(mi_error_fun* fun, void* arg) { _mi_log_register_error(fun, arg); }
