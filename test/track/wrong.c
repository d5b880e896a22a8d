// Owns: one heap error for each name of the table below, and as many programs without one.
// May include: the C library, mimalloc.h.
// Called by: track_test.py, under each tool.
// Invariants: a case makes its one error and goes on; every access is by a volatile pointer, so that the compiler neither sees nor
// removes it. What a case needs of the mi_ interface is looked for at run time: without it the case ends with 3.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mimalloc.h"

#pragma weak mi_heap_new
#pragma weak mi_heap_malloc
#pragma weak mi_heap_destroy
#pragma weak mi_malloc_aligned_at
#pragma weak mi_zalloc_aligned_at
#pragma weak mi_rezalloc
#pragma weak mi_free
#pragma weak mi_malloc
#pragma weak mi_collect
#pragma weak mi_manage_memory

enum { NEEDS_MI = 3,
       SMALL = 20,
       LARGE = 3 << 20,
       HUGE = 300 << 20 };

// operator new and delete, by the names they have where size_t is unsigned long.
void* _Znwm(size_t size);
void _ZdlPv(void* p);
void _ZdaPv(void* p);
void _ZdlPvm(void* p, size_t size);
#pragma weak _Znwm
#pragma weak _ZdlPv
#pragma weak _ZdaPv
#pragma weak _ZdlPvm

static volatile unsigned char sink;
static void* volatile kept;

static unsigned char* volatile* hide(void* p) {
  static unsigned char* volatile hidden;
  hidden = p;
  return &hidden;
}

// Blocks of the same size on both sides, so that a neighbour and not the end of a page is met.
static unsigned char* block(size_t size) {
  void* before = *hide(malloc(size));
  unsigned char* p = *hide(malloc(size));
  void* behind = *hide(malloc(size));
  free(before);
  free(behind);
  memset(p, 1, size);
  return p;
}

static void read_at(const unsigned char* p, ptrdiff_t at) {
  const volatile unsigned char* v = p;
  sink = v[at];
}

static void write_at(unsigned char* p, ptrdiff_t at) {
  volatile unsigned char* v = p;
  v[at] = 0x41;
}

static void need(int there) {
  if (!there) {
    exit(NEEDS_MI);
  }
}

static void read_behind(void) {
  unsigned char* p = block(SMALL);
  read_at(p, SMALL);
  free(p);
}
static void write_behind(void) {
  unsigned char* p = block(SMALL);
  write_at(p, SMALL);
  free(p);
}
static void read_before(void) {
  unsigned char* p = block(SMALL);
  read_at(p, -1);
  free(p);
}
static void write_before(void) {
  unsigned char* p = block(SMALL);
  write_at(p, -1);
  free(p);
}
static void write_behind_large(void) {
  unsigned char* p = block(LARGE + 5);
  write_at(p, LARGE + 5);
  free(p);
}
static void write_behind_calloc(void) {
  unsigned char* p = *hide(calloc(3, 7));
  write_at(p, 21);
  free(p);
}
static void write_behind_aligned(void) {
  unsigned char* p = *hide(memalign(256, 300));
  write_at(p, 300);
  free(p);
}
static void write_before_offset(void) {
  need(mi_malloc_aligned_at != NULL && mi_free != NULL);
  unsigned char* p = *hide(mi_malloc_aligned_at(100, 256, 64));
  write_at(p, -1);
  mi_free(p);
}
static void write_behind_offset(void) {
  need(mi_malloc_aligned_at != NULL && mi_free != NULL);
  unsigned char* p = *hide(mi_malloc_aligned_at(100, 256, 64));
  write_at(p, 100);
  mi_free(p);
}
static void write_behind_shrunk(void) {
  unsigned char* p = *hide(malloc(200));
  p = *hide(realloc(p, 150));
  write_at(p, 150);
  free(p);
}
static void write_behind_grown(void) {
  unsigned char* p = *hide(malloc(LARGE));
  p = *hide(realloc(p, 2 * LARGE));
  write_at(p, 2 * LARGE - 1);
  write_at(p, 2 * LARGE);
  free(p);
}
static void copy_behind(void) {
  unsigned char* p = block(SMALL);
  static char text[SMALL + 1];
  memset(text, 'x', sizeof(text));
  void* (*volatile copy)(void*, const void*, size_t) = memcpy;
  copy(p, text, sizeof(text));
  free(p);
}
static void read_of_nothing(void) {
  unsigned char* p = *hide(malloc(0));
  read_at(p, 0);
  free(p);
}
static void read_freed(void) {
  unsigned char* p = block(SMALL);
  free(p);
  read_at(p, 8);
}
// The rest of a page of blocks, none of which was handed out.
static void read_far_behind(void) {
  unsigned char* p = *hide(malloc(1000));
  read_at(p, 8000);
  free(p);
}
static void read_behind_shrunk_large(void) {
  unsigned char* p = *hide(malloc(LARGE));
  p = *hide(realloc(p, LARGE / 3));
  read_at(p, LARGE / 2);
  free(p);
}
static void write_freed(void) {
  unsigned char* p = block(SMALL);
  free(p);
  write_at(p, 8);
  // What is freed waits in some variants, and is looked at when it serves again.
  for (int i = 0; i < 4000; i++) {
    void* q = *hide(malloc(SMALL));
    free(*hide(malloc(SMALL)));
    free(q);
  }
}
static void read_freed_large(void) {
  unsigned char* p = block(LARGE);
  free(p);
  read_at(p, 100);
}
static void read_moved(void) {
  unsigned char* p = block(SMALL);
  unsigned char* q = *hide(realloc(p, 4000));
  if (q != p) {
    read_at(p, 8);
  }
  free(q);
}
static void* freeing(void* p) {
  free(p);
  return NULL;
}
static void read_freed_by_other(void) {
  unsigned char* p = block(SMALL);
  pthread_t thread;
  pthread_create(&thread, NULL, freeing, p);
  pthread_join(thread, NULL);
  read_at(p, 8);
}
static void read_destroyed(void) {
  need(mi_heap_new != NULL && mi_heap_malloc != NULL && mi_heap_destroy != NULL);
  mi_heap_t* heap = mi_heap_new();
  unsigned char* p = *hide(mi_heap_malloc(heap, SMALL));
  mi_heap_destroy(heap);
  read_at(p, 8);
}
static void free_twice(void) {
  unsigned char* p = block(SMALL);
  free(p);
  free(*hide(p));
}
static void free_twice_large(void) {
  unsigned char* p = block(LARGE);
  free(p);
  free(*hide(p));
}
static void free_twice_by_other(void) {
  unsigned char* p = block(SMALL);
  free(p);
  pthread_t thread;
  pthread_create(&thread, NULL, freeing, p);
  pthread_join(thread, NULL);
}
static void free_inside(void) {
  unsigned char* p = block(64);
  free(*hide(p + 16));
  free(p);
}
static void free_static(void) {
  static unsigned char array[64] __attribute__((aligned(16)));
  free(*hide(array));
}
static void free_of_new(void) {
  need(_Znwm != NULL);
  free(*hide(_Znwm(SMALL)));
}
static void delete_array_of_new(void) {
  need(_Znwm != NULL && _ZdaPv != NULL);
  _ZdaPv(*hide(_Znwm(SMALL)));
}
static void delete_other_size(void) {
  need(_Znwm != NULL && _ZdlPvm != NULL);
  _ZdlPvm(*hide(_Znwm(SMALL)), 400);
}
static void branch_on_fresh(void) {
  const volatile unsigned char* p = malloc(SMALL);
  if (p[3] == 42) {
    sink = 1;
  }
  free((void*)(uintptr_t)p);
}
static __attribute__((noinline)) void lose(size_t size) {
  void* volatile p = malloc(size);
  memset(p, 0, size);
  p = NULL;
  (void)p;
}
static __attribute__((noinline)) void wipe_stack(void) {
  volatile unsigned char room[4096];
  for (size_t i = 0; i < sizeof(room); i++) {
    room[i] = 0;
  }
}
static void leak(void) {
  for (int i = 0; i < 3; i++) {
    lose(SMALL);
  }
  wipe_stack();
}
static void leak_large(void) {
  lose(LARGE);
  wipe_stack();
}

// Between others, so that it cannot grow where it is.
static __attribute__((noinline)) void lose_moved(void) {
  void* volatile blocks[5];
  for (int i = 0; i < 5; i++) {
    blocks[i] = malloc(LARGE);
  }
  void* volatile p = realloc(blocks[2], 2 * LARGE);
  blocks[2] = NULL;
  write_at(p, 0);
  p = NULL;
  (void)p;
  for (int i = 0; i < 5; i++) {
    free(blocks[i]);
    blocks[i] = NULL;
  }
}
// A block with a mapping of its own.
static __attribute__((noinline)) void lose_mapping(void) {
  unsigned char* p = *hide(malloc(HUGE));
  write_at(p, 0);
  *hide(NULL);
}
static void leak_mapping(void) {
  lose_mapping();
  wipe_stack();
}
static void leak_moved(void) {
  lose_moved();
  wipe_stack();
}

// Without an error.

static void clean_sizes(void) {
  for (size_t size = 0; size < 70000; size += 1 + size / 9) {
    unsigned char* p = *hide(malloc(size));
    memset(p, 2, size);
    unsigned char* q = *hide(calloc(size, 3));
    for (size_t i = 0; i < 3 * size; i++) {
      if (q[i] != 0) {
        abort();
      }
    }
    p = *hide(realloc(p, 2 * size + 1));
    memset(p, 3, 2 * size + 1);
    p = *hide(realloc(p, size / 2 + 1));
    memset(p, 4, size / 2 + 1);
    memset(p, 5, malloc_usable_size(p));
    free(q);
    free(p);
  }
}
static void clean_large(void) {
  unsigned char* p = *hide(malloc(LARGE));
  for (int i = 1; i < 8; i++) {
    p = *hide(realloc(p, (size_t)i * LARGE / 2 + 1));
    memset(p, i, (size_t)i * LARGE / 2 + 1);
    free(*hide(calloc(1, LARGE)));
  }
  p = *hide(realloc(p, LARGE / 4));
  memset(p, 3, LARGE / 4);
  free(p);
}
// Memory that was a block's, and is the program's by other means.
static void clean_mappings(void) {
  const size_t size = HUGE;
  unsigned char* p = *hide(malloc(size));
  write_at(p, 0);
  free(p);
  unsigned char* q = *hide(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  for (size_t at = 0; at < size; at += size / 64) {
    write_at(q, (ptrdiff_t)at);
  }
  munmap(q, size);
}
static void clean_aligned(void) {
  for (size_t align = 16; align <= 1 << 20; align *= 2) {
    void* p = *hide(memalign(align, align / 2 + 3));
    memset(p, 2, align / 2 + 3);
    if (mi_malloc_aligned_at != NULL) {
      void* q = *hide(mi_malloc_aligned_at(align + 9, align, 8));
      memset(q, 2, align + 9);
      mi_free(q);
    }
    free(p);
  }
}
// Bytes that are zero as the program asked count as written.
static void read_zeroes(const unsigned char* p, size_t from, size_t size) {
  for (size_t i = from; i < size; i += 1 + size / 512) {
    if (p[i] != 0) {
      abort();
    }
  }
}
static void clean_zeroed(void) {
  if (mi_zalloc_aligned_at == NULL || mi_rezalloc == NULL) {
    return;
  }
  for (size_t size = 10; size < 4 * LARGE; size = size * 7 + 1) {
    unsigned char* p = *hide(mi_zalloc_aligned_at(size, 64, 8));
    read_zeroes(p, 0, size);
    mi_free(p);
    p = *hide(mi_rezalloc(NULL, size));
    read_zeroes(p, 0, size);
    memset(p, 1, size);
    p = *hide(mi_rezalloc(p, 3 * size));
    read_zeroes(p, size, 3 * size);
    memset(p, 1, 3 * size);
    p = *hide(mi_rezalloc(p, 2 * size));
    p = *hide(mi_rezalloc(p, 9 * size));
    read_zeroes(p, 2 * size, 9 * size);
    mi_free(p);
  }
}
enum { RING = 64,
       ROUNDS = 30 };
static void* volatile ring[RING];
static void* churning(void* arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;
  for (int i = 0; i < ROUNDS * RING; i++) {
    seed = seed * 1103515245U + 12345U;
    const size_t size = (seed >> 8) % 3000 + 8;
    unsigned char* p = malloc(size);
    memset(p, 7, size);
    p = __atomic_exchange_n(&ring[(seed >> 20) % RING], p, __ATOMIC_ACQ_REL);
    free(p);
  }
  return NULL;
}
static void clean_threads(void) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; i++) {
    pthread_create(&threads[i], NULL, churning, (void*)(i + 1));
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < RING; i++) {
    free(ring[i]);
  }
}
static void clean_fork(void) {
  unsigned char* p = block(SMALL);
  const pid_t child = fork();
  if (child == 0) {
    memset(p, 3, SMALL);
    free(p);
    free(*hide(malloc(100)));
    exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  free(p);
  if (status != 0) {
    abort();
  }
}
static void clean_heaps(void) {
  need(mi_heap_new != NULL && mi_heap_malloc != NULL && mi_heap_destroy != NULL && mi_malloc_aligned_at != NULL);
  for (int round = 0; round < 20; round++) {
    mi_heap_t* heap = mi_heap_new();
    for (size_t size = 1; size < 900000; size += size / 2 + 1) {
      memset(*hide(mi_heap_malloc(heap, size)), 1, size);
    }
    mi_heap_destroy(heap);
  }
  mi_collect(true);
}
// A block that only an arena knows, which hands its address to the program's own function.
static bool committing(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  (void)commit, (void)start, (void)size;
  *is_zero = false;
  return arg != NULL;
}
static __attribute__((noinline)) void lend(void) {
  void* p = mmap(NULL, HUGE / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mi_arena_id_t id;
  if (!mi_manage_memory(p, HUGE / 4, false, false, false, -1, true, committing, malloc(SMALL), &id)) {
    abort();
  }
}
static void clean_lent(void) {
  need(mi_manage_memory != NULL);
  lend();
  wipe_stack();
}
// A block that the program has a pointer to in a block that it has a pointer to.
static void clean_reachable(void) {
  void** first = malloc(SMALL);
  first[0] = malloc(LARGE);
  first[1] = malloc(SMALL);
  *(void**)first[0] = malloc(50);
  kept = first;
  wipe_stack();
}
static void clean_strings(void) {
  char* text = strdup("a word");
  char* part = strndup(text, 3);
  char* line = NULL;
  if (asprintf(&line, "%s %s", text, part) < 0) {
    abort();
  }
  free(text);
  free(part);
  free(line);
}

#define ROW(name) \
  { #name, name }
static const struct {
  const char* name;
  void (*run)(void);
} rows[] = {
    ROW(read_behind),
    ROW(write_behind),
    ROW(read_before),
    ROW(write_before),
    ROW(write_behind_large),
    ROW(write_behind_calloc),
    ROW(write_behind_aligned),
    ROW(write_before_offset),
    ROW(write_behind_offset),
    ROW(write_behind_shrunk),
    ROW(write_behind_grown),
    ROW(copy_behind),
    ROW(read_of_nothing),
    ROW(read_freed),
    ROW(write_freed),
    ROW(read_freed_large),
    ROW(read_moved),
    ROW(read_freed_by_other),
    ROW(read_destroyed),
    ROW(free_twice),
    ROW(free_twice_large),
    ROW(free_twice_by_other),
    ROW(free_inside),
    ROW(free_static),
    ROW(free_of_new),
    ROW(delete_array_of_new),
    ROW(delete_other_size),
    ROW(branch_on_fresh),
    ROW(leak),
    ROW(leak_large),
    ROW(leak_moved),
    ROW(leak_mapping),
    ROW(read_far_behind),
    ROW(read_behind_shrunk_large),
    ROW(clean_sizes),
    ROW(clean_large),
    ROW(clean_mappings),
    ROW(clean_aligned),
    ROW(clean_zeroed),
    ROW(clean_threads),
    ROW(clean_fork),
    ROW(clean_heaps),
    ROW(clean_reachable),
    ROW(clean_lent),
    ROW(clean_strings),
};

int main(int argc, char** argv) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (argc == 1) {
      puts(rows[i].name);
    } else if (strcmp(argv[1], rows[i].name) == 0) {
      rows[i].run();
      return 0;
    }
  }
  return argc == 1 ? 0 : 2;
}
