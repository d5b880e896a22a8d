// Owns: one misuse of a heap, or of a block that went with its heap, a run, chosen by the arguments.
// May include: test/lib, POSIX.
// Called by: rows of test/death/rows.txt: heaps CASE [SIZE].
// Invariants: prints `pointer 0x...` of the misused address before the misuse; ends with 0 when the misuse went unnoticed or was allowed.
// Flags: -pthread -ldl -fno-builtin
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <pthread.h>

#include "test/lib/test.h"

static size_t size = 24;

static void* (*mi_heap_new)(void);
static void (*mi_heap_delete)(void*);
static void (*mi_heap_destroy)(void*);
static void* (*mi_heap_malloc)(void*, size_t);

static void* name_of(const char* name) {
  void* const f = dlsym(RTLD_DEFAULT, name);
  MI_REQUIRE(f != NULL);
  return f;
}

static void* announce(const volatile void* p) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", (unsigned long long)(uintptr_t)p);
  mi_test_write(1, line, (size_t)n);
  return mi_test_hide(p);
}

static void* get(void* heap) {
  void* const p = mi_heap_malloc(heap, mi_test_hide_size(size));
  MI_REQUIRE(p != NULL);
  memset(p, 0x41, size);
  return mi_test_hide(p);
}

// With others around it, so that its memory is no page by itself.
static void* get_among_others(void* heap) {
  for (int i = 0; i < 50; i++) get(heap);
  void* const p = get(heap);
  for (int i = 0; i < 50; i++) get(heap);
  return p;
}

static void deleted_twice(void* heap) {
  mi_heap_delete(heap);
  mi_heap_delete(announce(heap));
}

static void destroyed_twice(void* heap) {
  mi_heap_destroy(heap);
  mi_heap_destroy(announce(heap));
}

static void deleted_then_destroyed(void* heap) {
  get(heap);
  mi_heap_delete(heap);
  mi_heap_destroy(announce(heap));
}

static void used_after_delete(void* heap) {
  get(heap);
  mi_heap_delete(heap);
  get(announce(heap));
}

static void used_after_destroy(void* heap) {
  get(heap);
  mi_heap_destroy(heap);
  get(announce(heap));
}

static void* use(void* heap) {
  get(heap);
  return NULL;
}

static void used_after_destroy_by_another(void* heap) {
  pthread_t t;
  mi_heap_destroy(heap);
  announce(heap);
  MI_REQUIRE(pthread_create(&t, NULL, &use, heap) == 0);
  pthread_join(t, NULL);
}

static void block_of_destroyed(void* heap) {
  void* const p = get_among_others(heap);
  mi_heap_destroy(heap);
  free(announce(p));
}

static void block_of_destroyed_later(void* heap) {
  void* const p = get_among_others(heap);
  mi_heap_destroy(heap);
  for (int i = 0; i < 2000; i++) free(malloc((size_t)i * 3));
  free(announce(p));
}

static void freed_block_of_destroyed(void* heap) {
  void* const p = get_among_others(heap);
  free(p);
  mi_heap_destroy(heap);
  free(announce(p));
}

static void block_of_deleted_twice(void* heap) {
  void* const p = get_among_others(heap);
  mi_heap_delete(heap);
  free(p);
  free(announce(p));
}

static void* free_it(void* p) {
  free(p);
  return NULL;
}

static void block_of_destroyed_by_another(void* heap) {
  pthread_t t;
  void* const p = get_among_others(heap);
  mi_heap_destroy(heap);
  MI_REQUIRE(pthread_create(&t, NULL, &free_it, announce(p)) == 0);
  pthread_join(t, NULL);
}

static void overflow_in_destroyed(void* heap) {
  unsigned char* const p = get_among_others(heap);
  announce(p);
  ((volatile unsigned char*)p)[size] = 0x42;
  mi_heap_destroy(heap);
}

// What is no misuse: full blocks, free ones, and others' in a heap that is destroyed.
static void nothing_wrong(void* heap) {
  pthread_t t;
  for (int i = 0; i < 1000; i++) {
    size = (size_t)i * (size_t)i % 100000;
    void* const p = get(heap);
    if (i % 3 == 0) free(p);
    if (i % 300 == 1) {
      MI_REQUIRE(pthread_create(&t, NULL, &free_it, p) == 0);
      pthread_join(t, NULL);
    }
  }
  MI_REQUIRE(pthread_create(&t, NULL, &use, heap) == 0);
  pthread_join(t, NULL);
  mi_heap_destroy(heap);
}

static const struct {
  const char* name;
  void (*run)(void* heap);
} cases[] = {
    {"deleted-twice", deleted_twice},
    {"destroyed-twice", destroyed_twice},
    {"deleted-then-destroyed", deleted_then_destroyed},
    {"used-after-delete", used_after_delete},
    {"used-after-destroy", used_after_destroy},
    {"used-after-destroy-by-another", used_after_destroy_by_another},
    {"block-of-destroyed", block_of_destroyed},
    {"block-of-destroyed-later", block_of_destroyed_later},
    {"block-of-destroyed-by-another", block_of_destroyed_by_another},
    {"freed-block-of-destroyed", freed_block_of_destroyed},
    {"block-of-deleted-twice", block_of_deleted_twice},
    {"overflow-in-destroyed", overflow_in_destroyed},
    {"nothing-wrong", nothing_wrong},
};

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2) size = strtoull(argv[2], NULL, 10);
  *(void**)&mi_heap_new = name_of("mi_heap_new");
  *(void**)&mi_heap_delete = name_of("mi_heap_delete");
  *(void**)&mi_heap_destroy = name_of("mi_heap_destroy");
  *(void**)&mi_heap_malloc = name_of("mi_heap_malloc");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    void* const heap = mi_heap_new();
    MI_REQUIRE(heap != NULL);
    cases[i].run(heap);
    // The allocator still works.
    void* const p = malloc(1000);
    MI_REQUIRE(p != NULL);
    memset(p, 1, 1000);
    free(p);
    mi_test_write(1, "went on\n", 8);
    return mi_test_failure_count() > 0 ? 1 : 0;
  }
  return 2;
}
