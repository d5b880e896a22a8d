// Owns: chunks of metadata memory and the free lists of their objects by size.
// May include: base, sys.
// Called by: region, heap.
// Invariants: everything here is touched under mi_meta.lock, a leaf lock.
#include "src/region/meta.h"

#include <string.h>

#include "src/base/assert.h"
#include "src/base/bits.h"
#include "src/sys/lock.h"
#include "src/sys/os.h"

enum {
  MI_META_CLASS_SHIFT = 6,
  MI_META_CLASSES = 9,  // 64 bytes … 16 KiB, powers of two
  MI_META_CHUNK_SIZE = 256 * 1024,
};

typedef struct mi_meta_object_s {
  struct mi_meta_object_s* next;
} mi_meta_object_t;

static struct {
  mi_lock_t lock;
  mi_meta_object_t* free[MI_META_CLASSES];
  uint8_t* bump;
  uint8_t* bump_end;
} mi_meta;

static unsigned mi_meta_class(size_t size) {
  mi_assert(size > 0 && size <= MI_META_SIZE_MAX);
  return size <= 64 ? 0 : _mi_bits_log2_64(size - 1) + 1 - MI_META_CLASS_SHIFT;
}

// A fresh object; what is left of a chunk that is too short is given up, at most 16 KiB in 256.
static void* mi_meta_bump(size_t size) {
  if ((size_t)(mi_meta.bump_end - mi_meta.bump) < size) {
    void* const chunk = _mi_os_reserve_permanent(MI_META_CHUNK_SIZE, true);
    if (chunk == NULL) {
      return NULL;
    }
    mi_meta.bump = chunk;
    mi_meta.bump_end = mi_meta.bump + MI_META_CHUNK_SIZE;
  }
  void* const p = mi_meta.bump;
  mi_meta.bump += size;
  return p;
}

void* _mi_meta_zalloc(size_t size) {
  const unsigned class = mi_meta_class(size);
  const size_t class_size = (size_t)1 << (class + MI_META_CLASS_SHIFT);
  _mi_lock_acquire(&mi_meta.lock);
  mi_meta_object_t* const object = mi_meta.free[class];
  if (object == NULL) {
    void* const fresh = mi_meta_bump(class_size);
    _mi_lock_release(&mi_meta.lock);
    return fresh;
  }
  mi_meta.free[class] = object->next;
  _mi_lock_release(&mi_meta.lock);
  memset(object, 0, class_size);
  return object;
}

void _mi_meta_free(void* p, size_t size) {
  const unsigned class = mi_meta_class(size);
  mi_meta_object_t* const object = p;
  _mi_lock_acquire(&mi_meta.lock);
  object->next = mi_meta.free[class];
  mi_meta.free[class] = object;
  _mi_lock_release(&mi_meta.lock);
}

void _mi_meta_fork_prepare(void) { _mi_lock_acquire(&mi_meta.lock); }

void _mi_meta_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_meta.lock);
  } else {
    _mi_lock_release(&mi_meta.lock);
  }
}
