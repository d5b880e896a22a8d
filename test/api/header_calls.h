// Owns: a call of every function that mimalloc.h declares, with a check of what it did.
// May include: test/lib, mimalloc.h.
// Called by: header_test.c and header_test.cc, which are compiled for each language standard.
// Invariants: valid in C11 and C++11; exports_test.py checks that no declared function is missing here.
#pragma once

#include <wchar.h>

#include "mimalloc.h"
#include "test/lib/test.h"

// A variant may report each failed request, which most of these are.
__attribute__((constructor)) static void be_quiet(void) { mi_option_disable(mi_option_show_errors); }

static void use(void* p, size_t size, int fill) {
  if (MI_CHECK(p != NULL)) {
    MI_CHECK(mi_usable_size(p) >= size);
    memset(p, fill, size);
  }
}

static void use_zero(void* p, size_t size) {
  if (MI_CHECK(p != NULL)) {
    MI_CHECK(mi_test_all_bytes(p, size, 0));
    memset(p, 0x5a, size);
  }
}

// p + offset is a multiple of align.
static void check_at(const void* p, size_t align, size_t offset) {
  MI_CHECK(p != NULL && ((uintptr_t)p + offset) % align == 0);
}

MI_TEST(basic) {
  void* p = mi_malloc(100);
  use(p, 100, 1);
  p = mi_realloc(p, 300);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 100, 1));
  MI_CHECK_PTR_EQ(mi_expand(p, 300), p);
  mi_free(p);
  p = mi_calloc(3, 40);
  use_zero(p, 120);
  p = mi_reallocn(p, 5, 40);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 120, 0x5a));
  p = mi_reallocf(p, 10);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 10, 0x5a));
  mi_free(p);
  p = mi_zalloc(50);
  use_zero(p, 50);
  p = mi_rezalloc(p, 5000);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 50, 0x5a));
  p = mi_recalloc(p, 2, 5000);
  MI_CHECK(p != NULL && mi_test_all_bytes((char*)p + 5000, 5000, 0));
  mi_free(p);
  p = mi_malloc_small(MI_SMALL_SIZE_MAX);
  use(p, MI_SMALL_SIZE_MAX, 2);
  mi_free_small(p);
  p = mi_zalloc_small(24);
  use_zero(p, 24);
  mi_free_small_nonnull(p);
  p = mi_wmalloc_small(MI_SMALL_WSIZE_MAX);
  use(p, MI_SMALL_SIZE_MAX, 5);
  mi_free_small(p);
  p = mi_wzalloc_small(3);
  use_zero(p, 3 * sizeof(void*));
  mi_free_small(p);
  p = mi_zallocn(4, 8);
  use_zero(p, 32);
  mi_free_small_local(p);
  p = mi_mallocn(4, 8);
  use(p, 32, 3);
  mi_free_small_local_nonnull(p);
  p = mi_malloc_csize(64);
  use(p, 64, 4);
  mi_free_csize(p, 64);
  p = mi_zalloc_csize(1 << 20);
  use_zero(p, 1 << 20);
  mi_free_csize_nonnull(p, 1 << 20);
  p = mi_malloc_aligned(100, 256);
  check_at(p, 256, 0);
  mi_free_csize_aligned(p, 100, 256);
  mi_free_csize_aligned_nonnull(mi_zalloc_aligned(100, 512), 100, 512);
  mi_free_csize(NULL, 64);
  mi_free_csize_aligned(NULL, 64, 256);
  MI_CHECK(mi_wsize_from_size(0) == 0 && mi_wsize_from_size(1) == 1 && mi_wsize_from_size(sizeof(void*)) == 1);
  MI_CHECK_EQ(mi_wsize_from_size(MI_SMALL_SIZE_MAX), MI_SMALL_WSIZE_MAX);
  MI_CHECK_EQ(mi_wsize_from_size(SIZE_MAX), SIZE_MAX / sizeof(void*) + 1);
  MI_CHECK(mi_good_size(100) >= 100);
}

MI_TEST(strings) {
  char* s = mi_strdup("abc");
  MI_CHECK_STREQ(s, "abc");
  mi_free(s);
  s = mi_strndup("abcdef", 2);
  MI_CHECK_STREQ(s, "ab");
  mi_free(s);
  s = mi_realpath("/./", NULL);
  MI_CHECK_STREQ(s, "/");
  mi_free(s);
  wchar_t* w = mi_wcsdup(L"wide");
  MI_CHECK(w != NULL && wcscmp(w, L"wide") == 0);
  mi_free(w);
  static const unsigned char bytes[] = "bytes";
  unsigned char* u = mi_mbsdup(bytes);
  MI_CHECK_STREQ((const char*)u, "bytes");
  mi_free(u);
  size_t length = 0;
  MI_CHECK_EQ(mi_dupenv_s(&s, &length, "PATH"), 0);
  MI_CHECK(s == NULL ? length == 0 : length == strlen(s) + 1);
  mi_free(s);
  MI_CHECK_EQ(mi_wdupenv_s(&w, &length, L"PATH"), 0);
  MI_CHECK(w == NULL ? length == 0 : length == wcslen(w) + 1);
  mi_free(w);
}

MI_TEST(object_sizes) {
  char local = 0;
  char* p = (char*)mi_malloc(1000);
  MI_CHECK_EQ(malloc_object_size(p), mi_usable_size(p));
  MI_CHECK_EQ(malloc_object_size(p + 300), mi_usable_size(p) - 300);
  MI_CHECK_EQ(malloc_object_size_fast(p + 300), mi_usable_size(p) - 300);
  MI_CHECK_EQ(malloc_object_size(&local), SIZE_MAX);
  MI_CHECK_EQ(malloc_object_size_fast(&local), SIZE_MAX);
  MI_CHECK_EQ(malloc_object_size(NULL), 0);
  MI_CHECK_EQ(malloc_object_size_fast(NULL), 0);
  mi_free(p);
}

MI_TEST(usable_sizes) {
  size_t size = 0;
  size_t before = 0;
  void* p = mi_umalloc(100, &size);
  use(p, 100, 1);
  MI_CHECK_EQ(size, mi_usable_size(p));
  const size_t first = size;
  p = mi_urealloc(p, 10000, &before, &size);
  MI_CHECK_EQ(before, first);
  MI_CHECK_EQ(size, mi_usable_size(p));
  mi_ufree(p, &before);
  MI_CHECK_EQ(before, size);
  mi_free(p = mi_ucalloc(3, 5, &size));
  MI_CHECK(p != NULL && size >= 15);
  p = mi_umalloc_aligned(10, 256, &size);
  check_at(p, 256, 0);
  MI_CHECK_EQ(size, mi_usable_size(p));
  mi_free(p);
  p = mi_uzalloc_aligned(10, 256, &size);
  check_at(p, 256, 0);
  use_zero(p, 10);
  mi_free(p);
  p = mi_umalloc_small(10, &size);
  MI_CHECK_EQ(size, mi_usable_size(p));
  mi_free(p);
  p = mi_uzalloc_small(10, &size);
  use_zero(p, 10);
  MI_CHECK_EQ(size, mi_usable_size(p));
  mi_free(p);
}

MI_TEST(aligned) {
  void* p = mi_malloc_aligned(100, 64);
  check_at(p, 64, 0);
  p = mi_realloc_aligned(p, 1000, 128);
  check_at(p, 128, 0);
  p = mi_realloc_aligned_at(p, 2000, 128, 8);
  check_at(p, 128, 8);
  mi_free_aligned(p, 128);
  p = mi_malloc_aligned_at(100, 64, 24);
  check_at(p, 64, 24);
  mi_free(p);
  p = mi_zalloc_aligned(100, 4096);
  check_at(p, 4096, 0);
  use_zero(p, 100);
  p = mi_rezalloc_aligned(p, 9000, 4096);
  check_at(p, 4096, 0);
  p = mi_rezalloc_aligned_at(p, 10000, 4096, 16);
  check_at(p, 4096, 16);
  mi_free(p);
  p = mi_zalloc_aligned_at(100, 512, 40);
  check_at(p, 512, 40);
  use_zero(p, 100);
  mi_free(p);
  p = mi_calloc_aligned(10, 10, 32);
  check_at(p, 32, 0);
  use_zero(p, 100);
  p = mi_recalloc_aligned(p, 30, 10, 64);
  check_at(p, 64, 0);
  p = mi_recalloc_aligned_at(p, 40, 10, 64, 16);
  check_at(p, 64, 16);
  p = mi_aligned_recalloc(p, 50, 10, 64);
  check_at(p, 64, 0);
  p = mi_aligned_offset_recalloc(p, 60, 10, 64, 48);
  check_at(p, 64, 48);
  mi_free(p);
  p = mi_calloc_aligned_at(10, 10, 64, 4);
  check_at(p, 64, 4);
  use_zero(p, 100);
  mi_free_size_aligned(p, 100, 64);
}

MI_TEST(other_interfaces) {
  void* p = mi_memalign(64, 10);
  check_at(p, 64, 0);
  MI_CHECK_EQ(mi_malloc_size(p), mi_usable_size(p));
  MI_CHECK_EQ(mi_malloc_usable_size(p), mi_usable_size(p));
  MI_CHECK(mi_cfree(p));
  MI_CHECK_EQ(mi_malloc_good_size(77), mi_good_size(77));
  p = mi_aligned_alloc(128, 10);
  check_at(p, 128, 0);
  MI_CHECK_PTR_EQ(mi__expand(p, 10), p);
  mi_free_size(p, 10);
  p = mi_valloc(10);
  check_at(p, (size_t)sysconf(_SC_PAGESIZE), 0);
  mi_free(p);
  p = mi_pvalloc(10);
  check_at(p, (size_t)sysconf(_SC_PAGESIZE), 0);
  MI_CHECK(mi_usable_size(p) >= (size_t)sysconf(_SC_PAGESIZE));
  mi_free(p);
  MI_CHECK_EQ(mi_posix_memalign(&p, 64, 10), 0);
  check_at(p, 64, 0);
  mi_free(p);
  MI_CHECK_EQ(mi__posix_memalign(&p, 256, 10), 0);
  check_at(p, 256, 0);
  p = mi_reallocarray(p, 3, 100);
  use(p, 300, 1);
  MI_CHECK_EQ(mi_reallocarr(&p, 4, 100), 0);
  MI_CHECK(p != NULL && mi_test_all_bytes(p, 300, 1));
  MI_CHECK_EQ(mi_reallocarr(&p, 0, 100), 0);
  MI_CHECK_PTR_EQ(p, NULL);
}

MI_TEST(new_family) {
  void* p = mi_new(10);
  use(p, 10, 1);
  p = mi_new_realloc(p, 1000);
  MI_CHECK(mi_test_all_bytes(p, 10, 1));
  p = mi_new_reallocn(p, 100, 20);
  MI_CHECK(mi_test_all_bytes(p, 10, 1));
  mi_free(p);
  p = mi_new_aligned(10, 64);
  check_at(p, 64, 0);
  mi_free(p);
  p = mi_new_nothrow(10);
  use(p, 10, 1);
  mi_free(p);
  p = mi_new_aligned_nothrow(10, 512);
  check_at(p, 512, 0);
  mi_free(p);
  p = mi_new_n(10, 10);
  use(p, 100, 1);
  mi_free(p);
}

MI_TEST(heaps) {
  mi_heap_t* h = mi_heap_new();
  if (!MI_CHECK(h != NULL)) return;
  MI_CHECK(mi_heap_main() != NULL && mi_heap_main() != h);
  void* p = mi_heap_malloc(h, 100);
  use(p, 100, 7);
  p = mi_heap_realloc(h, p, 500);
  MI_CHECK(mi_test_all_bytes(p, 100, 7));
  p = mi_heap_reallocn(h, p, 10, 100);
  p = mi_heap_reallocf(h, p, 2000);
  MI_CHECK(mi_test_all_bytes(p, 100, 7));
  mi_free(p);
  use_zero(p = mi_heap_zalloc(h, 100), 100);
  p = mi_heap_rezalloc(h, p, 1000);
  p = mi_heap_recalloc(h, p, 10, 1000);
  MI_CHECK(mi_test_all_bytes(p, 100, 0x5a) && mi_test_all_bytes((char*)p + 1000, 9000, 0));
  mi_free(p);
  use_zero(mi_heap_calloc(h, 10, 10), 100);
  use(mi_heap_mallocn(h, 10, 10), 100, 1);
  use(mi_heap_malloc_small(h, 10), 10, 1);
  use_zero(mi_heap_zalloc_small(h, 10), 10);
  MI_CHECK_STREQ(mi_heap_strdup(h, "abc"), "abc");
  MI_CHECK_STREQ(mi_heap_strndup(h, "abc", 1), "a");
  MI_CHECK_STREQ(mi_heap_realpath(h, "//", NULL), "/");
  check_at(p = mi_heap_malloc_aligned(h, 10, 64), 64, 0);
  check_at(p = mi_heap_realloc_aligned(h, p, 100, 128), 128, 0);
  check_at(p = mi_heap_realloc_aligned_at(h, p, 100, 128, 32), 128, 32);
  check_at(mi_heap_malloc_aligned_at(h, 10, 64, 8), 64, 8);
  check_at(p = mi_heap_zalloc_aligned(h, 10, 64), 64, 0);
  use_zero(p, 10);
  check_at(p = mi_heap_rezalloc_aligned(h, p, 100, 64), 64, 0);
  check_at(p = mi_heap_rezalloc_aligned_at(h, p, 200, 64, 16), 64, 16);
  check_at(p = mi_heap_zalloc_aligned_at(h, 10, 64, 8), 64, 8);
  use_zero(p, 10);
  check_at(p = mi_heap_calloc_aligned(h, 10, 10, 64), 64, 0);
  use_zero(p, 100);
  check_at(p = mi_heap_recalloc_aligned(h, p, 20, 10, 64), 64, 0);
  check_at(p = mi_heap_recalloc_aligned_at(h, p, 30, 10, 64, 16), 64, 16);
  check_at(p = mi_heap_calloc_aligned_at(h, 10, 10, 64, 8), 64, 8);
  use_zero(p, 100);
  use(mi_heap_alloc_new(h, 10), 10, 1);
  use(p = mi_heap_alloc_new_n(h, 10, 10), 100, 9);
  mi_heap_collect(h, true);
  MI_CHECK(mi_test_all_bytes(p, 100, 9));
  mi_heap_destroy(h);
  h = mi_heap_new();
  if (!MI_CHECK(h != NULL)) return;
  use(p = mi_heap_malloc(h, 100), 100, 8);
  mi_heap_delete(h);
  MI_CHECK(mi_test_all_bytes(p, 100, 8));
  mi_free(p);
  mi_heap_delete(NULL);
  mi_heap_destroy(NULL);
}

static void count_text(const char* msg, void* arg) { *(size_t*)arg += strlen(msg); }
static void note_error(int err, void* arg) { *(int*)arg = err; }

MI_TEST(process) {
  MI_CHECK_EQ(mi_version(), MI_MALLOC_VERSION);
  mi_process_init();
  mi_thread_init();
  mi_collect(false);
  mi_collect(true);
  size_t elapsed = 0, user = 0, sys = 0, rss = 0, peak_rss = 0, commit = 0, peak_commit = 0, faults = 0;
  mi_process_info(&elapsed, &user, &sys, &rss, &peak_rss, &commit, &peak_commit, &faults);
  MI_CHECK(rss > 0 && peak_rss > 0 && peak_commit >= commit && user + sys < 3600 * 1000);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  void* p = mi_malloc(10);
  MI_CHECK(mi_is_in_heap_region(p) && mi_check_owned(p));
  MI_CHECK(!mi_is_in_heap_region(&p) && !mi_check_owned(&p) && !mi_is_in_heap_region(NULL));
  mi_free(p);
  MI_CHECK(mi_is_redirected() == mi_is_redirected());
  size_t text = 0;
  mi_process_info_print_out(count_text, &text);
  MI_CHECK(text > 0);
  text = 0;
  mi_stats_print_out(count_text, &text);
  MI_CHECK(text > 0);
  text = 0;
  mi_thread_stats_print_out(count_text, &text);
  MI_CHECK(text > 0);
  text = 0;
  mi_options_print_out(count_text, &text);
  MI_CHECK(text > 0);
  // What goes to the registered output.
  mi_register_output(count_text, &text);
  void (*const printers[])(void) = {mi_process_info_print, mi_options_print};
  for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++) {
    text = 0;
    printers[i]();
    MI_CHECK(text > 0);
  }
  text = 0;
  mi_stats_print(NULL);
  MI_CHECK(text > 0);
  int err = 0;
  mi_register_error(note_error, &err);
  MI_CHECK_PTR_EQ(mi_malloc(mi_test_hide_size(SIZE_MAX)), NULL);
  MI_CHECK(err == ENOMEM || err == EOVERFLOW);
  mi_register_error(NULL, NULL);
  mi_register_output(NULL, NULL);
  mi_stats_merge();
  mi_stats_reset();
  mi_thread_done();
  mi_free(mi_malloc(10));
}

MI_TEST(options) {
  const mi_option_t o = mi_option_verbose;
  const long before = mi_option_get(o);
  mi_option_set(o, 0);
  MI_CHECK(!mi_option_is_enabled(o));
  mi_option_set_enabled(mi_option_destroy_on_exit, false);
  MI_CHECK_EQ(mi_option_get(mi_option_destroy_on_exit), 0);
  mi_option_enable(mi_option_destroy_on_exit);
  MI_CHECK(mi_option_is_enabled(mi_option_destroy_on_exit));
  mi_option_disable(mi_option_destroy_on_exit);
  MI_CHECK(!mi_option_is_enabled(mi_option_destroy_on_exit));
  // Set by the program: a default changes nothing any more.
  mi_option_set_default(mi_option_destroy_on_exit, 1);
  mi_option_set_enabled_default(mi_option_destroy_on_exit, true);
  MI_CHECK_EQ(mi_option_get(mi_option_destroy_on_exit), 0);
  mi_option_set(mi_option_minimal_purge_size, 64);
  MI_CHECK_EQ(mi_option_get_size(mi_option_minimal_purge_size), 64 * 1024);
  MI_CHECK_EQ(mi_option_get_clamp(mi_option_minimal_purge_size, 1, 10), 10);
  MI_CHECK_EQ(mi_option_get_clamp(mi_option_minimal_purge_size, 100, 200), 100);
  MI_CHECK_EQ(mi_option_get_clamp(mi_option_minimal_purge_size, 1, 100), 64);
  MI_CHECK_EQ(mi_option_get((mi_option_t)62), 0);  // no option of ours
  mi_option_set(o, before);
}

typedef struct pair_s {
  long a, b;
} pair_t;

// MI_API_V2 has another order (header_calls_v2.h).
#if !defined(MI_API_V2)
MI_TEST(typed) {
  pair_t* p = mi_malloc_tp(pair_t);
  use(p, sizeof(pair_t), 1);
  mi_free_tp(pair_t, p);
  use_zero(p = mi_zalloc_tp(pair_t), sizeof(pair_t));
  mi_free(p);
  use_zero(p = mi_calloc_tp(pair_t, 3), 3 * sizeof(pair_t));
  p = mi_recalloc_tp(pair_t, p, 30);
  MI_CHECK(p != NULL && p[29].b == 0);
  mi_free(p);
  use(p = mi_mallocn_tp(pair_t, 3), 3 * sizeof(pair_t), 1);
  p = mi_reallocn_tp(pair_t, p, 100);
  MI_CHECK(mi_test_all_bytes(p, 3 * sizeof(pair_t), 1));
  mi_free(p);
  mi_heap_t* h = mi_heap_new();
  if (!MI_CHECK(h != NULL)) return;
  use(mi_heap_malloc_tp(pair_t, h), sizeof(pair_t), 1);
  use_zero(mi_heap_zalloc_tp(pair_t, h), sizeof(pair_t));
  use_zero(p = mi_heap_calloc_tp(pair_t, h, 3), 3 * sizeof(pair_t));
  p = mi_heap_recalloc_tp(pair_t, h, p, 30);
  MI_CHECK(p != NULL && p[29].b == 0);
  p = mi_heap_mallocn_tp(pair_t, h, 3);
  p = mi_heap_reallocn_tp(pair_t, h, p, 30);
  use(p, 30 * sizeof(pair_t), 1);
  mi_heap_destroy(h);
}
#endif

// Last: the end of the process may be told early, and what follows still works.
MI_TEST(process_done) {
  mi_process_done();
  void* p = mi_malloc(100);
  use(p, 100, 1);
  mi_free(p);
}
