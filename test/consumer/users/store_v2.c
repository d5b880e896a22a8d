// Owns: a store of keys and values, as one is written for version 2 of the interface: it accounts for its memory, has a heap for
// each database, one in an arena of its own, counts and defragments what lies in them, and keeps a plugin's threads apart.
// May include: users.h, mimalloc.h with MI_API_V2, the C library, threads.
// Called by: users_test.py, which compiles it as C and as C++ for each standard, and runs it with each variant.
// Invariants: types and argument orders of version 2; nothing of version 3.
#define MI_API_V2 1
#include "mimalloc.h"

#include <pthread.h>
#include <stdint.h>

#include "users.h"

// ---- Memory that is accounted for

static size_t used_memory;

static void* zmalloc(size_t size) {
  size_t usable;
  void* const p = mi_umalloc(size, &usable);
  NEED(p != NULL && usable == mi_usable_size(p));
  used_memory += usable;
  return p;
}

static void* zrealloc(void* p, size_t size) {
  size_t before, after;
  p = mi_urealloc(p, size, &before, &after);
  NEED(p != NULL);
  used_memory = used_memory - before + after;
  return p;
}

static void zfree(void* p) {
  size_t usable;
  mi_ufree(p, &usable);
  used_memory -= usable;
}

// ---- A table of entries in a heap

typedef struct entry_s {
  struct entry_s* next;
  char* key;
  long value;
} entry_t;

typedef struct db_s {
  mi_heap_t* heap;
  entry_t** buckets;
  size_t size, count;
} db_t;

static size_t hash(const char* key) {
  size_t h = 5381;
  while (*key != 0) h = h * 33 + (unsigned char)*key++;
  return h;
}

static db_t db_new(mi_heap_t* heap) {
  db_t db;
  NEED(heap != NULL);
  db.heap = heap;
  db.size = 16;
  db.count = 0;
  db.buckets = mi_heap_calloc_tp(heap, entry_t*, db.size);
  NEED(db.buckets != NULL);
  return db;
}

static void db_grow(db_t* db) {
  entry_t** const old = db->buckets;
  const size_t old_size = db->size;
  db->size *= 2;
  db->buckets = mi_heap_calloc_tp(db->heap, entry_t*, db->size);
  NEED(db->buckets != NULL);
  for (size_t i = 0; i < old_size; i++) {
    for (entry_t *e = old[i], *next; e != NULL; e = next) {
      next = e->next;
      entry_t** const bucket = &db->buckets[hash(e->key) & (db->size - 1)];
      e->next = *bucket;
      *bucket = e;
    }
  }
  mi_free(old);
}

static void db_set(db_t* db, const char* key, long value) {
  if (db->count == db->size) db_grow(db);
  entry_t* const e = mi_heap_zalloc_tp(db->heap, entry_t);
  NEED(e != NULL);
  entry_t** const bucket = &db->buckets[hash(key) & (db->size - 1)];
  e->next = *bucket;
  e->key = mi_heap_strdup(db->heap, key);
  e->value = value;
  *bucket = e;
  db->count++;
}

static const entry_t* db_get(const db_t* db, const char* key) {
  const entry_t* e = db->buckets[hash(key) & (db->size - 1)];
  while (e != NULL && strcmp(e->key, key) != 0) e = e->next;
  return e;
}

static void db_fill(db_t* db, long count) {
  char key[32];
  for (long i = 0; i < count; i++) {
    snprintf(key, sizeof(key), "key:%ld", i);
    db_set(db, key, i);
  }
  NEED(db->count == (size_t)count && db_get(db, "key:7")->value == 7 && db_get(db, "none") == NULL);
}

// ---- What lies in a heap

typedef struct count_s {
  size_t areas, blocks, bytes;
  int tag;
} count_t;

static bool count_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  count_t* const count = (count_t*)arg;
  (void)heap;
  if (block == NULL) {
    NEED(area->used <= area->reserved && area->block_size <= area->full_block_size);
    count->areas++;
    count->tag = area->heap_tag;
  } else {
    NEED((char*)block >= (char*)area->blocks && (char*)block < (char*)area->blocks + area->reserved);
    count->blocks++;
    count->bytes += size;
  }
  return true;
}

static count_t count_heap(const db_t* db) {
  count_t count;
  memset(&count, 0, sizeof(count));
  NEED(mi_heap_visit_blocks(db->heap, true, count_block, &count));
  return count;
}

// Moves an entry's key where its page has become empty, as active defragmentation does.
static size_t db_defrag(db_t* db) {
  size_t moved = 0;
  for (size_t i = 0; i < db->size; i++) {
    for (entry_t* e = db->buckets[i]; e != NULL; e = e->next) {
      if (mi_unsafe_heap_page_is_under_utilized(db->heap, e->key, 80)) {
        char* const copy = mi_heap_strdup(db->heap, e->key);
        mi_free(e->key);
        e->key = copy;
        moved++;
      }
    }
  }
  return moved;
}

// ---- A plugin in a sub-process of its own

static void* plugin(void* arg) {
  mi_subproc_add_current_thread(*(mi_subproc_id_t*)arg);
  for (int i = 0; i < 1000; i++) {
    zfree(zmalloc((size_t)i));
  }
  return NULL;
}

static unsigned long long last_heartbeat;
static void deferred(bool force, unsigned long long heartbeat, void* arg) {
  (void)force;
  (void)arg;
  last_heartbeat = heartbeat;
}

static void count_text(const char* msg, void* arg) { *(size_t*)arg += strlen(msg); }

static void databases(void) {
  db_t first = db_new(mi_heap_new()), tagged = db_new(mi_heap_new_ex(7, true, 0));
  db_fill(&first, 10000);
  db_fill(&tagged, 1000);
  NEED(mi_heap_contains_block(first.heap, first.buckets) && !mi_heap_contains_block(tagged.heap, first.buckets));
  NEED(mi_heap_check_owned(tagged.heap, tagged.buckets) && !mi_heap_check_owned(tagged.heap, &tagged));
  NEED(mi_check_owned(first.buckets) && mi_is_in_heap_region(first.buckets));
  const count_t count = count_heap(&first);
  NEED(count.blocks == 2 * first.count + 1 && count.areas > 0 && count.bytes > first.count * sizeof(entry_t));
  NEED(count_heap(&tagged).tag == 7);
  db_defrag(&first);
  NEED(count_heap(&first).blocks == 2 * first.count + 1 && db_get(&first, "key:9999") != NULL);

  // The default heap is what malloc uses.
  mi_heap_t* const before = mi_heap_set_default(first.heap);
  NEED(before == mi_heap_get_backing() && mi_heap_get_default() == first.heap);
  void* const p = mi_malloc(10);
  NEED(mi_heap_check_owned(first.heap, p));
  NEED(mi_theap_get_default() == first.heap);  // a name of later versions
  mi_free(mi_theap_malloc(mi_theap_get_default(), 10));
  NEED(mi_heap_set_default(before) == first.heap);
  mi_heap_collect(first.heap, false);

  entry_t* entries = mi_heap_mallocn_tp(first.heap, entry_t, 10);
  entries = mi_heap_reallocn_tp(first.heap, entries, entry_t, 100);
  entries = mi_heap_recalloc_tp(first.heap, entries, entry_t, 200);
  NEED(entries != NULL && mi_heap_malloc_tp(first.heap, entry_t) != NULL);
  mi_heap_delete(first.heap);
  mi_free(p);
  mi_free(entries);
  mi_heap_destroy(tagged.heap);
}

static void arena(void) {
  mi_arena_id_t id = 0;
  NEED(mi_reserve_os_memory_ex((size_t)64 << 20, false, false, true, &id) == 0 && id != 0);
  size_t size = 0;
  char* const start = (char*)mi_arena_area(id, &size);
  NEED(start != NULL && size >= ((size_t)64 << 20));
  db_t db = db_new(mi_heap_new_in_arena(id));
  db_fill(&db, 1000);
  NEED((char*)db.buckets >= start && (char*)db.buckets < start + size);
  mi_heap_delete(db.heap);
}

int main(void) {
  NEED(mi_version() == MI_MALLOC_VERSION);
  mi_option_set(mi_option_eager_commit, 1);
  mi_option_set(mi_option_abandoned_page_purge, 0);
  mi_option_set(mi_option_reset_delay, 100);
  mi_register_deferred_free(deferred, NULL);

  char* value = (char*)zmalloc(10);
  value = (char*)zrealloc(value, 100000);
  zfree(value);
  NEED(used_memory == 0);
  entry_t* e = mi_calloc_tp(entry_t, 3);
  e = mi_reallocn_tp(e, entry_t, 30);
  e = mi_recalloc_tp(e, entry_t, 300);
  NEED(e != NULL);
  mi_free(e);

  databases();
  arena();

  mi_subproc_id_t sub = mi_subproc_new();
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, plugin, &sub) == 0 && pthread_join(thread, NULL) == 0);
  mi_subproc_delete(sub);
  count_t count;
  memset(&count, 0, sizeof(count));
  (void)mi_abandoned_visit_blocks(mi_subproc_main(), -1, true, count_block, &count);

  size_t text = 0, resident = 0;
  mi_stats_merge();
  mi_stats_print_out(count_text, &text);
  mi_process_info(NULL, NULL, NULL, &resident, NULL, NULL, NULL, NULL);
  NEED(text > 0 && resident > 0);
  mi_collect(true);
  mi_register_deferred_free(NULL, NULL);
  puts("ok");
  return 0;
}
