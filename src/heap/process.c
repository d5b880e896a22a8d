// Owns: process start and end, thread start and end, fork.
// May include: base, prim, sys, region, guarded, profile, heap.
// Called by: heap, alloc, api, the loader, the C library's thread and fork hooks.
// Invariants: the core is up before anything is called that may allocate; the fork handlers know every lock, in the order
// in which they may nest: late theap, heaps, heap, zero sizes, singles, unwrapped, slots, arenas, purge,
// page map, guarded records, profile, metadata, random, configuration.
#include "src/heap/process.h"

#include "src/guarded/record.h"
#include "src/guarded/report.h"
#include "src/guarded/slots.h"
#include "src/heap/block.h"
#include "src/heap/heap-stats.h"
#include "src/heap/leaks.h"
#include "src/heap/orphan.h"
#include "src/heap/pin.h"
#include "src/heap/profiled.h"
#include "src/heap/sample.h"
#include "src/heap/single.h"
#include "src/heap/zero-size.h"
#include "src/prim/prim.h"
#include "src/profile/unwrapped.h"
#include "src/region/arena-program.h"
#include "src/region/arena-quarantine.h"
#include "src/region/meta.h"
#include "src/sys/deferred.h"
#include "src/sys/hardening.h"
#include "src/sys/lock.h"
#include "src/sys/log.h"
#include "src/sys/options.h"
#include "src/sys/random.h"
#include "src/sys/report-file.h"
#include "src/sys/sealed.h"
#include "src/sys/stats.h"

static mi_lock_t mi_init_lock;
static _Atomic(bool) mi_is_initialised;
static _Atomic(bool) mi_hooks_installed;
static _Atomic(bool) mi_is_closed;

// Thread end. What destructors of others still allocate and free after this is served by the late theap: to stay for a
// later round would lose the theap of a thread whose first allocation is in its last rounds.
static void mi_thread_on_exit(void* arg) {
  (void)arg;
  _mi_thread_done();
}

static void mi_fork_prepare(void) {
  _mi_late_fork_prepare();
  _mi_heaps_fork_prepare();
  _mi_zero_size_fork_prepare();
  _mi_singles_fork_prepare();
  _mi_unwrapped_fork_prepare();
  _mi_slots_fork_prepare();
  _mi_arenas_fork_prepare();
  _mi_page_map_fork_prepare();
  _mi_guarded_fork_prepare();
  _mi_profile_fork_prepare();
  _mi_meta_fork_prepare();
  _mi_random_fork_prepare();
  _mi_sealed_fork_prepare();
  _mi_lock_fork_begin();
}

static bool mi_fork_release(bool in_child) {
  _mi_lock_fork_end();
  _mi_sealed_fork_release(in_child);
  _mi_random_fork_release(in_child);
  _mi_meta_fork_release(in_child);
  _mi_profile_fork_release(in_child);
  _mi_guarded_fork_release(in_child);
  _mi_page_map_fork_release(in_child);
  _mi_arenas_fork_release(in_child);
  _mi_slots_fork_release(in_child);
  _mi_unwrapped_fork_release(in_child);
  _mi_singles_fork_release(in_child);
  _mi_zero_size_fork_release(in_child);
  const bool left_behind = _mi_heaps_fork_release(in_child);
  _mi_late_fork_release(in_child);
  return left_behind;
}

static void mi_fork_parent(void) { (void)mi_fork_release(false); }

static void mi_fork_child(void) {
  if (mi_fork_release(true) || _mi_orphans_pending()) {
    mi_atomic_store_relaxed(&_mi_stats.threads.current, _mi_tls.own != NULL ? 1 : 0);
    _mi_orphans_begin(_mi_tls.own_tid, _mi_theap_next_tid());
  }
  // The next call of this thread gives its lists new keys.
  _mi_thread_disarm();
  for (mi_theap_t* theap = _mi_tls.own; MI_HAS_QUARANTINE && theap != NULL; theap = theap->next_in_thread) {
    _mi_quarantine_fork_child(theap);
  }
  _mi_pins_fork_child();
  _mi_guarded_report_fork_child();
  _mi_sample_fork_child();
}

// How many bits addresses may have: more than the system gives by itself is for memory that the program lends.
static mi_cold void mi_limit_address_bits(void) {
  enum { MI_VABITS_MIN = 36,
         MI_VABITS_MAX = 57 };
  if (sizeof(void*) > 4 && _mi_option_get(mi_option_max_vabits) > 0) {
    _mi_os_config.address_bits = (unsigned)_mi_option_get_clamp(mi_option_max_vabits, MI_VABITS_MIN, MI_VABITS_MAX);
  }
}

// After the core is up, since the C library may allocate for it.
static mi_cold void mi_install_fork_hooks(void) {
  if (!mi_atomic_exchange_acq_rel(&mi_hooks_installed, true)) {
    (void)_mi_prim_fork_hooks(&mi_fork_prepare, &mi_fork_parent, &mi_fork_child);
  }
}

mi_cold bool _mi_process_init(void) {
  // Acquire pairs with the release below: who sees the flag sees the core.
  if (mi_likely(mi_atomic_load_acquire(&mi_is_initialised))) {
    return true;
  }
  _mi_lock_acquire(&mi_init_lock);
  if (!mi_atomic_load_relaxed(&mi_is_initialised)) {
    _mi_os_init();
    _mi_options_load();
    (void)_mi_memory_events_start();
    _mi_guarded_draw_process();
    mi_limit_address_bits();
    if (MI_HAS_ENCODED_LISTS || MI_HAS_RANDOM_ORDER || MI_HAS_RANDOM_PLACE || MI_HAS_RANDOM_LARGE || MI_HAS_LARGE_QUARANTINE ||
        MI_HAS_PADDING || MI_HAS_QUARANTINE || MI_HAS_ZERO_SIZE || MI_HAS_GUARDED) {
      // The system is asked for randomness now: later a sandbox may forbid it.
      mi_random_t probe = {0};
      _mi_random_init(&probe);
    }
    // Before the first thread can have a theap, so that each one's end is seen. Makes no call that could allocate.
    (void)_mi_prim_thread_on_exit_init(&mi_thread_on_exit);
    if (_mi_page_map_init(_mi_os_config.address_bits, MI_TID_NONE)) {
      _mi_arenas_start();
      mi_atomic_store_release(&mi_is_initialised, true);
    }
  }
  _mi_lock_release(&mi_init_lock);
  if (!mi_atomic_load_relaxed(&mi_is_initialised)) {
    return false;
  }
  mi_install_fork_hooks();
  return true;
}

void _mi_thread_init(void) {
  // A thread that was done and says that it begins again.
  if (_mi_tls.state == MI_THREAD_DONE) {
    _mi_tls.state = MI_THREAD_FRESH;
  }
  (void)_mi_theap_own();
}

void _mi_thread_done(void) {
  mi_theap_t* theap = _mi_tls.own;
  if (theap == NULL) {
    return;
  }
  // First of all the thread stops being an owner: what runs from here on is served like a thread without a theap.
  _mi_thread_disarm();
  _mi_tls.own = NULL;
  mi_atomic_store_relaxed(&_mi_tls.chosen, NULL);
  _mi_tls.own_tid = 0;
  _mi_tls.state = MI_THREAD_DONE;
  while (theap != NULL) {
    mi_theap_t* const next = theap->next_in_thread;
    _mi_theap_end(theap);
    theap = next;
  }
  _mi_stat_decrease(&_mi_stats.threads, 1);
  // What the thread gave up is pending for the system, for others to see to.
  _mi_thread_disarm();
}

static void mi_theap_collect_forced(mi_theap_t* theap) { _mi_theap_collect(theap, true); }

static void mi_theap_collect_gently(mi_theap_t* theap) { _mi_theap_collect(theap, false); }

void _mi_collect(bool force) {
  _mi_deferred_free(force);
  while (force && _mi_orphans_adopt()) {
  }
  _mi_thread_prune();
  _mi_thread_each_theap(force ? &mi_theap_collect_forced : &mi_theap_collect_gently);
  if (force) {
    _mi_arena_held_release();
    _mi_slots_release();
    _mi_arenas_purge(0, true);
  }
}

static size_t mi_theap_owned(const mi_theap_t* theap) {
  size_t slices = 0;
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    slices += theap->queues[bin].count * _mi_bin_page_slices(bin);
  }
  return slices * MI_SLICE_SIZE;
}

static size_t mi_thread_owned(void) {
  size_t owned = 0;
  for (const mi_theap_t* theap = _mi_tls.own; theap != NULL; theap = theap->next_in_thread) {
    owned += mi_theap_owned(theap);
  }
  return owned;
}

// Collected already. The largest pages go first: few of them make the difference.
static void mi_theap_reduce(mi_theap_t* theap, size_t owned, size_t target) {
  for (unsigned bin = MI_BIN_LAST; bin >= MI_BIN_FIRST; bin--) {
    while (owned > target && theap->queues[bin].last != NULL) {
      mi_page_t* const page = theap->queues[bin].last;
      owned -= _mi_bin_page_slices(bin) * MI_SLICE_SIZE;
      _mi_queue_remove(theap, page);
      _mi_page_abandon(page);
    }
  }
}

void _mi_thread_reduce(size_t target) {
  _mi_thread_prune();
  if (mi_thread_owned() <= target || _mi_heaps_are_busy_here()) {
    return;
  }
  _mi_thread_each_theap(&mi_theap_collect_forced);
  _mi_heaps_lock();
  for (mi_theap_t* theap = _mi_tls.own; theap != NULL; theap = theap->next_in_thread) {
    const size_t owned = mi_thread_owned();
    if (owned > target && mi_atomic_load_relaxed(&theap->heap) != NULL) {
      mi_theap_reduce(theap, owned, target);
    }
  }
  _mi_heaps_unlock();
  _mi_thread_disarm();
}

bool _mi_process_is_closed(void) { return mi_atomic_load_relaxed(&mi_is_closed); }

static bool mi_is_ours(const void* p) { return _mi_page_of_any(p) != NULL; }

mi_cold void _mi_process_done(void) {
  static _Atomic(bool) done;
  if (mi_atomic_exchange_acq_rel(&done, true)) {
    return;
  }
  // The library's code may be gone when the next thread ends.
  _mi_prim_thread_on_exit_done();
  _mi_profiled_process_done();
  if (_mi_option_is_enabled(mi_option_show_leaks)) {
    _mi_leaks_print();
  }
  if (_mi_option_is_enabled(mi_option_show_stats) || _mi_option_is_enabled(mi_option_verbose)) {
    mi_stats_t stats;
    _mi_heap_stats_read(NULL, &stats);
    _mi_stats_print(&stats, "the process", true, NULL, NULL);
  }
  // The library is unloaded and the process goes on: what nobody uses would be lost for good.
  // Not so where it is the process's malloc: then it was there from the start and stays to the end.
  const bool unloaded = !_mi_prim_is_exiting() && !_mi_prim_c_library_asks(&mi_is_ours);
  const bool destroyed = (_mi_option_is_enabled(mi_option_destroy_on_exit) && _mi_heaps_destroy_all(false)) ||
      (unloaded && _mi_heaps_destroy_all(true));
  mi_atomic_store_relaxed(&mi_is_closed, destroyed);
}

// What never changes is sealed by the system where it need never be released: in the process's malloc.
static mi_cold mi_sealed_mseal_t mi_process_wants_mseal(void) {
  const long option = _mi_option_get(mi_option_mseal);
  if (option <= 0) {
    return MI_MSEAL_OFF;
  }
  if (!_mi_prim_may_try_calls()) {
    return MI_MSEAL_UNAVAILABLE;
  }
  if (_mi_option_is_enabled(mi_option_destroy_on_exit)) {
    return MI_MSEAL_DESTROY;
  }
  if (!_mi_prim_is_never_unloaded() && !_mi_prim_c_library_asks(&mi_is_ours)) {
    return MI_MSEAL_UNLOADABLE;
  }
  return option > 1 ? MI_MSEAL_ALWAYS : MI_MSEAL_ON;
}

// Now, and when more comes to it only if option mseal says so: the process may go into a sandbox that punishes calls which it
// does not know.
static mi_cold void mi_process_seal(bool is_ready) {
  _mi_sealed_start(is_ready, mi_process_wants_mseal());
  if (_mi_sealed_mseal_is_on()) {
    _mi_os_seal_permanent();
    _mi_page_map_seal();
    _mi_arenas_seal();
  }
}

// The first of the program's constructors and the last of its destructors, as far as the linker lets one choose.
__attribute__((constructor(101))) static void mi_process_load(void) {
  const bool is_ready = _mi_process_init();
  // The environment may not have been readable at the first allocation.
  _mi_options_load();
  if (_mi_memory_events_start()) {
    _mi_threads_disarm();
  }
  _mi_profiled_process_start();
  _mi_guarded_draw_process();
  _mi_sample_changed();
  if (is_ready) {
    _mi_arenas_start();
  }
  _mi_report_file_open();
  _mi_guarded_report_start();
  _mi_prim_exit_watch(_mi_os_page_size());
  mi_process_seal(is_ready);
  if (_mi_option_is_enabled(mi_option_show_hardening)) {
    _mi_hardening_print();
  }
  _mi_log_verbose("process start, %zu byte OS pages\n", _mi_os_page_size());
}

__attribute__((destructor(101))) static void mi_process_unload(void) { _mi_process_done(); }
