// Owns: the text of the crash report, who writes it, and what follows.
// May include: base, prim, sys, guarded/record.h.
// Called by: through report.h, and by the handler of faults.
// Invariants: what is decided here concerns addresses in slots of guarded blocks only; all others are left alone.
#include "src/guarded/report.h"

#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/fmt.h"
#include "src/guarded/record.h"
#include "src/prim/prim.h"
#include "src/sys/options.h"
#include "src/sys/os.h"
#include "src/sys/random.h"
#include "src/sys/report.h"

enum { MI_GUARDED_LINE = 160 };

// Notes

static void mi_guarded_list(const char* what, uintptr_t thread, const uintptr_t* calls, size_t count, bool thorough,
                            mi_report_write_t* write) {
  char line[MI_GUARDED_LINE];
  write(line, _mi_fmt(line, sizeof(line), "  %s by thread %zu:\n", what, (size_t)thread));
  _mi_report_list(calls, _mi_prim_calls_plausible(calls, count), MI_GUARDED_CALLS, thorough, write);
}

static void mi_guarded_notes(uintptr_t address, bool thorough, mi_report_write_t* write) {
  mi_guarded_record_t record;
  if (!_mi_guarded_find(address, &record)) {
    return;
  }
  mi_guarded_list("allocated", record.alloc_thread, record.alloc_calls, record.alloc_count, thorough, write);
  if (record.state == MI_GUARDED_FREED) {
    mi_guarded_list("freed", record.free_thread, record.free_calls, record.free_count, thorough, write);
  }
  char line[MI_GUARDED_LINE];
  write(line, _mi_fmt(line, sizeof(line), "  to repeat: MIMALLOC_GUARDED_SAMPLE_RATE=%ld MIMALLOC_GUARDED_SAMPLE_SEED=%zu\n", _mi_option_get(mi_option_guarded_sample_rate), (size_t)record.seed));
}

// The report

typedef struct mi_guarded_place_s {
  mi_violation_t kind;
  size_t distance;
  const char* side;
} mi_guarded_place_t;

static mi_guarded_place_t mi_guarded_place(uintptr_t address, const mi_guarded_record_t* record) {
  const uintptr_t end = record->block + record->request;
  const bool is_freed = record->state == MI_GUARDED_FREED;
  if (address < record->block) {
    return (mi_guarded_place_t){is_freed ? MI_VIOLATION_use_after_free : MI_VIOLATION_underflow, record->block - address, "before"};
  }
  if (address >= end) {
    return (mi_guarded_place_t){is_freed ? MI_VIOLATION_use_after_free : MI_VIOLATION_overflow, address - end + 1,
                                "beyond the end of"};
  }
  return (mi_guarded_place_t){MI_VIOLATION_use_after_free, address - record->block, "into"};
}

static void mi_guarded_say(const mi_prim_fault_t* fault, const mi_guarded_record_t* record, bool ends) {
  static const char* const accesses[] = {
      [MI_PRIM_ACCESS_UNKNOWN] = "accessed",
      [MI_PRIM_ACCESS_READ] = "read",
      [MI_PRIM_ACCESS_WRITE] = "written",
      [MI_PRIM_ACCESS_EXECUTE] = "executed",
  };
  const mi_guarded_place_t place = mi_guarded_place(fault->address, record);
  _mi_report_fault(place.kind, fault, ends, "pointer %p is %zu byte%s %s a %sguarded block of %zu byte%s at %p, %s by thread %zu",
                   (void*)fault->address, place.distance, place.distance == 1 ? "" : "s", place.side,
                   record->state == MI_GUARDED_FREED ? "freed " : "", (size_t)record->request, record->request == 1 ? "" : "s",
                   (void*)record->block, accesses[fault->access], (size_t)_mi_prim_os_thread_id());
}

// So many threads are writing a report.
static _Atomic(uint32_t) mi_guarded_writers;

// Until the reports of other threads are out: the process is about to end. There may be no clock.
static void mi_guarded_wait_for_others(void) {
  enum { YIELDS_MAX = 5000 };
  const int64_t begun = _mi_prim_clock_ms();
  for (int i = 0; i < YIELDS_MAX && mi_atomic_load_relaxed(&mi_guarded_writers) != 0; i++) {
    if (_mi_prim_clock_ms() - begun >= MI_GUARDED_PATIENCE_MS) {
      return;
    }
    _mi_prim_yield();
  }
}

// Makes the OS page accessible, by whatever means it was closed. What the slot is used for next, it is closed for again.
static bool mi_guarded_open(uintptr_t address) {
  const size_t page_size = _mi_os_page_size();
  void* const page = (void*)_mi_align_down(address, page_size);
  const bool was_light = _mi_os_config.has_light_guards && _mi_prim_unguard(page, page_size) == 0;
  return _mi_prim_unprotect(page, page_size) == 0 || was_light;
}

static bool mi_guarded_on_fault(const mi_prim_fault_t* fault) {
  mi_guarded_record_t record;
  if (!_mi_guarded_find(fault->address, &record) ||
      (record.state == MI_GUARDED_LIVE && fault->address - record.block < record.request)) {
    return false;
  }
  const bool ends = !_mi_option_is_enabled(mi_option_guarded_recover);
  if (_mi_guarded_claim_report(fault->address)) {
    mi_atomic_add_relaxed(&mi_guarded_writers, 1);
    mi_guarded_say(fault, &record, ends);
    mi_atomic_sub_relaxed(&mi_guarded_writers, 1);
  }
  if (ends) {
    mi_guarded_wait_for_others();
  }
  return !ends && mi_guarded_open(fault->address);
}

// The start

void _mi_guarded_draw_process(void) {
  static _Atomic(bool) drawn;
  const long fraction = _mi_option_get(mi_option_guarded_fraction);
  if (fraction <= 1 || mi_atomic_exchange_relaxed(&drawn, true)) {
    return;
  }
  mi_random_t random = {0};
  if (_mi_random_below(&random, (size_t)fraction) != 0) {
    _mi_option_set(mi_option_guarded_sample_rate, 0);
  }
}

void _mi_guarded_report_arm(void) {
  static _Atomic(bool) armed;
  if (mi_unlikely(!mi_atomic_load_relaxed(&armed)) && !mi_atomic_exchange_acq_rel(&armed, true) &&
      _mi_option_is_enabled(mi_option_guarded_report)) {
    (void)_mi_prim_fault_hook(&mi_guarded_on_fault);
  }
}

void _mi_guarded_report_start(void) {
  _mi_report_set_notes(&mi_guarded_notes);
  if (MI_HAS_GUARDED && _mi_option_get(mi_option_guarded_sample_rate) > 0) {
    _mi_guarded_report_arm();
  }
}

void _mi_guarded_report_fork_child(void) {
  mi_atomic_store_relaxed(&mi_guarded_writers, 0);
  _mi_prim_fault_fork_child();
}
