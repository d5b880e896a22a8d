// Owns: the table of pins.
// May include: base, sys, region, heap.
// Called by: heap.
// Invariants: a word of the table is changed by its holder, by exchange, and by whoever leaves a page to it, by compare-and-swap.
#include "src/heap/pin.h"

#include "src/sys/lock.h"

enum {
  MI_PIN_TAKEN = 1,
  MI_PIN_LEFT = 2,  // the page was left to the holder, who gives its memory back
  MI_PIN_IDLE = 4,  // and to the system at once
  MI_PIN_FLAGS = 7,
};

_Atomic(uint32_t) _mi_pins_taken;

static struct {
  mi_pin_t word;
  _Atomic(uintptr_t) holder;  // its thread's token
} mi_pins[MI_PINS_MAX];

static mi_page_t* mi_pin_page(uintptr_t word) { return (mi_page_t*)(word & ~(uintptr_t)MI_PIN_FLAGS); }

mi_pin_t* _mi_pin_take(void) {
  mi_atomic_add_acq_rel(&_mi_pins_taken, 1);
  for (size_t i = 0; i < MI_PINS_MAX; i++) {
    uintptr_t nobody = 0;
    if (mi_atomic_cas_strong_acq_rel(&mi_pins[i].word, &nobody, MI_PIN_TAKEN)) {
      mi_atomic_store_relaxed(&mi_pins[i].holder, _mi_lock_self());
      return &mi_pins[i].word;
    }
  }
  mi_atomic_sub_acq_rel(&_mi_pins_taken, 1);
  return NULL;
}

void _mi_pin_give(mi_pin_t* pin) {
  mi_assert_internal(mi_atomic_load_relaxed(pin) == MI_PIN_TAKEN);
  mi_atomic_store_release(pin, 0);
  mi_atomic_sub_acq_rel(&_mi_pins_taken, 1);
}

void _mi_pin_set(mi_pin_t* pin, const mi_page_t* page) {
  mi_atomic_store_release(pin, (uintptr_t)page | MI_PIN_TAKEN);
  // See _mi_pin_takes_over.
  atomic_thread_fence(memory_order_seq_cst);
}

// The memory of a page that was left goes, unless others have it pinned.
static void mi_pin_finish(uintptr_t word) {
  const bool idle = (word & MI_PIN_IDLE) != 0;
  if ((word & MI_PIN_LEFT) != 0 && !_mi_pin_leave_page(mi_pin_page(word), idle)) {
    _mi_page_give_back(mi_pin_page(word), idle);
  }
}

// Acquire pairs with the release of who left the page: what it wrote to the page is seen.
void _mi_pin_clear(mi_pin_t* pin) { mi_pin_finish(mi_atomic_exchange_acq_rel(pin, MI_PIN_TAKEN)); }

bool _mi_pin_leave_page(mi_page_t* page, bool idle) {
  for (size_t i = 0; i < MI_PINS_MAX; i++) {
    uintptr_t word = mi_atomic_load_acquire(&mi_pins[i].word);
    while (mi_pin_page(word) == page) {
      if (mi_atomic_cas_weak_acq_rel(&mi_pins[i].word, &word, word | MI_PIN_LEFT | (idle ? MI_PIN_IDLE : 0))) {
        return true;
      }
    }
  }
  return false;
}

void _mi_pins_fork_child(void) {
  for (size_t i = 0; i < MI_PINS_MAX; i++) {
    if (mi_atomic_load_relaxed(&mi_pins[i].word) != 0 && mi_atomic_load_relaxed(&mi_pins[i].holder) != _mi_lock_self()) {
      mi_pin_finish(mi_atomic_exchange_acq_rel(&mi_pins[i].word, 0));
      mi_atomic_sub_acq_rel(&_mi_pins_taken, 1);
    }
  }
}
