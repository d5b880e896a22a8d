// Owns: the countdowns of theaps, the counting of lists against them, and the settings that they follow.
// May include: base, sys, guarded, heap.
// Called by: through sample.h.
// Invariants: the n-th countdown of a class depends on the seed, the thread, the class and n alone; so a seed gives the same
// samples whatever the lengths of lists and the places of blocks.
#include "src/heap/sample.h"

#include <string.h>

#include "src/heap/block.h"
#include "src/heap/heap-stats.h"
#include "src/heap/heap.h"
#include "src/heap/profiled.h"
#include "src/sys/options.h"

// 0 is that of a theap that has not looked yet.
_Atomic(uint32_t) _mi_sample_generation = 1;

static _Atomic(size_t) mi_sample_seed;
static _Atomic(uint32_t) mi_sample_forks;

size_t _mi_sample_seed(void) {
  enum { MI_SEED_BITS = 31 };
  const long chosen = _mi_option_get(mi_option_guarded_sample_seed);
  if (chosen != 0) {
    return (size_t)chosen;
  }
  size_t seed = mi_atomic_load_relaxed(&mi_sample_seed);
  if (seed == 0) {
    mi_random_t random = {0};
    // A number that a person can type.
    const size_t drawn = (size_t)(_mi_random_next(&random) >> (64 - MI_SEED_BITS)) | 1;
    seed = mi_atomic_cas_strong_acq_rel(&mi_sample_seed, &seed, drawn) ? drawn : seed;
  }
  return seed;
}

// Countdowns

// The places of the kinds in the tables.
enum { MI_SAMPLE_FOR_GUARD = 0,
       MI_SAMPLE_FOR_PROFILE = 1 };

static uint32_t mi_sample_draw(mi_theap_t* theap, unsigned kind, unsigned bin) {
  mi_sampling_t* const sampling = &theap->sampling;
  if (kind == MI_SAMPLE_FOR_PROFILE) {
    // What has no class has no size: each is looked at.
    return bin == MI_BIN_SINGLE ? MI_SAMPLER_NEVER : _mi_profile_gap(&sampling->profile, _mi_bin_block_size(bin));
  }
  mi_sampler_t numbers;
  _mi_sampler_begin(&numbers, sampling->stream, ((uint64_t)bin << 32) | sampling->drawn[bin]++);
  return _mi_sampler_gap(&numbers, sampling->rate);
}

static bool mi_sample_is_on(const mi_theap_t* theap, unsigned kind) { return ((theap->sampling.kinds >> kind) & 1) != 0; }

// Brings `left` up to date. What has been counted since is the same for all kinds, and stands in `ahead` alone.
static void mi_countdown_settle(const mi_theap_t* theap, mi_countdown_t* countdown) {
  const uint32_t count = countdown->seen - countdown->ahead;
  for (unsigned kind = 0; kind < MI_SAMPLE_KINDS; kind++) {
    countdown->left[kind] -= mi_sample_is_on(theap, kind) && countdown->left[kind] != 0 ? count : 0;
  }
  countdown->seen = countdown->ahead;
}

// Draws what is not drawn yet, and finds out what comes first.
static mi_cold void mi_countdown_look(mi_theap_t* theap, mi_countdown_t* countdown, unsigned bin) {
  mi_countdown_settle(theap, countdown);
  uint32_t least = MI_SAMPLER_NEVER;
  for (unsigned kind = 0; kind < MI_SAMPLE_KINDS; kind++) {
    if (mi_sample_is_on(theap, kind)) {
      uint32_t* const left = &countdown->left[kind];
      *left = *left == 0 ? mi_sample_draw(theap, kind, bin) + 1 : *left;
      least = *left - 1 < least ? *left - 1 : least;
    }
  }
  countdown->ahead = least;
  countdown->seen = least;
}

// One kind is to be drawn anew.
static void mi_countdown_forget(const mi_theap_t* theap, mi_countdown_t* countdown, unsigned kind) {
  mi_countdown_settle(theap, countdown);
  countdown->left[kind] = 0;
  countdown->ahead = 0;
  countdown->seen = 0;
}

// How many go before the next sampled one of any kind.
static uint32_t mi_countdown_ahead(mi_theap_t* theap, mi_countdown_t* countdown, unsigned bin) {
  if (mi_unlikely(countdown->ahead == 0)) {
    mi_countdown_look(theap, countdown, bin);
  }
  return countdown->ahead;
}

// The kinds whose countdown is at its end; each begins anew, with `before` allocations that come first.
static unsigned mi_countdown_ended(mi_theap_t* theap, mi_countdown_t* countdown, unsigned bin, uint32_t before) {
  if (mi_countdown_ahead(theap, countdown, bin) != 0) {
    return 0;
  }
  unsigned ended = 0;
  for (unsigned kind = 0; kind < MI_SAMPLE_KINDS; kind++) {
    if (mi_sample_is_on(theap, kind) && countdown->left[kind] == 1) {
      ended |= 1U << kind;
      countdown->left[kind] = mi_sample_draw(theap, kind, bin) + 1 + before;
    }
  }
  mi_countdown_look(theap, countdown, bin);
  return ended;
}

// Lists

void _mi_sample_put_down_slow(mi_theap_t* theap, const mi_page_t* page) {
  const unsigned bin = page->bin;
  if (theap->sampling.counted[bin] != page) {
    return;
  }
  theap->sampling.counted[bin] = NULL;
  if (_mi_page_is_ready(page)) {
    theap->sampling.lists[bin].ahead += _mi_page_free_length(page);
  }
}

static mi_noinline void mi_sample_follow_any(mi_theap_t* theap, unsigned bin) {
  mi_page_t* const page = theap->queues[bin].first;
  const mi_page_t* const counted = theap->sampling.counted[bin];
  if (counted != NULL && counted != page) {
    _mi_sample_put_down_slow(theap, counted);
  }
  if (page == NULL || !_mi_page_is_ready(page) || page == theap->sampling.counted[bin]) {
    return;
  }
  const uint32_t length = _mi_page_free_length(page);
  mi_countdown_t* const countdown = &theap->sampling.lists[bin];
  const uint32_t ahead = mi_countdown_ahead(theap, countdown, bin);
  if (mi_unlikely(ahead < length)) {
    _mi_page_hold_back(page, ahead);
  }
  countdown->ahead -= ahead < length ? ahead : length;
  theap->sampling.counted[bin] = page;
}

void _mi_sample_follow_slow(mi_theap_t* theap, unsigned bin) {
  mi_sampling_t* const sampling = &theap->sampling;
  const mi_page_t* const page = theap->queues[bin].first;
  // As it mostly is: no list is counted any more, and this one ends before the next sampled allocation.
  if (page != NULL && sampling->counted[bin] == NULL && _mi_page_is_ready(page)) {
    const uint32_t length = _mi_page_free_length_at_once(page);
    const uint32_t ahead = sampling->lists[bin].ahead;
    if (mi_likely(length < ahead)) {
      sampling->lists[bin].ahead = ahead - length;
      sampling->counted[bin] = page;
      return;
    }
  }
  mi_sample_follow_any(theap, bin);
}

unsigned _mi_sample_now(mi_theap_t* theap, unsigned bin) {
  if (bin <= MI_BIN_LAST) {
    const unsigned again = MI_HAS_QUARANTINE ? _mi_quarantine_sampled(theap, bin) : 0;
    if (again != 0) {
      return again | MI_SAMPLE_AGAIN;
    }
    const mi_page_t* const counted = theap->sampling.counted[bin];
    if (counted != NULL && _mi_page_is_ready(counted)) {
      return 0;
    }
    theap->sampling.counted[bin] = NULL;
  }
  return mi_countdown_ended(theap, &theap->sampling.lists[bin], bin, 1);
}

void _mi_sample_pass(mi_theap_t* theap, unsigned bin) {
  mi_countdown_t* const countdown = &theap->sampling.lists[bin];
  countdown->ahead -= mi_countdown_ahead(theap, countdown, bin) != 0;
}

void _mi_sample_lend(mi_theap_t* theap, unsigned bin) {
  mi_countdown_t* const countdown = &theap->sampling.lists[bin];
  countdown->ahead += theap->sampling.counted[bin] == NULL && countdown->ahead != MI_SAMPLER_NEVER;
}

// Quarantines

int64_t _mi_sample_grant(mi_theap_t* theap, unsigned bin) {
  return theap->sampling.kinds == 0 ? INT64_MAX : mi_countdown_ahead(theap, &theap->sampling.takes[bin], bin);
}

void _mi_sample_taken(mi_theap_t* theap, unsigned bin, int64_t count) {
  theap->sampling.takes[bin].ahead -= (uint32_t)count;
}

unsigned _mi_sample_take_ended(mi_theap_t* theap, unsigned bin) {
  return mi_countdown_ended(theap, &theap->sampling.takes[bin], bin, 0);
}

// Settings

static size_t mi_sample_option(mi_option_t option) {
  const long value = _mi_option_get(option);
  return value < 0 ? 0 : (size_t)value;
}

// The settings of a theap: its own, else its heap's, else those of the options.
static const mi_guarded_settings_t* mi_sample_source(const mi_theap_t* theap, bool bounds) {
  const mi_heap_t* const heap = mi_atomic_load_relaxed(&theap->heap);
  const mi_guarded_settings_t* const places[] = {&theap->sampling.own, heap == NULL ? NULL : &heap->guarded};
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    if (places[i] != NULL && mi_atomic_load_acquire(bounds ? &places[i]->has_bounds : &places[i]->has_rate)) {
      return places[i];
    }
  }
  return NULL;
}

// A kind of sampling begins, goes on with other numbers, or ends: it is drawn anew, and every list that serves is counted by that.
static void mi_sample_pause(mi_theap_t* theap) {
  for (unsigned bin = MI_BIN_FIRST; bin <= MI_BIN_LAST; bin++) {
    if (theap->sampling.counted[bin] != NULL) {
      _mi_sample_put_down_slow(theap, theap->sampling.counted[bin]);
    }
  }
  _mi_quarantine_grant_all(theap, false);
}

static void mi_sample_resume(mi_theap_t* theap, unsigned kind, bool is_on) {
  mi_sampling_t* const sampling = &theap->sampling;
  if ((sampling->kinds & ~(1U << kind)) == 0) {
    memset(sampling->lists, 0, sizeof(sampling->lists));
    memset(sampling->takes, 0, sizeof(sampling->takes));
  } else {
    for (unsigned bin = 0; bin < MI_BIN_COUNT; bin++) {
      mi_countdown_forget(theap, &sampling->lists[bin], kind);
      mi_countdown_forget(theap, &sampling->takes[bin], kind);
    }
  }
  sampling->has_tables = true;
  sampling->kinds = (sampling->kinds & ~(1U << kind)) | (is_on ? 1U << kind : 0);
  _mi_quarantine_grant_all(theap, true);
  for (unsigned bin = MI_BIN_FIRST; sampling->kinds != 0 && bin <= MI_BIN_LAST; bin++) {
    _mi_sample_follow_slow(theap, bin);
  }
}

// Threads have their numbers in the order in which they began.
static uint64_t mi_sample_stream(const mi_theap_t* theap) {
  return ((uint64_t)mi_atomic_load_relaxed(&theap->heap_id) << 32) ^ (theap->tid / MI_TID_STEP);
}

static void mi_sample_restart(mi_theap_t* theap, uint32_t rate, size_t seed, uint32_t forks) {
  mi_sampling_t* const sampling = &theap->sampling;
  mi_sample_pause(theap);
  sampling->rate = rate;
  sampling->seed = seed;
  sampling->forks = forks;
  _mi_sampler_begin(&sampling->numbers, seed, mi_sample_stream(theap) ^ ((uint64_t)forks << 48));
  sampling->stream = _mi_sampler_next(&sampling->numbers);
  memset(sampling->drawn, 0, sizeof(sampling->drawn));
  mi_sample_resume(theap, MI_SAMPLE_FOR_GUARD, rate > 0);
}

static void mi_sample_update_profile(mi_theap_t* theap) {
  mi_profile_thread_t profile = theap->sampling.profile;
  if ((_mi_profile_is_on() || profile.number != 0) &&
      _mi_profile_follow(&profile, _mi_profiled_wanted(mi_atomic_load_relaxed(&theap->heap)), mi_sample_stream(theap))) {
    mi_sample_pause(theap);
    theap->sampling.profile = profile;
    mi_sample_resume(theap, MI_SAMPLE_FOR_PROFILE, profile.number != 0);
  }
}

void _mi_sample_update_slow(mi_theap_t* theap) {
  mi_sampling_t* const sampling = &theap->sampling;
  // Acquire pairs with the release of whoever changed settings.
  sampling->generation = mi_atomic_load_acquire(&_mi_sample_generation);
  mi_sample_update_profile(theap);
  const mi_guarded_settings_t* const bounds = mi_sample_source(theap, true);
  sampling->min = bounds != NULL ? mi_atomic_load_relaxed(&bounds->min) : mi_sample_option(mi_option_guarded_min);
  sampling->max = bounds != NULL ? mi_atomic_load_relaxed(&bounds->max) : mi_sample_option(mi_option_guarded_max);
  const mi_guarded_settings_t* const source = mi_sample_source(theap, false);
  const size_t rate = source != NULL ? mi_atomic_load_relaxed(&source->rate) : mi_sample_option(mi_option_guarded_sample_rate);
  const size_t chosen = source != NULL ? mi_atomic_load_relaxed(&source->seed) : 0;
  sampling->is_paced = source == NULL && !_mi_option_is_set(mi_option_guarded_sample_rate) && !_mi_option_is_set(mi_option_guarded_sample_seed);
  const uint32_t one_in = !MI_HAS_GUARDED ? 0 : rate < MI_SAMPLER_NEVER ? (uint32_t)rate
                                                                        : MI_SAMPLER_NEVER;
  const size_t seed = one_in == 0 ? 0 : chosen != 0 ? chosen
                                                    : _mi_sample_seed();
  const uint32_t forks = mi_atomic_load_relaxed(&mi_sample_forks);
  if (one_in != sampling->rate || (one_in != 0 && (seed != sampling->seed || forks != sampling->forks))) {
    mi_sample_restart(theap, one_in, seed, forks);
  }
}

mi_early void _mi_sample_changed(void) {
  // Release: who sees the number sees the settings.
  (void)mi_atomic_add_acq_rel(&_mi_sample_generation, 1);
  if (_mi_tls.own != NULL) {
    _mi_thread_each_theap(&_mi_sample_update_slow);
  }
  if (MI_HAS_QUARANTINE) {
    // After the number: the next call of a thread is a slow one, and looks at it before it arms.
    _mi_threads_disarm();
  }
}

static void mi_sample_set_rate(mi_guarded_settings_t* settings, size_t rate, size_t seed) {
  mi_atomic_store_relaxed(&settings->rate, rate);
  mi_atomic_store_relaxed(&settings->seed, seed);
  mi_atomic_store_release(&settings->has_rate, true);
  _mi_sample_changed();
}

static void mi_sample_set_bounds(mi_guarded_settings_t* settings, size_t min, size_t max) {
  mi_atomic_store_relaxed(&settings->min, min);
  mi_atomic_store_relaxed(&settings->max, max);
  mi_atomic_store_release(&settings->has_bounds, true);
  _mi_sample_changed();
}

void _mi_sample_set_heap_rate(mi_heap_t* heap, size_t rate, size_t seed) { mi_sample_set_rate(&heap->guarded, rate, seed); }
void _mi_sample_set_heap_bounds(mi_heap_t* heap, size_t min, size_t max) { mi_sample_set_bounds(&heap->guarded, min, max); }

void _mi_sample_set_theap_rate(mi_theap_t* theap, size_t rate, size_t seed) {
  mi_sample_set_rate(&theap->sampling.own, rate, seed);
}

void _mi_sample_set_theap_bounds(mi_theap_t* theap, size_t min, size_t max) {
  mi_sample_set_bounds(&theap->sampling.own, min, max);
}

void _mi_sample_fork_child(void) {
  mi_atomic_store_relaxed(&mi_sample_seed, 0);
  (void)mi_atomic_add_relaxed(&mi_sample_forks, 1);
  (void)mi_atomic_add_relaxed(&_mi_sample_generation, 1);
}
