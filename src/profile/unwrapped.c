// Owns: the table of unwrapped blocks and their life.
// May include: base, prim, sys, region.
// Called by: through unwrapped.h.
// Invariants: a leaf lock guards the table; a block is out of it before its memory goes.
#include "src/profile/unwrapped.h"

#include <errno.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/prim/prim.h"
#include "src/region/meta.h"
#include "src/sys/lock.h"
#include "src/sys/os.h"
#include "src/sys/report.h"

enum {
  MI_UNWRAPPED_LISTS = 256,
  MI_UNWRAPPED_REMEMBERED = 16,
};

typedef struct mi_unwrapped_s {
  struct mi_unwrapped_s* next;
  void* block;
  size_t room;  // whole OS pages from `block`, readable and writable
  void* base;   // of the reservation
  size_t size;  // of the reservation
} mi_unwrapped_t;

static struct {
  mi_lock_t lock;
  mi_unwrapped_t* lists[MI_UNWRAPPED_LISTS];
  const void* gone[MI_UNWRAPPED_REMEMBERED];  // freed lately
  size_t gone_next;
} mi_unwrapped;

static mi_unwrapped_t** mi_unwrapped_list(const void* p) {
  const uintptr_t page = (uintptr_t)p / _mi_os_page_size();
  return &mi_unwrapped.lists[(page ^ (page >> 8)) % MI_UNWRAPPED_LISTS];
}

// The lock is held. Where the record is linked, or would be: NULL stands there then.
static mi_unwrapped_t** mi_unwrapped_find(const void* p) {
  mi_unwrapped_t** link = mi_unwrapped_list(p);
  while (*link != NULL && (*link)->block != p) {
    link = &(*link)->next;
  }
  return link;
}

static void mi_unwrapped_enter(mi_unwrapped_t* record) {
  _mi_lock_acquire(&mi_unwrapped.lock);
  for (size_t i = 0; i < MI_UNWRAPPED_REMEMBERED; i++) {
    if (mi_unwrapped.gone[i] == record->block) {
      mi_unwrapped.gone[i] = NULL;
    }
  }
  mi_unwrapped_t** const list = mi_unwrapped_list(record->block);
  record->next = *list;
  *list = record;
  _mi_lock_release(&mi_unwrapped.lock);
}

// Takes the record out; NULL, and *was set, if there was one lately.
static mi_unwrapped_t* mi_unwrapped_leave(const void* p, bool* was) {
  *was = false;
  _mi_lock_acquire(&mi_unwrapped.lock);
  mi_unwrapped_t** const link = mi_unwrapped_find(p);
  mi_unwrapped_t* const record = *link;
  if (record != NULL) {
    *link = record->next;
    mi_unwrapped.gone[mi_unwrapped.gone_next++ % MI_UNWRAPPED_REMEMBERED] = p;
  }
  for (size_t i = 0; record == NULL && i < MI_UNWRAPPED_REMEMBERED; i++) {
    *was = *was || mi_unwrapped.gone[i] == p;
  }
  _mi_lock_release(&mi_unwrapped.lock);
  return record;
}

// Reports what is no block of these functions, or not any more.
static mi_cold void mi_unwrapped_report(const void* p, bool was, const char* what) {
  if (was) {
    _mi_report(MI_VIOLATION_double_free, "pointer %p is a block of mi_unwrapped_malloc that was freed, %s", p, what);
  } else {
    _mi_report(MI_VIOLATION_foreign_free, "pointer %p is no block of mi_unwrapped_malloc, %s", p, what);
  }
}

// Reserves with an inaccessible OS page before and behind, and opens what lies between.
static bool mi_unwrapped_map(mi_unwrapped_t* record, size_t align) {
  const size_t os_page = _mi_os_page_size();
  const size_t slack = align > os_page ? align - os_page : 0;
  if (_mi_add_overflow(record->room, 2 * os_page, &record->size) || _mi_add_overflow(record->size, slack, &record->size) ||
      record->size > (size_t)PTRDIFF_MAX || _mi_prim_reserve(record->size, false, &record->base) != 0) {
    return false;
  }
  record->block = (void*)_mi_align_up_ptr((uintptr_t)record->base + os_page, _mi_max(align, os_page));
  if (_mi_prim_commit(record->block, record->room) != 0) {
    (void)_mi_prim_release(record->base, record->size);
    return false;
  }
  return true;
}

void* _mi_unwrapped_alloc(size_t size, size_t align) {
  align = align == 0 ? sizeof(void*) : align;
  if (!_mi_is_power_of_two(align)) {
    errno = EINVAL;
    return NULL;
  }
  const int saved = errno;
  const size_t os_page = _mi_os_page_size();
  mi_unwrapped_t* const record = size > (size_t)PTRDIFF_MAX - os_page ? NULL : _mi_meta_zalloc(sizeof(*record));
  if (record != NULL) {
    record->room = _mi_align_up(_mi_max(size, 1), os_page);
    if (mi_unwrapped_map(record, align)) {
      mi_unwrapped_enter(record);
      errno = saved;
      return record->block;
    }
    _mi_meta_free(record, sizeof(*record));
  }
  errno = ENOMEM;
  return NULL;
}

void _mi_unwrapped_free(void* p) {
  if (p == NULL) {
    return;
  }
  bool was;
  mi_unwrapped_t* const record = mi_unwrapped_leave(p, &was);
  if (mi_unlikely(record == NULL)) {
    mi_unwrapped_report(p, was, "freed by mi_unwrapped_free");
    return;
  }
  if (_mi_prim_release(record->base, record->size) != 0) {
    // Only the lack of a mapping to split with leads here: the addresses are lost, the memory is not.
    bool is_zero;
    (void)_mi_prim_purge(record->block, record->room, &is_zero);
  }
  _mi_meta_free(record, sizeof(*record));
}

// 0: p is no block.
static size_t mi_unwrapped_room(const void* p) {
  _mi_lock_acquire(&mi_unwrapped.lock);
  const mi_unwrapped_t* const record = *mi_unwrapped_find(p);
  const size_t room = record == NULL ? 0 : record->room;
  _mi_lock_release(&mi_unwrapped.lock);
  return room;
}

void* _mi_unwrapped_realloc(void* p, size_t size, size_t align) {
  if (p == NULL) {
    return _mi_unwrapped_alloc(size, align);
  }
  if (size == 0) {
    _mi_unwrapped_free(p);
    return NULL;
  }
  align = align == 0 ? sizeof(void*) : align;
  if (!_mi_is_power_of_two(align)) {
    errno = EINVAL;
    return NULL;
  }
  const size_t room = mi_unwrapped_room(p);
  if (mi_unlikely(room == 0)) {
    mi_unwrapped_report(p, false, "resized by mi_unwrapped_realloc");
    errno = ENOMEM;
    return NULL;
  }
  const size_t os_page = _mi_os_page_size();
  if ((uintptr_t)p % align == 0 && size <= room && room - size < os_page) {
    return p;
  }
  void* const fresh = _mi_unwrapped_alloc(size, align);
  if (fresh != NULL) {
    memcpy(fresh, p, _mi_min(size, room));
    _mi_unwrapped_free(p);
  }
  return fresh;
}

bool _mi_unwrapped_is(const void* p) {
  if (_mi_lock_is_mine(&mi_unwrapped.lock) || !_mi_lock_acquire_bounded(&mi_unwrapped.lock)) {
    return false;
  }
  const bool found = *mi_unwrapped_find(p) != NULL;
  _mi_lock_release(&mi_unwrapped.lock);
  return found;
}

void _mi_unwrapped_fork_prepare(void) { _mi_lock_acquire(&mi_unwrapped.lock); }

void _mi_unwrapped_fork_release(bool in_child) {
  if (in_child) {
    _mi_lock_reset(&mi_unwrapped.lock);
  } else {
    _mi_lock_release(&mi_unwrapped.lock);
  }
}
