// Owns: the profile of the whole process, the places of all profiles and their lock, and the choice of samples.
// May include: base, prim, sys, profile.
// Called by: through profile.h.
// Invariants: tables are touched under the lock; nothing else is done under it than memory taken from the system, and given
// back to it.
#include "src/profile/profile.h"

#include <string.h>

#include "src/prim/prim.h"
#include "src/base/bits.h"
#include "src/profile/chance.h"
#include "src/profile/snapshot.h"
#include "src/profile/state.h"
#include "src/sys/lock.h"

enum {
  // Frames of this library, which stand before those of the program.
  MI_PROFILE_OWN_FRAMES = 16,
  MI_PROFILE_GAP_MAX = 1 << 30,
};

_Atomic(uint32_t) _mi_profile_count;

static struct {
  mi_lock_t lock;
  mi_profiler_t* places[MI_PROFILE_PLACES];  // of those that have a number
  uint32_t given[MI_PROFILE_PLACES];         // numbers, in each place
  mi_profiler_t all;                         // of mi_prof_start: of every heap that has no profiler of its own
} mi_profiles;

static mi_thread_local bool mi_profile_visiting;

bool _mi_profile_is_visiting(void) { return mi_profile_visiting; }

bool _mi_profile_may_enter(void) { return !mi_profile_visiting && !_mi_lock_is_mine(&mi_profiles.lock); }

bool _mi_profile_enter(void) {
  if (mi_unlikely(_mi_lock_is_mine(&mi_profiles.lock)) && !_mi_lock_is_forking()) {
    return false;
  }
  _mi_lock_acquire(&mi_profiles.lock);
  return true;
}

void _mi_profile_leave(bool entered) {
  if (entered) {
    _mi_lock_release(&mi_profiles.lock);
  }
}

// Numbers. The lock is held.

mi_profiler_t* _mi_profile_at(uint32_t number) {
  mi_profiler_t* const profiler = mi_profiles.places[number % MI_PROFILE_PLACES];
  return profiler != NULL && profiler->number == number ? profiler : NULL;
}

bool _mi_profile_is_one(const mi_profiler_t* profiler) {
  for (size_t i = 0; i < MI_PROFILE_PLACES && profiler != NULL; i++) {
    if (mi_profiles.places[i] == profiler) {
      return true;
    }
  }
  return false;
}

bool _mi_profile_give_number(mi_profiler_t* profiler) {
  // The first place is that of the profile of the whole process.
  uint32_t place = profiler == &mi_profiles.all ? 0 : 1;
  const uint32_t end = profiler == &mi_profiles.all ? 1 : MI_PROFILE_PLACES;
  while (place < end && mi_profiles.places[place] != NULL) {
    place++;
  }
  if (place == end) {
    return false;
  }
  uint32_t* const given = &mi_profiles.given[place];
  // After the last one the first again.
  *given = *given == MI_PROFILE_NUMBERS ? 1 : *given + 1;
  profiler->number = *given * MI_PROFILE_PLACES + place;
  mi_profiles.places[place] = profiler;
  (void)mi_atomic_add_relaxed(&_mi_profile_count, 1);
  return true;
}

void _mi_profile_take_number(mi_profiler_t* profiler) {
  mi_profiles.places[profiler->number % MI_PROFILE_PLACES] = NULL;
  profiler->number = 0;
  profiler->samples = false;
  (void)mi_atomic_add_relaxed(&_mi_profile_count, (uint32_t)-1);
}

// The choice of samples

// xorshift64*. Wraps: it mixes.
static mi_wraps uint64_t mi_profile_random(mi_profile_thread_t* thread) {
  uint64_t x = thread->random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  thread->random = x;
  return x * UINT64_C(2685821657736338717);
}

// From this size on a request is sampled for certain.
static bool mi_profile_is_certain(size_t rate, size_t size) { return rate <= SIZE_MAX / 2 && size + 1 >= 2 * _mi_max(rate, 1); }

// The chance that a sample falls on so many bytes.
static double mi_profile_chance_of(size_t rate, size_t size) { return size == 0 ? 0 : _mi_profile_chance((double)size / (double)rate); }

uint64_t _mi_profile_stands_for(size_t rate, size_t size) {
  return size == 0 || mi_profile_is_certain(rate, size) ? size : (uint64_t)((double)size / mi_profile_chance_of(rate, size));
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

bool _mi_profile_follow(mi_profile_thread_t* thread, uint32_t wanted, uint64_t sequence) {
  const uint32_t before = thread->number;
  const bool entered = _mi_profile_enter();
  const mi_profiler_t* profiler = wanted == MI_PROFILE_NONE ? NULL : _mi_profile_at(wanted);
  if (wanted != MI_PROFILE_NONE && (profiler == NULL || !profiler->samples)) {
    profiler = &mi_profiles.all;
  }
  thread->number = profiler != NULL && profiler->samples ? profiler->number : 0;
  if (thread->number != 0 && thread->number != before) {
    thread->rate = profiler->rate;
    thread->random = profiler->seed ^ sequence ^ UINT64_C(0x9e3779b97f4a7c15);
    // The one state that the generator does not leave.
    thread->random += thread->random == 0;
  }
  _mi_profile_leave(entered);
  return thread->number != before;
}

uint32_t _mi_profile_gap(mi_profile_thread_t* thread, size_t size) {
  if (mi_profile_is_certain(thread->rate, size)) {
    return 0;
  }
  const double gap = mi_profile_exponential(thread) * (double)thread->rate / (double)size;
  return gap < (double)MI_PROFILE_GAP_MAX ? (uint32_t)gap : MI_PROFILE_GAP_MAX;
}

bool _mi_profile_takes(mi_profile_thread_t* thread, size_t request, size_t size) {
  const size_t rate = thread->rate;
  if (request >= size || mi_profile_is_certain(rate, request)) {
    return true;
  }
  const double chance = mi_profile_is_certain(rate, size) ? 1 : mi_profile_chance_of(rate, size);
  return mi_profile_fraction(thread) * chance < mi_profile_chance_of(rate, request);
}

bool _mi_profile_hits(mi_profile_thread_t* thread, size_t request) {
  return mi_profile_is_certain(thread->rate, request) || mi_profile_fraction(thread) < mi_profile_chance_of(thread->rate, request);
}

// Records

mi_profile_name_t _mi_profile_note_alloc(uint32_t number, size_t size, const void* frame, bool* is_due) {
  *is_due = false;
  if (!_mi_profile_may_enter()) {
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
  _mi_lock_acquire(&mi_profiles.lock);
  mi_profiler_t* const profiler = _mi_profile_at(number);
  uint32_t record = 0;
  if (profiler != NULL && profiler->samples) {
    record = _mi_profile_table_add(&profiler->table, first, _mi_min(found, profiler->depth), size, profiler->accum);
    *is_due = record != 0 && profiler->writes && _mi_profiler_count(profiler, size);
  }
  _mi_lock_release(&mi_profiles.lock);
  return record == 0 ? 0 : ((uint64_t)number << 32) | record;
}

void _mi_profile_note_free(mi_profile_name_t name) {
  if (!_mi_profile_is_on()) {
    return;
  }
  const bool entered = _mi_profile_enter();
  mi_profiler_t* const profiler = _mi_profile_at((uint32_t)(name >> 32));
  if (profiler != NULL) {
    const size_t size = _mi_profile_table_remove(&profiler->table, (uint32_t)name);
    if (profiler->writes) {
      _mi_profiler_uncount(profiler, size);
    }
  }
  _mi_profile_leave(entered);
}

void _mi_profile_note_resize(mi_profile_name_t name, size_t size) {
  if (!_mi_profile_is_on()) {
    return;
  }
  const bool entered = _mi_profile_enter();
  mi_profiler_t* const profiler = _mi_profile_at((uint32_t)(name >> 32));
  if (profiler != NULL) {
    const size_t before = _mi_profile_table_resize(&profiler->table, (uint32_t)name, size);
    if (profiler->writes) {
      _mi_profiler_recount(profiler, before, size);
    }
  }
  _mi_profile_leave(entered);
}

// Start and stop

void _mi_profile_set_up(mi_profiler_t* profiler, const mi_profile_settings_t* settings) {
  profiler->table.budget = settings->budget;
  profiler->accum = settings->accum;
  profiler->depth = _mi_min(_mi_max(settings->depth, 1), MI_PROFILE_DEPTH_MAX);
  profiler->rate = settings->rate;
  profiler->seed = settings->seed;
}

bool _mi_profile_start(const mi_profile_settings_t* settings) {
  if (!_mi_profile_may_enter()) {
    return false;
  }
  _mi_lock_acquire(&mi_profiles.lock);
  const bool started = _mi_profile_give_number(&mi_profiles.all);
  if (started) {
    _mi_profile_set_up(&mi_profiles.all, settings);
    mi_profiles.all.samples = true;
  }
  _mi_lock_release(&mi_profiles.lock);
  return started;
}

void _mi_profile_stop(void) {
  if (!_mi_profile_may_enter()) {
    return;
  }
  _mi_lock_acquire(&mi_profiles.lock);
  if (mi_profiles.all.number != 0) {
    _mi_profile_take_number(&mi_profiles.all);
    _mi_profile_table_end(&mi_profiles.all.table);
  }
  _mi_lock_release(&mi_profiles.lock);
}

void _mi_profile_reset(void) {
  if (!_mi_profile_may_enter()) {
    return;
  }
  _mi_lock_acquire(&mi_profiles.lock);
  _mi_profile_table_reset(&mi_profiles.all.table);
  _mi_lock_release(&mi_profiles.lock);
}

bool _mi_profile_runs(void) {
  const bool entered = _mi_profile_enter();
  const bool runs = mi_profiles.all.number != 0;
  _mi_profile_leave(entered);
  return runs;
}

// Answers

void _mi_profile_stats(mi_prof_stats_t* stats) {
  const bool entered = _mi_profile_enter();
  const mi_profile_table_t* const table = &mi_profiles.all.table;
  stats->enabled = mi_profiles.all.number != 0;
  stats->accum = stats->enabled && mi_profiles.all.accum;
  stats->sample_rate = stats->enabled ? mi_profiles.all.rate : 0;
  stats->live_samples = table->sum.live_objects;
  stats->live_bytes = table->sum.live_bytes;
  stats->accum_samples = table->sum.accum_objects;
  stats->accum_bytes = table->sum.accum_bytes;
  stats->unique_stacks = table->stacks;
  stats->arena_committed = table->committed;
  stats->stack_table_overflows = table->overflows;
  stats->dropped_samples = table->dropped;
  _mi_profile_leave(entered);
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

mi_prof_snapshot_t* _mi_profile_copy(const mi_profiler_t* profiler) {
  const mi_profile_table_t* const table = &profiler->table;
  size_t count = 0;
  size_t frames = 0;
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(table, stack)) != NULL;) {
    const bool shown = !_mi_profile_counts_are_zero(&stack->counts);
    count += shown;
    frames += shown ? stack->depth : 0;
  }
  mi_prof_snapshot_t* const snapshot =
      _mi_profile_scratch(sizeof(*snapshot) + count * sizeof(snapshot->samples[0]) + frames * sizeof(void*));
  if (snapshot == NULL) {
    return NULL;
  }
  snapshot->rate = profiler->rate;
  snapshot->dropped = table->dropped;
  snapshot->overflows = table->overflows;
  snapshot->frames = frames;
  uintptr_t* calls = (uintptr_t*)(void*)&snapshot->samples[count];
  for (mi_profile_stack_t* stack = NULL; (stack = _mi_profile_table_next(table, stack)) != NULL;) {
    if (_mi_profile_counts_are_zero(&stack->counts)) {
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

mi_prof_snapshot_t* _mi_profile_snapshot(void) {
  if (!_mi_profile_may_enter()) {
    return NULL;
  }
  _mi_lock_acquire(&mi_profiles.lock);
  mi_prof_snapshot_t* const snapshot = mi_profiles.all.number != 0 ? _mi_profile_copy(&mi_profiles.all) : NULL;
  _mi_lock_release(&mi_profiles.lock);
  return snapshot;
}

void _mi_profile_snapshot_free(mi_prof_snapshot_t* snapshot) { _mi_profile_scratch_free(snapshot); }

// Fork

void _mi_profile_fork_prepare(void) { _mi_lock_acquire(&mi_profiles.lock); }

void _mi_profile_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_profiles.lock);
  } else {
    _mi_lock_release(&mi_profiles.lock);
  }
}
