// Owns: calls of memory events and of unwrapped memory, in each language standard.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc.
// Invariants: valid in C11 and C++11; events are off at the end.
#pragma once

#include "test/api/header_calls.h"

static void note_change(const mi_memory_change_t* change, void* arg) {
  *(int64_t*)arg += change->delta_bytes;
}

static bool count_allocation(void* allocation, size_t usable_size, void* arg) {
  MI_CHECK(allocation != NULL);
  (void)usable_size;
  ++*(size_t*)arg;
  return true;
}

MI_TEST(memory_events) {
  mi_thread_init();  // a test before may have torn it down
  int64_t bytes = 0;
  mi_memory_callbacks_t callbacks;
  for (int i = 0; i < MI_MEMORY_CHANGE_COUNT; i++) {
    callbacks.handlers[i] = &note_change;
    callbacks.args[i] = &bytes;
  }
  MI_CHECK(mi_memory_set_callbacks(&callbacks));
  MI_CHECK(mi_memory_tracking_set_enabled(true));
  MI_CHECK(mi_memory_tracking_is_enabled());
  void* const p = mi_malloc(100);
  MI_CHECK_EQ(bytes, mi_usable_size(p));
  mi_memory_snapshot_t_decl(snapshot);
  MI_CHECK(mi_memory_snapshot(&snapshot));
  MI_CHECK(snapshot.live_count >= 1 && snapshot.accum_bytes >= 100);
  size_t count = 0;
  MI_CHECK(mi_memory_visit_live_allocations(&count_allocation, &count));
  MI_CHECK(count >= 1);
  mi_free(p);
  MI_CHECK_EQ(bytes, 0);
  MI_CHECK(mi_memory_tracking_set_enabled(false));
  MI_CHECK(mi_memory_set_callbacks(NULL));
}

MI_TEST(unwrapped_memory) {
  char* p = (char*)mi_unwrapped_malloc(100, 64);
  MI_REQUIRE(p != NULL);
  p[99] = 9;
  p = (char*)mi_unwrapped_realloc(p, 100000, 0);
  MI_REQUIRE(p != NULL);
  MI_CHECK_EQ(p[99], 9);
  mi_unwrapped_free(p);
}
