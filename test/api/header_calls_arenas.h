// Owns: calls of what concerns arenas, in each language standard.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc.
// Invariants: valid in C11 and C++11; no arena here serves blocks of others.
#pragma once

#include "test/api/header_calls.h"

// Room for two arenas of 1 MiB wherever it lies.
static char arenas_memory[(2 << 20) + (1 << 17)];

static bool arenas_commit(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  ++*(long*)arg;
  if (commit) {
    *is_zero = false;
  }
  return start != NULL && size > 0;
}

MI_TEST(arenas) {
  mi_arena_id_t id = NULL;
  size_t size = 0;
  MI_CHECK_EQ(mi_arena_min_alignment() & (mi_arena_min_alignment() - 1), 0);
  MI_CHECK(mi_arena_min_size() >= mi_arena_min_alignment() && mi_arena_max_object_size() > 0);
  MI_CHECK_EQ(mi_reserve_os_memory(1 << 20, false, false), 0);
  MI_CHECK_EQ(mi_reserve_os_memory_ex(1 << 20, true, false, true, &id), 0);
  MI_CHECK(mi_arena_area(id, &size) != NULL && size >= 1 << 20);
  MI_CHECK(mi_arena_contains(id, mi_arena_area(id, NULL)) && !mi_arena_contains(id, &id));
  int number = 0;
  MI_CHECK_EQ(mi_reserve_os_memory_ex_v2(1 << 20, true, false, true, &number), 0);
  MI_CHECK(mi_arena_area_v2(number, &size) != NULL && size >= 1 << 20);

  MI_CHECK(!mi_manage_os_memory(arenas_memory, 1, true, false, true, -1));
  MI_CHECK(mi_manage_os_memory_ex(arenas_memory, 1 << 20, true, false, true, -1, true, &id));
  MI_CHECK(mi_arena_contains(id, arenas_memory + (1 << 19)));
  MI_CHECK(!mi_manage_os_memory_ex_v2(arenas_memory, 1 << 20, true, false, true, -1, true, &number) && number == 0);
  long calls = 0;
  MI_CHECK(mi_manage_memory(arenas_memory + (1 << 20), 1 << 20, true, false, true, -1, true, arenas_commit, &calls, &id));
  MI_CHECK(id != NULL && calls == 0);

  // Few machines have huge pages to spare, and what they have is not taken here.
  size_t pages = 1;
  MI_CHECK_EQ(mi_reserve_huge_os_pages_at(0, -1, 0), 0);
  MI_CHECK_EQ(mi_reserve_huge_os_pages_at_ex(0, -1, 0, true, &id), 0);
  MI_CHECK_EQ(mi_reserve_huge_os_pages_at_ex_v2(0, -1, 0, true, &number), 0);
  MI_CHECK_EQ(mi_reserve_huge_os_pages_interleave(0, 0, 0), 0);
  MI_CHECK_EQ(mi_reserve_huge_os_pages(0, 0.5, &pages), 0);
  MI_CHECK(id == NULL && number == 0 && pages == 0);
  mi_arenas_purge();
}

static void note_arenas(const char* msg, void* arg) { *(size_t*)arg += strlen(msg); }

MI_TEST(arenas_printed) {
  size_t length = 0;
  mi_register_output(note_arenas, &length);
  mi_arenas_print();
  const size_t once = length;
  mi_debug_show_arenas();
  mi_register_output(NULL, NULL);
  MI_CHECK(once > 0 && length == 2 * once);
}
