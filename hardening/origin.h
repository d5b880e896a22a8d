// Owns: the byte that says which call made a block and with which alignment, and which calls may free it.
// May include: base.
// Called by: heap, alloc.
// Invariants: a byte of 0 says nothing and agrees with everything: so do blocks of the mi_ functions, which any free of
// ours may take. A block of unknown history is never reported.
#pragma once

#include "src/base/bits.h"

// The calls as families. What makes a block and what frees it are of the same one, under its allocating member's name.
typedef enum mi_family_e {
  MI_FAMILY_ANY,                // mi_ functions, and whatever is not judged
  MI_FAMILY_MALLOC,             // malloc, calloc, realloc, strdup; free, free_sized
  MI_FAMILY_MEMALIGN,           // aligned_alloc, posix_memalign and their kin; free_aligned_sized
  MI_FAMILY_NEW,                // operator new; operator delete
  MI_FAMILY_NEW_ARRAY,          // operator new[]; operator delete[]
  MI_FAMILY_NEW_ALIGNED,        // operator new with an alignment
  MI_FAMILY_NEW_ARRAY_ALIGNED,  // operator new[] with an alignment
  MI_FAMILY_COUNT,
} mi_family_t;

enum {
  MI_ORIGIN_FAMILY_BITS = 3,
  MI_ORIGIN_FAMILY_MASK = (1 << MI_ORIGIN_FAMILY_BITS) - 1,
  // All alignments from 2^31 on are one.
  MI_ORIGIN_LOG2_MAX = 31,
};

_Static_assert((int)MI_FAMILY_COUNT <= MI_ORIGIN_FAMILY_MASK + 1, "a family has no room in the byte");

typedef enum mi_origin_verdict_e {
  MI_ORIGIN_AGREES,
  MI_ORIGIN_OTHER_FAMILY,
  MI_ORIGIN_OTHER_ALIGNMENT,
} mi_origin_verdict_t;

mi_inline unsigned mi_origin_log2(size_t align) {
  // A call that failed may have named no alignment at all.
  const unsigned log2 = _mi_bits_log2_64((uint64_t)align | 1);
  return log2 < MI_ORIGIN_LOG2_MAX ? log2 : MI_ORIGIN_LOG2_MAX;
}

// The byte of a block that a family made. `align`: a power of two where the call named one, else 1.
mi_inline uint8_t _mi_hard_origin(mi_family_t family, size_t align) {
  return (uint8_t)((unsigned)family | (mi_origin_log2(align) << MI_ORIGIN_FAMILY_BITS));
}

mi_inline mi_family_t _mi_hard_origin_family(uint8_t origin) {
  return (mi_family_t)(origin & (unsigned)MI_ORIGIN_FAMILY_MASK);
}

mi_inline size_t _mi_hard_origin_align(uint8_t origin) { return (size_t)1 << (origin >> MI_ORIGIN_FAMILY_BITS); }

// Whether a free by `family` may take the block; the alignment is not looked at.
mi_inline bool _mi_hard_origin_is_of(uint8_t origin, mi_family_t family) {
  const mi_family_t made_by = _mi_hard_origin_family(origin);
  if (made_by == family || made_by == MI_FAMILY_ANY || family == MI_FAMILY_ANY) {
    return true;
  }
  // C and POSIX let free take aligned blocks. Of the reverse the alignment tells.
  return (made_by == MI_FAMILY_MEMALIGN && family == MI_FAMILY_MALLOC) ||
      (made_by == MI_FAMILY_MALLOC && family == MI_FAMILY_MEMALIGN);
}

// What a free by `family` that names `align`, a power of two (0: it names none), does to a block of this origin. `natural`
// is the alignment that every block has.
mi_inline mi_origin_verdict_t _mi_hard_origin_verdict(uint8_t origin, mi_family_t family, size_t align, size_t natural) {
  if (!_mi_hard_origin_is_of(origin, family)) {
    return MI_ORIGIN_OTHER_FAMILY;
  }
  const mi_family_t made_by = _mi_hard_origin_family(origin);
  if (made_by == MI_FAMILY_ANY || family == MI_FAMILY_ANY || align == 0) {
    return MI_ORIGIN_AGREES;
  }
  if (made_by == MI_FAMILY_MALLOC) {
    return align <= natural ? MI_ORIGIN_AGREES : MI_ORIGIN_OTHER_ALIGNMENT;
  }
  return mi_origin_log2(align) == (unsigned)(origin >> MI_ORIGIN_FAMILY_BITS) ? MI_ORIGIN_AGREES
                                                                              : MI_ORIGIN_OTHER_ALIGNMENT;
}
