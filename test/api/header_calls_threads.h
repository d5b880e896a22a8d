// Owns: calls of what concerns threads, in each language standard.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc.
// Invariants: valid in C11 and C++11.
#pragma once

#include "test/api/header_calls.h"

static void note_deferred(bool force, unsigned long long heartbeat, void* arg) {
  if (force) {
    *(unsigned long long*)arg = heartbeat;
  }
}

MI_TEST(deferred_free) {
  unsigned long long heartbeat = 0;
  mi_register_deferred_free(note_deferred, &heartbeat);
  mi_collect(true);
  MI_CHECK(heartbeat > 0);
  mi_register_deferred_free(NULL, NULL);
  heartbeat = 0;
  mi_collect(true);
  MI_CHECK_EQ(heartbeat, 0);
}

MI_TEST(threadpool) {
  mi_thread_set_in_threadpool();
  mi_free(mi_malloc(10));
}
