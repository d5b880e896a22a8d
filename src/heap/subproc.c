// Owns: sub-processes.
// May include: base, sys, heap.
// Called by: through subproc.h.
// Invariants: see subproc.h; everything about which sub-processes and threads there are is read under the heaps' lock.
#include "src/heap/subproc.h"

#include "src/heap/block.h"
#include "src/heap/zero-size.h"
#include "src/sys/log.h"

enum { MI_SUBPROC_BATCH = 32 };

mi_heap_t* _mi_subproc_current(void) {
  const mi_theap_t* const own = _mi_theap_own();
  mi_heap_t* const main = own == NULL ? NULL : mi_atomic_load_relaxed(&own->heap);
  return main != NULL ? main : _mi_heap_main();
}

mi_heap_t* _mi_subproc_find(uintptr_t id) {
  mi_heap_t* main = _mi_heap_main();
  while (main != NULL && id != 0 && _mi_subproc_id(main) != id) {
    main = main->next_main;
  }
  return main;
}

uintptr_t _mi_subproc_new(void) {
  const mi_heap_config_t config = {.is_main = true, .allow_destroy = true};
  const mi_heap_t* const main = _mi_heap_new_as(&config);
  return main != NULL ? _mi_subproc_id(main) : 0;
}

void _mi_subproc_add_current_thread(uintptr_t id) {
  mi_theap_t* const own = _mi_theap_own();
  if (own == NULL || _mi_heaps_are_busy_here()) {
    return;
  }
  _mi_heaps_lock();
  mi_heap_t* const main = _mi_subproc_find(id);
  _mi_heaps_unlock();
  if (main == mi_atomic_load_relaxed(&own->heap)) {
    return;
  }
  if (main == NULL || !_mi_thread_move(main)) {
    _mi_log_warning("a thread stays where it is: there is no sub-process %zu, or no memory\n", (size_t)id);
    return;
  }
  // What it chose belongs to the sub-process that it left.
  _mi_theap_choose_default(_mi_tls.own);
}

// Ending

// In a forked child those of other threads are there for a while.
static size_t mi_subproc_threads(const mi_heap_t* main) {
  size_t count = 0;
  for (const mi_theap_t* theap = main->theaps; theap != NULL; theap = theap->next_in_heap) {
    count += theap->is_own && theap->tls != NULL;
  }
  return count;
}

static size_t mi_heap_live_blocks(mi_heap_t* heap) {
  size_t count = _mi_zero_size_heap_count(heap);
  _mi_lock_acquire(&heap->lock);
  for (const mi_page_t* page = heap->pages; page != NULL; page = page->heap_next) {
    const uint32_t used = _mi_page_in_use(page);
    count += used - _mi_min(_mi_remote_count(mi_atomic_load_acquire(&page->remote)), used);
  }
  _mi_lock_release(&heap->lock);
  return count;
}

static size_t mi_subproc_live_blocks(mi_heap_t* main) {
  size_t count = 0;
  for (mi_heap_t* heap = _mi_heaps_first(); heap != NULL; heap = heap->next) {
    count += _mi_heap_main_of(heap) == main ? mi_heap_live_blocks(heap) : 0;
  }
  return count;
}

// Without its blocks there are none, but a free by another thread may be about to give a page back: pages go to the main
// sub-process and stay valid.
static void mi_subproc_end_heap(mi_heap_t* heap, bool with_blocks, mi_heap_loss_t* loss) {
  if (with_blocks) {
    _mi_heap_end_with_blocks(heap, loss);
  } else {
    _mi_heap_end_into(heap, _mi_heap_main());
  }
}

static void mi_subproc_end_heaps(mi_heap_t* main, bool with_blocks, mi_heap_loss_t* loss) {
  mi_heap_t* next;
  for (mi_heap_t* heap = _mi_heaps_first(); heap != NULL; heap = next) {
    next = heap->next;
    if (heap->main == main) {
      mi_subproc_end_heap(heap, with_blocks, loss);
    }
  }
  mi_heap_t* before = _mi_heap_main();
  while (before->next_main != main) {
    before = before->next_main;
  }
  before->next_main = main->next_main;
  mi_subproc_end_heap(main, with_blocks, loss);
}

// What this thread has freed and still holds back is no live block. Other threads' is, until they collect.
static void mi_subproc_flush(mi_theap_t* theap) { _mi_quarantine_flush(theap); }

void _mi_subproc_end(uintptr_t id, bool with_blocks) {
  const char* const what = with_blocks ? "destroyed" : "deleted";
  if (id == 0 || mi_unlikely(_mi_heaps_are_busy_here())) {
    return;
  }
  if (!with_blocks) {
    _mi_thread_each_theap(&mi_subproc_flush);
  }
  mi_heap_loss_t loss = {0};
  _mi_heaps_lock();
  mi_heap_t* const main = _mi_subproc_find(id);
  const bool may_end = main != NULL && main != _mi_heap_main();
  const size_t threads = may_end && !with_blocks ? mi_subproc_threads(main) : 0;
  const size_t blocks = may_end && !with_blocks && threads == 0 ? mi_subproc_live_blocks(main) : 0;
  if (may_end && threads == 0 && blocks == 0) {
    mi_subproc_end_heaps(main, with_blocks, &loss);
  }
  _mi_heaps_unlock();
  _mi_heap_tell_loss(&loss);
  if (!may_end) {
    _mi_log_warning("sub-process %zu cannot be %s: %s\n", (size_t)id, what, main == NULL ? "there is none" : "it is the main one");
  } else if (threads != 0 || blocks != 0) {
    _mi_log_warning("sub-process %zu cannot be deleted: %s left: %zu\n", (size_t)id, threads != 0 ? "threads" : "live blocks",
                    threads != 0 ? threads : blocks);
  } else {
    _mi_thread_disarm();
  }
}

// Visiting

typedef struct mi_subproc_batch_s {
  mi_heap_t* heaps[MI_SUBPROC_BATCH];
  uintptr_t ids[MI_SUBPROC_BATCH];
  size_t count;
} mi_subproc_batch_t;

// The next heaps of the sub-process with ids below `below`; they stand in that order.
static bool mi_subproc_collect(uintptr_t id, uintptr_t below, mi_subproc_batch_t* batch) {
  batch->count = 0;
  _mi_heaps_lock();
  const mi_heap_t* const main = _mi_subproc_find(id);
  for (mi_heap_t* heap = _mi_heaps_first(); main != NULL && heap != NULL && batch->count < MI_SUBPROC_BATCH; heap = heap->next) {
    const uintptr_t heap_id = mi_atomic_load_relaxed(&heap->id);
    if (heap->main == main && heap_id < below) {
      batch->ids[batch->count] = heap_id;
      batch->heaps[batch->count++] = heap;
    }
  }
  _mi_heaps_unlock();
  return main != NULL;
}

bool _mi_subproc_visit_heaps(uintptr_t id, mi_heap_visit_fun* visit, void* arg) {
  if (mi_unlikely(_mi_heaps_are_busy_here())) {
    return false;
  }
  _mi_heaps_lock();
  mi_heap_t* const main = _mi_subproc_find(id);
  _mi_heaps_unlock();
  if (main == NULL || !visit(main, arg)) {
    return false;
  }
  mi_subproc_batch_t batch;
  uintptr_t below = UINTPTR_MAX;
  while (mi_subproc_collect(id, below, &batch) && batch.count > 0) {
    for (size_t i = 0; i < batch.count; i++) {
      below = batch.ids[i];
      // One that a visit has ended meanwhile is passed over.
      if (mi_atomic_load_relaxed(&batch.heaps[i]->id) == below && !visit(batch.heaps[i], arg)) {
        return false;
      }
    }
  }
  return true;
}
