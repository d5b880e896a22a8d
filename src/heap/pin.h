// Owns: pins: a page that somebody looks at keeps its memory meanwhile, whoever gives it back.
// May include: base, region, heap.
// Called by: heap.
// Invariants: a page that goes is retracted first, so that no new look finds it, and then its memory goes, by its owner or,
// if it is pinned, by the last who had it pinned. Nobody waits for a pin.
#pragma once

#include "src/heap/page.h"

enum { MI_PINS_MAX = 64 };

// A place for one pinned page: its address and flags. 0: nobody has the place.
typedef _Atomic(uintptr_t) mi_pin_t;

// How many places somebody has.
extern _Atomic(uint32_t) _mi_pins_taken;

// Takes a place; NULL: all are taken.
mi_pin_t* _mi_pin_take(void);

// Gives it back, with nothing pinned.
void _mi_pin_give(mi_pin_t* pin);

// Pins a page. It is the caller's to see afterwards whether the page was retracted before: then it may be anything.
void _mi_pin_set(mi_pin_t* pin, const mi_page_t* page);

// Nothing is pinned any more; if the page was left to the caller its memory goes now.
void _mi_pin_clear(mi_pin_t* pin);

mi_cold bool _mi_pin_leave_page(mi_page_t* page, bool idle);

// The page was retracted. True: it is pinned, and its memory will be given back by the one who has it pinned.
mi_inline bool _mi_pin_takes_over(mi_page_t* page, bool idle) {
  // Sequentially consistent: either the look that pins sees that the page is retracted, or the pin is seen here. Pairs with
  // the fence in _mi_pin_set. Acquire, here and where the words are read: whoever has let go of the page has looked at it for
  // the last time; pairs with the release of each step of a pin.
  atomic_thread_fence(memory_order_seq_cst);
  return mi_unlikely(mi_atomic_load_acquire(&_mi_pins_taken) != 0) && _mi_pin_leave_page(page, idle);
}

// In a forked child: the places of threads that are not here are free, and what was left to them goes.
void _mi_pins_fork_child(void);
