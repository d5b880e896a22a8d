// Owns: the state of the profile, its lock, and the choice of samples.
// May include: base, prim, sys, profile.
// Called by: through profile.h.
// Invariants: the table is touched under the lock; nothing else is done under it than memory taken from the system, and given
// back to it.
#include "src/profile/profile.h"

#include <string.h>

#include "src/prim/prim.h"
#include "src/base/bits.h"
#include "src/profile/chance.h"
#include "src/profile/snapshot.h"
#include "src/sys/lock.h"

enum {
  // Frames of this library, which stand before those of the program.
  MI_PROFILE_OWN_FRAMES = 16,
  MI_PROFILE_GAP_MAX = 1 << 30,
};

_Atomic(uint32_t) _mi_profile_running;

static struct {
  mi_lock_t lock;
  mi_profile_table_t table;
  uint32_t generation;  // of the last profile
  bool accum;
  size_t depth;
  _Atomic(size_t) rate;  // relaxed: who sees those of two profiles mixed takes a sample earlier or later
  _Atomic(uint64_t) seed;
} mi_profile;

static mi_thread_local bool mi_profile_visiting;

bool _mi_profile_is_visiting(void) { return mi_profile_visiting; }

// A message from under the lock may call a function of the program's, which allocates and frees. Returns whether the lock is to
// be released.
static bool mi_profile_enter(void) {
  if (mi_unlikely(_mi_lock_is_mine(&mi_profile.lock)) && !_mi_lock_is_forking()) {
    return false;
  }
  _mi_lock_acquire(&mi_profile.lock);
  return true;
}

static void mi_profile_leave(bool entered) {
  if (entered) {
    _mi_lock_release(&mi_profile.lock);
  }
}

static bool mi_profile_runs(void) { return mi_atomic_load_relaxed(&_mi_profile_running) != 0; }

// The choice of samples

// xorshift64*.
static uint64_t mi_profile_random(mi_profile_thread_t* thread) {
  uint64_t x = thread->random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  thread->random = x;
  return x * UINT64_C(2685821657736338717);
}

// From this size on a request is sampled for certain.
static bool mi_profile_is_certain(size_t size) {
  const size_t rate = mi_atomic_load_relaxed(&mi_profile.rate);
  return rate <= SIZE_MAX / 2 && size + 1 >= 2 * _mi_max(rate, 1);
}

// The chance that a sample falls on so many bytes.
static double mi_profile_chance_of(size_t size) {
  return size == 0 ? 0 : _mi_profile_chance((double)size / (double)mi_atomic_load_relaxed(&mi_profile.rate));
}

// A number from 0 to below 1.
static double mi_profile_fraction(mi_profile_thread_t* thread) {
  return (double)(mi_profile_random(thread) >> 11) / (double)(UINT64_C(1) << 53);
}

// Minus the natural logarithm of a number between 0 and 1: exponentially distributed with mean 1.
static double mi_profile_exponential(mi_profile_thread_t* thread) {
  const uint64_t random = mi_profile_random(thread) | 1;
  const unsigned shift = 63 - _mi_bits_log2_64(random);
  const double mantissa = (double)(random << shift) / (double)(UINT64_C(1) << 63);
  // The logarithm of the mantissa, which lies between 1 and 2, by the series of the inverse hyperbolic tangent.
  const double t = (mantissa - 1) / (mantissa + 1);
  const double t2 = t * t;
  const double log = 2 * t * (1 + t2 * (1. / 3 + t2 * (1. / 5 + t2 * (1. / 7 + t2 * (1. / 9 + t2 / 11)))));
  return (shift + 1) * 0.69314718055994531 - log;
}

bool _mi_profile_is_of(const mi_profile_thread_t* thread) {
  return thread->generation == mi_atomic_load_relaxed(&_mi_profile_running);
}

void _mi_profile_renew(mi_profile_thread_t* thread, uint64_t sequence) {
  // Acquire pairs with the release of the start.
  thread->generation = mi_atomic_load_acquire(&_mi_profile_running);
  thread->random = mi_atomic_load_relaxed(&mi_profile.seed) ^ sequence ^ UINT64_C(0x9e3779b97f4a7c15);
  // The one state that the generator does not leave.
  thread->random += thread->random == 0;
}

uint32_t _mi_profile_gap(mi_profile_thread_t* thread, size_t size) {
  if (mi_profile_is_certain(size)) {
    return 0;
  }
  const double gap = mi_profile_exponential(thread) * (double)mi_atomic_load_relaxed(&mi_profile.rate) / (double)size;
  return gap < (double)MI_PROFILE_GAP_MAX ? (uint32_t)gap : MI_PROFILE_GAP_MAX;
}

bool _mi_profile_takes(mi_profile_thread_t* thread, size_t request, size_t size) {
  if (request >= size || mi_profile_is_certain(request)) {
    return true;
  }
  const double chance = mi_profile_is_certain(size) ? 1 : mi_profile_chance_of(size);
  return mi_profile_fraction(thread) * chance < mi_profile_chance_of(request);
}

bool _mi_profile_hits(mi_profile_thread_t* thread, size_t request) {
  return mi_profile_is_certain(request) || mi_profile_fraction(thread) < mi_profile_chance_of(request);
}

// Records

static mi_profile_name_t mi_profile_name(uint32_t record) {
  return record == 0 ? 0 : ((uint64_t)mi_profile.generation << 32) | record;
}

// The lock is held: the record's number, if it is of the profile that runs.
static uint32_t mi_profile_record_of(mi_profile_name_t name) {
  return mi_profile_runs() && mi_profile.generation == name >> 32 ? (uint32_t)name : 0;
}

mi_profile_name_t _mi_profile_note_alloc(size_t size, uint32_t scope, const void* frame) {
  if (mi_profile_visiting || _mi_lock_is_mine(&mi_profile.lock)) {
    return 0;
  }
  uintptr_t calls[MI_PROFILE_DEPTH_MAX + MI_PROFILE_OWN_FRAMES];
  size_t found = _mi_prim_backtrace(frame, calls, MI_PROFILE_DEPTH_MAX + MI_PROFILE_OWN_FRAMES);
  const uintptr_t* first = calls;
  while (found > 0 && first < calls + MI_PROFILE_OWN_FRAMES && _mi_prim_is_own_library(*first)) {
    first++;
    found--;
  }
  // As the program's return addresses.
  for (size_t i = 0; i < MI_PROFILE_DEPTH_MAX + MI_PROFILE_OWN_FRAMES && i < found + (size_t)(first - calls); i++) {
    calls[i]++;
  }
  _mi_lock_acquire(&mi_profile.lock);
  const uint32_t record = !mi_profile_runs()
      ? 0
      : _mi_profile_table_add(&mi_profile.table, scope, first, _mi_min(found, mi_profile.depth), size, mi_profile.accum);
  const mi_profile_name_t name = mi_profile_name(record);
  _mi_lock_release(&mi_profile.lock);
  return name;
}

void _mi_profile_note_free(mi_profile_name_t name) {
  if (!mi_profile_runs()) {
    return;
  }
  const bool entered = mi_profile_enter();
  const uint32_t record = mi_profile_record_of(name);
  if (record != 0) {
    _mi_profile_table_remove(&mi_profile.table, record);
  }
  mi_profile_leave(entered);
}

void _mi_profile_note_resize(mi_profile_name_t name, size_t size) {
  if (!mi_profile_runs()) {
    return;
  }
  const bool entered = mi_profile_enter();
  const uint32_t record = mi_profile_record_of(name);
  if (record != 0) {
    _mi_profile_table_resize(&mi_profile.table, record, size);
  }
  mi_profile_leave(entered);
}

// Start and stop

bool _mi_profile_start(const mi_profile_settings_t* settings) {
  if (mi_profile_visiting || _mi_lock_is_mine(&mi_profile.lock)) {
    return false;
  }
  _mi_lock_acquire(&mi_profile.lock);
  const bool started = !mi_profile_runs();
  if (started) {
    mi_profile.table.budget = settings->budget;
    mi_profile.accum = settings->accum;
    mi_profile.depth = _mi_min(_mi_max(settings->depth, 1), MI_PROFILE_DEPTH_MAX);
    mi_atomic_store_relaxed(&mi_profile.rate, settings->rate);
    mi_atomic_store_relaxed(&mi_profile.seed, settings->seed);
    mi_profile.generation += mi_profile.generation == UINT32_MAX ? 2 : 1;
    mi_atomic_store_release(&_mi_profile_running, mi_profile.generation);
  }
  _mi_lock_release(&mi_profile.lock);
  return started;
}

void _mi_profile_stop(void) {
  if (mi_profile_visiting || _mi_lock_is_mine(&mi_profile.lock)) {
    return;
  }
  _mi_lock_acquire(&mi_profile.lock);
  mi_atomic_store_relaxed(&_mi_profile_running, 0);
  _mi_profile_table_end(&mi_profile.table);
  _mi_lock_release(&mi_profile.lock);
}

void _mi_profile_reset(void) {
  if (mi_profile_visiting || _mi_lock_is_mine(&mi_profile.lock)) {
    return;
  }
  _mi_lock_acquire(&mi_profile.lock);
  _mi_profile_table_reset(&mi_profile.table);
  _mi_lock_release(&mi_profile.lock);
}

// Answers

void _mi_profile_stats(mi_prof_stats_t* stats) {
  const bool entered = mi_profile_enter();
  const mi_profile_table_t* const table = &mi_profile.table;
  stats->enabled = mi_profile_runs();
  stats->accum = stats->enabled && mi_profile.accum;
  stats->sample_rate = stats->enabled ? mi_atomic_load_relaxed(&mi_profile.rate) : 0;
  stats->live_samples = table->sum.live_objects;
  stats->live_bytes = table->sum.live_bytes;
  stats->accum_samples = table->sum.accum_objects;
  stats->accum_bytes = table->sum.accum_bytes;
  stats->unique_stacks = table->stacks;
  stats->arena_committed = table->committed;
  stats->stack_table_overflows = table->overflows;
  stats->dropped_samples = table->dropped;
  mi_profile_leave(entered);
}

bool _mi_profile_visit(const mi_prof_snapshot_t* snapshot, mi_prof_visit_fun* visitor, void* arg) {
  if (mi_profile_visiting || snapshot == NULL || visitor == NULL) {
    return false;
  }
  mi_profile_visiting = true;
  for (size_t i = 0; i < snapshot->count && visitor(&snapshot->samples[i], arg); i++) {
  }
  mi_profile_visiting = false;
  return true;
}

typedef struct mi_profile_module_visit_s {
  mi_prof_module_visit_fun* visitor;
  void* arg;
} mi_profile_module_visit_t;

static bool mi_profile_visit_module(const mi_prim_mapped_t* mapped, void* arg) {
  const mi_profile_module_visit_t* const visit = arg;
  const mi_prof_module_info_t info = {mapped->path, mapped->base, mapped->size};
  return visit->visitor(&info, visit->arg);
}

bool _mi_profile_visit_modules(mi_prof_module_visit_fun* visitor, void* arg) {
  if (mi_profile_visiting || visitor == NULL) {
    return false;
  }
  mi_profile_module_visit_t visit = {visitor, arg};
  mi_profile_visiting = true;
  const bool done = _mi_prim_modules_visit(&mi_profile_visit_module, &visit);
  mi_profile_visiting = false;
  return done;
}

// Snapshots

typedef struct mi_profile_scratch_s {
  mi_os_block_t os;
} mi_profile_scratch_t;

enum { MI_PROFILE_SCRATCH_HEAD = 64 };
_Static_assert(sizeof(mi_profile_scratch_t) <= MI_PROFILE_SCRATCH_HEAD, "there is room for what gives the memory back");

void* _mi_profile_scratch(size_t size) {
  const size_t page = _mi_os_page_size();
  mi_os_block_t os;
  uint8_t* const p = _mi_os_reserve_aligned(_mi_align_up(size + MI_PROFILE_SCRATCH_HEAD, page), page, 0, true, &os);
  if (p == NULL) {
    return NULL;
  }
  ((mi_profile_scratch_t*)(void*)p)->os = os;
  return p + MI_PROFILE_SCRATCH_HEAD;
}

void _mi_profile_scratch_free(void* p) {
  if (p != NULL) {
    mi_os_block_t os = ((mi_profile_scratch_t*)(void*)((uint8_t*)p - MI_PROFILE_SCRATCH_HEAD))->os;
    _mi_os_release(&os);
  }
}

static bool mi_profile_is_shown(const mi_profile_stack_t* stack, int64_t scope) {
  return !_mi_profile_counts_are_zero(&stack->counts) && (scope == MI_PROFILE_SCOPE_ANY || scope == stack->scope);
}

// The lock is held.
static mi_prof_snapshot_t* mi_profile_copy(const mi_profile_table_t* table, int64_t scope) {
  size_t count = 0;
  size_t frames = 0;
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(table, stack)) != NULL;) {
    count += mi_profile_is_shown(stack, scope);
    frames += mi_profile_is_shown(stack, scope) ? stack->depth : 0;
  }
  mi_prof_snapshot_t* const snapshot =
      _mi_profile_scratch(sizeof(*snapshot) + count * sizeof(snapshot->samples[0]) + frames * sizeof(void*));
  if (snapshot == NULL) {
    return NULL;
  }
  snapshot->rate = mi_atomic_load_relaxed(&mi_profile.rate);
  snapshot->dropped = table->dropped;
  snapshot->overflows = table->overflows;
  snapshot->frames = frames;
  uintptr_t* calls = (uintptr_t*)(void*)&snapshot->samples[count];
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(table, stack)) != NULL;) {
    if (!mi_profile_is_shown(stack, scope)) {
      continue;
    }
    const mi_profile_counts_t* const counts = &stack->counts;
    memcpy(calls, stack->calls, stack->depth * sizeof(calls[0]));
    snapshot->samples[snapshot->count++] = (mi_prof_sample_info_t){
        (const void* const*)(void*)calls, stack->depth, counts->live_objects, counts->live_bytes, counts->accum_objects, counts->accum_bytes};
    calls += stack->depth;
    snapshot->sum.live_objects += counts->live_objects;
    snapshot->sum.live_bytes += counts->live_bytes;
    snapshot->sum.accum_objects += counts->accum_objects;
    snapshot->sum.accum_bytes += counts->accum_bytes;
  }
  return snapshot;
}

mi_prof_snapshot_t* _mi_profile_snapshot(int64_t scope) {
  if (mi_profile_visiting || _mi_lock_is_mine(&mi_profile.lock)) {
    return NULL;
  }
  _mi_lock_acquire(&mi_profile.lock);
  mi_prof_snapshot_t* const snapshot = mi_profile_runs() ? mi_profile_copy(&mi_profile.table, scope) : NULL;
  _mi_lock_release(&mi_profile.lock);
  return snapshot;
}

void _mi_profile_snapshot_free(mi_prof_snapshot_t* snapshot) { _mi_profile_scratch_free(snapshot); }

// Fork

void _mi_profile_fork_prepare(void) { _mi_lock_acquire(&mi_profile.lock); }

void _mi_profile_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_profile.lock);
  } else {
    _mi_lock_release(&mi_profile.lock);
  }
}
