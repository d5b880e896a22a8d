// Owns: origins beyond the inline path, and the judgement of frees whose family, size or alignment does not agree at once.
// May include: base, hardening, sys, region, heap, alloc.
// Called by: alloc, api.
// Invariants: only a live block is judged, so that a bad pointer is reported as what it is, and by the plain free; a block
// that was reported, where that did not abort, is freed all the same: its address is right.
#include "src/alloc/free-checked.h"

#include "src/sys/options.h"
#include "src/sys/report.h"

// Origins

void _mi_origin_note(void* p, uint8_t origin) {
  mi_page_t* const page = _mi_page_map_find(p);
  if (mi_unlikely(page == NULL)) {
    return;
  }
  if (_mi_page_is_single(page)) {
    mi_atomic_store_relaxed(&page->single_origin, origin);
    return;
  }
  const uint64_t index = _mi_page_live_index(page, p);
  if (mi_likely(index < MI_PAGE_GRANULES)) {
    _mi_page_set_origin(page, index, origin);
  }
}

static uint8_t mi_origin_of(const mi_page_t* page, const void* p) {
  if (_mi_page_is_single(page)) {
    return mi_atomic_load_relaxed(&page->single_origin);
  }
  // An address inside a block, where that was handed out, is made by mi_ functions only.
  const uint64_t index = _mi_page_live_index(page, p);
  return index < MI_PAGE_GRANULES ? _mi_page_origin(page, index) : (uint8_t)MI_FAMILY_ANY;
}

// Reports

static const char* const mi_allocating_names[MI_FAMILY_COUNT] = {
    [MI_FAMILY_ANY] = "mi_malloc",
    [MI_FAMILY_MALLOC] = "malloc",
    [MI_FAMILY_MEMALIGN] = "aligned_alloc",
    [MI_FAMILY_NEW] = "operator new",
    [MI_FAMILY_NEW_ARRAY] = "operator new[]",
    [MI_FAMILY_NEW_ALIGNED] = "aligned operator new",
    [MI_FAMILY_NEW_ARRAY_ALIGNED] = "aligned operator new[]",
};

static const char* const mi_freeing_names[MI_FAMILY_COUNT] = {
    [MI_FAMILY_ANY] = "mi_free",
    [MI_FAMILY_MALLOC] = "free",
    [MI_FAMILY_MEMALIGN] = "free_aligned_sized",
    [MI_FAMILY_NEW] = "operator delete",
    [MI_FAMILY_NEW_ARRAY] = "operator delete[]",
    [MI_FAMILY_NEW_ALIGNED] = "aligned operator delete",
    [MI_FAMILY_NEW_ARRAY_ALIGNED] = "aligned operator delete[]",
};

static mi_cold void mi_report_family(const mi_page_t* page, const void* p, mi_family_t made_by, const char* verb,
                                     const char* freed_by) {
  _mi_report(MI_VIOLATION_family_mismatch,
             "pointer %p was allocated by %s and is %s %s (block of %zu bytes, page %p, thread %zu)", p,
             mi_allocating_names[made_by], verb, freed_by, _mi_free_request(page, p), (void*)page->start, _mi_thread_number());
}

static mi_cold void mi_report_align(const mi_page_t* page, const void* p, size_t align, size_t freed_as) {
  _mi_report(MI_VIOLATION_alignment_mismatch,
             "pointer %p is a block with alignment %zu, freed as one with alignment %zu (block of %zu bytes, page %p, "
             "thread %zu)",
             p, align, freed_as, _mi_free_request(page, p), (void*)page->start, _mi_thread_number());
}

static mi_cold void mi_report_size(const mi_page_t* page, const void* p, size_t request, size_t freed_as) {
  _mi_report(MI_VIOLATION_size_mismatch, "pointer %p is a block of %zu bytes, freed as one of %zu bytes (page %p, thread %zu)",
             p, request, freed_as, (void*)page->start, _mi_thread_number());
}

// Judgement: each returns whether all is well, and has reported if not.

static bool mi_judge_family(const mi_page_t* page, const void* p, mi_family_t family, size_t align, const char* verb,
                            const char* freed_by) {
  const uint8_t origin = mi_origin_of(page, p);
  const mi_origin_verdict_t verdict = _mi_hard_origin_verdict(origin, family, align, MI_BLOCK_ALIGN);
  if (mi_likely(verdict == MI_ORIGIN_AGREES) ||
      _mi_option_get(mi_option_family_check) == MI_ON_VIOLATION_IGNORE) {
    return true;
  }
  if (verdict == MI_ORIGIN_OTHER_ALIGNMENT) {
    mi_report_align(page, p, _mi_hard_origin_align(origin), align);
  } else {
    mi_report_family(page, p, _mi_hard_origin_family(origin), verb, freed_by);
  }
  return false;
}

static bool mi_judge_align(const mi_page_t* page, const void* p, size_t align) {
  // Where blocks were made with an offset, it is the address behind that which is aligned.
  if (mi_likely(_mi_hard_align_agrees((uintptr_t)p, align)) || (page->has_interior && _mi_is_power_of_two(align))) {
    return true;
  }
  // The largest power of two that divides the address.
  mi_report_align(page, p, (size_t)((uintptr_t)p & (~(uintptr_t)p + 1)), align);
  return false;
}

static bool mi_judge_size(const mi_page_t* page, const void* p, unsigned how, size_t size, size_t align) {
  const mi_family_t family = (mi_family_t)(how & MI_FREE_FAMILY_MASK);
  if (mi_unlikely(page->has_interior)) {
    // Made by mi_ functions with an offset, or beside such blocks: how much lies in front of them is not known.
    const size_t usable = _mi_usable_size(p);
    if (size > usable) {
      mi_report_size(page, p, usable, size);
    }
    return size <= usable;
  }
  const size_t request = _mi_free_request(page, p);
  const size_t spread = _mi_free_request_spread(page);
  if (mi_likely(_mi_hard_size_agrees(size, request, spread)) ||
      ((how & MI_FREE_ALIGNED) != 0 && _mi_hard_size_agrees_aligned(size, align, request, spread))) {
    return true;
  }
  if (MI_HAS_SIZED_FREE != 2 || !MI_BLOCK_REQUEST_IS_EXACT) {
    // A block that has no class is as large as a whole number of slices; zero bytes take one as well.
    if (size == 0 && _mi_hard_size_agrees(1, request, spread)) {
      return true;
    }
    // realloc leaves a block where it is down to half of its size. What operator new made it does not touch.
    if ((family == MI_FAMILY_ANY || family == MI_FAMILY_MALLOC || family == MI_FAMILY_MEMALIGN) &&
        _mi_hard_size_agrees_resized(size, request)) {
      return true;
    }
    // mi_free_size takes blocks of the aligned functions, too.
    if (family == MI_FAMILY_ANY && _mi_hard_size_agrees_any_align(size, (uintptr_t)p, request, spread)) {
      return true;
    }
  }
  mi_report_size(page, p, request, size);
  return false;
}

static void mi_judge_free(const mi_page_t* page, const void* p, unsigned how, size_t size, size_t align) {
  const mi_family_t family = (mi_family_t)(how & MI_FREE_FAMILY_MASK);
  const bool aligned = (how & MI_FREE_ALIGNED) != 0;
  if (MI_HAS_FAMILY && family != MI_FAMILY_ANY && (!aligned || _mi_is_power_of_two(align)) &&
      !mi_judge_family(page, p, family, aligned ? align : 0, "freed by", mi_freeing_names[family])) {
    return;
  }
  if (MI_HAS_SIZED_FREE != 0 && aligned && !mi_judge_align(page, p, align)) {
    return;
  }
  if (MI_HAS_SIZED_FREE != 0 && (how & MI_FREE_SIZED) != 0) {
    (void)mi_judge_size(page, p, how, size, align);
  }
}

// Whether nothing can disagree: a plain free of what can only be of its family. Most are of another thread's block.
static bool mi_free_is_plain(const mi_page_t* page, unsigned how) {
  return how == MI_FAMILY_MALLOC && !mi_atomic_load_relaxed(&page->has_origins) && !_mi_page_is_single(page);
}

void _mi_free_checked_slow(void* p, mi_page_t* page, unsigned how, size_t size, size_t align) {
  if (!mi_free_is_plain(page, how) && !_mi_page_is_none(page) && _mi_page_is_live(page, p)) {
    mi_judge_free(page, p, how, size, align);
  }
  _mi_free_in(page, p);
}

void* _mi_realloc_checked(void* p, size_t newsize) {
  const mi_page_t* const page = _mi_page_map_find(p);
  if (page != NULL && _mi_page_is_live(page, p)) {
    (void)mi_judge_family(page, p, MI_FAMILY_MALLOC, 0, "resized by", "realloc");
  }
  return _mi_origin_mark(_mi_realloc(NULL, p, newsize, false), MI_FAMILY_MALLOC, 1);
}
