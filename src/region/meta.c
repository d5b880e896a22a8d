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
#include "src/track/track.h"

enum {
  MI_META_CLASS_SHIFT = 6,
  MI_META_CLASSES = 9,  // 64 bytes … 16 KiB, powers of two
  MI_META_CHUNK_SIZE = 256 * 1024,
  // Of more than so many chunks it cannot be told what lies in them.
  MI_META_CHUNKS_KNOWN = 256,
};

// What is free. Behind `dirty` bytes it holds zeroes, and may never have been touched.
typedef struct mi_meta_object_s {
  struct mi_meta_object_s* next;
  size_t dirty;
} mi_meta_object_t;

static struct {
  mi_lock_t lock;
  mi_meta_object_t* free[MI_META_CLASSES];
  uint8_t* bump;
  uint8_t* bump_end;
} mi_meta;

// Read without the lock: a chunk is stored before it is counted.
static _Atomic(uintptr_t) mi_meta_chunks[MI_META_CHUNKS_KNOWN];
static _Atomic(size_t) mi_meta_chunk_count;

static void mi_meta_note_chunk(void* chunk) {
  const size_t count = mi_atomic_load_relaxed(&mi_meta_chunk_count);
  if (count < MI_META_CHUNKS_KNOWN) {
    mi_atomic_store_relaxed(&mi_meta_chunks[count], (uintptr_t)chunk);
  }
  // Release: pairs with the acquire in _mi_meta_may_be.
  mi_atomic_store_release(&mi_meta_chunk_count, count + 1);
}

// Wraps: an address before the chunk is far behind it.
mi_wraps bool _mi_meta_may_be(const void* p) {
  const size_t count = mi_atomic_load_acquire(&mi_meta_chunk_count);
  for (size_t i = 0; i < _mi_min(count, MI_META_CHUNKS_KNOWN); i++) {
    const uintptr_t offset = (uintptr_t)p - mi_atomic_load_relaxed(&mi_meta_chunks[i]);
    if (offset < MI_META_CHUNK_SIZE) {
      return offset % ((size_t)1 << MI_META_CLASS_SHIFT) == 0;
    }
  }
  return count > MI_META_CHUNKS_KNOWN;
}

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
    mi_meta_note_chunk(chunk);
    _mi_track_meta(chunk, MI_META_CHUNK_SIZE);
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
  memset(object, 0, _mi_max(object->dirty, sizeof(*object)));
  return object;
}

void _mi_meta_free(void* p, size_t size) { _mi_meta_free_part(p, size, size); }

void _mi_meta_free_part(void* p, size_t size, size_t dirty) {
  mi_assert_internal(dirty <= size);
  const unsigned class = mi_meta_class(size);
  mi_meta_object_t* const object = p;
  _mi_lock_acquire(&mi_meta.lock);
  object->next = mi_meta.free[class];
  object->dirty = dirty;
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
