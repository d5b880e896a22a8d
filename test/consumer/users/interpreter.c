// Owns: an interpreter, as one is written for version 3 of the interface: an isolate has a heap that its threads share, each
// through its own theap; a collector visits what is live; workers of a pool and guests have sub-processes and arenas.
// May include: users.h, mimalloc.h, mimalloc-stats.h, the C library, threads.
// Called by: users_test.py, which compiles it as C and as C++ for each standard, and runs it with each variant.
// Invariants: types and argument orders of version 3.
#include "mimalloc.h"

#include <pthread.h>
#include <stdint.h>

#include "users.h"

typedef struct object_s {
  struct object_s* next;
  long marked;
  long values[4];
} object_t;

typedef struct isolate_s {
  mi_heap_t* heap;
  pthread_mutex_t lock;
  object_t* objects;
} isolate_t;

enum { THREADS = 4,
       OBJECTS = 5000 };

// One thread of an isolate.
static void* run(void* arg) {
  isolate_t* const isolate = (isolate_t*)arg;
  mi_thread_set_in_threadpool();
  mi_theap_t* const theap = mi_heap_theap(isolate->heap);
  NEED(theap != NULL);
  mi_theap_t* const before = mi_theap_set_default(theap);
  for (int i = 0; i < OBJECTS; i++) {
    object_t* const o = (object_t*)(i % 2 == 0 ? mi_theap_malloc_csize(theap, sizeof(object_t)) : mi_malloc_tp(object_t));
    NEED(o != NULL && mi_heap_of(o) == isolate->heap);
    o->marked = i % 2;
    pthread_mutex_lock(&isolate->lock);
    o->next = isolate->objects;
    isolate->objects = o;
    pthread_mutex_unlock(&isolate->lock);
  }
  void* p = mi_theap_zalloc(theap, 100);
  p = mi_theap_realloc(theap, p, 1000);
  NEED(mi_theap_get_default() == theap && mi_heap_contains(isolate->heap, p));
  mi_free(p);
  mi_theap_set_default(before);
  mi_theap_collect(theap, false);
  return NULL;
}

static bool count_live(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap;
  (void)area;
  *(size_t*)arg += block != NULL && size >= sizeof(object_t);
  return true;
}

static bool count_heap(mi_heap_t* heap, void* arg) {
  *(size_t*)arg += heap != NULL;
  return true;
}

static void isolates(void) {
  isolate_t isolate;
  isolate.heap = mi_heap_new();
  isolate.objects = NULL;
  NEED(isolate.heap != NULL && pthread_mutex_init(&isolate.lock, NULL) == 0);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) NEED(pthread_create(&threads[i], NULL, run, &isolate) == 0);
  for (int i = 0; i < THREADS; i++) NEED(pthread_join(threads[i], NULL) == 0);
  size_t live = 0;
  NEED(mi_heap_visit_blocks(isolate.heap, true, count_live, &live) && live == THREADS * OBJECTS);
  // Sweep: what is not marked goes.
  for (object_t** at = &isolate.objects; *at != NULL;) {
    object_t* const o = *at;
    if (o->marked == 0) {
      *at = o->next;
      mi_free_tp(object_t, o);
    } else {
      at = &o->next;
    }
  }
  live = 0;
  NEED(mi_heap_visit_blocks(isolate.heap, true, count_live, &live) && live == THREADS * OBJECTS / 2);
  NEED(mi_any_heap_contains(isolate.objects) && !mi_any_heap_contains(&live));
  object_t* many = mi_heap_calloc_tp(object_t, isolate.heap, 10);
  many = mi_heap_recalloc_tp(object_t, isolate.heap, many, 100);
  many = mi_heap_reallocn_tp(object_t, isolate.heap, many, 50);
  NEED(many != NULL && many[49].marked == 0 && mi_heap_malloc_tp(object_t, isolate.heap) != NULL);
  size_t heaps = 0;
  NEED(mi_subproc_visit_heaps(mi_subproc_main(), count_heap, &heaps) && heaps >= 2);
  mi_heap_destroy(isolate.heap);
  pthread_mutex_destroy(&isolate.lock);
}

// A guest whose memory is given back as a whole.
static void* guest(void* arg) {
  const mi_subproc_id_t sub = *(const mi_subproc_id_t*)arg;
  mi_subproc_add_current_thread(sub);
  NEED(mi_subproc_current()._mi_subproc_id == sub._mi_subproc_id);
  for (int i = 0; i < 1000; i++) NEED(mi_zalloc_csize(100) != NULL);  // never freed by itself
  return NULL;
}

static size_t committed;
static bool commit(bool on, void* start, size_t size, bool* is_zero, void* arg) {
  (void)start;
  NEED(arg == &committed);
  if (is_zero != NULL) *is_zero = false;
  committed = on ? committed + size : committed - size;
  return true;
}

static void arenas(void) {
  const size_t align = mi_arena_min_alignment(), size = (size_t)64 << 20;
  NEED(size >= mi_arena_min_size() && mi_arena_max_object_size() > 0);
  static char room[((size_t)64 << 20) + ((size_t)1 << 20)];
  char* const memory = room + (align - (uintptr_t)room % align) % align;
  NEED(memory + size <= room + sizeof(room));
  mi_arena_id_t id = NULL;
  NEED(mi_manage_memory(memory, size, false, false, false, -1, true, commit, &committed, &id) && id != NULL);
  mi_heap_t* const heap = mi_heap_new_in_arena(id);
  NEED(heap != NULL);
  mi_heap_set_numa_affinity(heap, 0);
  char* const p = (char*)mi_heap_malloc(heap, 100000);
  NEED(p != NULL && mi_arena_contains(id, p) && p >= memory && p < memory + size && committed > 0);
  memset(p, 1, 100000);
  mi_heap_destroy(heap);
}

int main(void) {
#if MI_MALLOC_VERSION < 30000
#error "a program for version 3"
#endif
  isolates();
  mi_subproc_id_t sub = mi_subproc_new();
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, guest, &sub) == 0 && pthread_join(thread, NULL) == 0);
  mi_subproc_destroy(sub);
  arenas();
  mi_collect(true);
  puts("ok");
  return 0;
}
