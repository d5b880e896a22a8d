// Owns: a shared object that holds the allocator is opened and closed again and again while threads that used it live on.
// May include: test/lib, POSIX.
// Called by: rows of test/contract/rows.txt: dlclose OBJECT ROUNDS; OBJECT is the library itself or dlclose_plugin.
// Invariants: not run under preload of the same library (then it could never be unloaded).
// Flags: -pthread -ldl
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <pthread.h>

#include "test/lib/rss.h"
#include "test/lib/test.h"

typedef struct object_s {
  void* handle;
  void* (*alloc)(size_t);
  void (*release)(void*);
} object_t;

static bool open_object(object_t* o, const char* path) {
  o->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!MI_CHECK_MSG(o->handle != NULL, "%s", dlerror())) return false;
  o->alloc = (void* (*)(size_t))(uintptr_t)dlsym(o->handle, "plugin_alloc");
  o->release = (void (*)(void*))(uintptr_t)dlsym(o->handle, "plugin_free");
  if (o->alloc == NULL) {
    o->alloc = (void* (*)(size_t))(uintptr_t)dlsym(o->handle, "mi_malloc");
    o->release = (void (*)(void*))(uintptr_t)dlsym(o->handle, "mi_free");
  }
  return MI_CHECK(o->alloc != NULL && o->release != NULL);
}

static void use(const object_t* o, uint64_t seed) {
  void* p[50];
  for (int i = 0; i < 50; i++) {
    const size_t n = 1 + mi_test_random(&seed) % (i == 0 ? 1000000 : 3000);
    p[i] = o->alloc(n);
    MI_REQUIRE(p[i] != NULL);
    memset(p[i], 1, n);
  }
  for (int i = 0; i < 50; i++) o->release(p[i]);
}

// Threads that outlive every closing: they use each opening once, and end at the end of the test.
enum { THREADS = 4 };
static pthread_barrier_t before, after;
static object_t current;
static int finished;

static void* survivor(void* arg) {
  for (;;) {
    pthread_barrier_wait(&before);
    if (__atomic_load_n(&finished, __ATOMIC_ACQUIRE)) return NULL;
    use(&current, (uintptr_t)arg);
    pthread_barrier_wait(&after);
  }
}

static void* passing(void* arg) {
  use((const object_t*)arg, 3);
  return NULL;
}

static void* later(void* arg) {
  (void)arg;
  return malloc(100);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    mi_test_say("usage: dlclose OBJECT ROUNDS");
    return 2;
  }
  mi_test_current = "dlclose";
  const int rounds = atoi(argv[2]);
  pthread_t t[THREADS];
  pthread_barrier_init(&before, NULL, THREADS + 1);
  pthread_barrier_init(&after, NULL, THREADS + 1);
  for (uintptr_t i = 0; i < THREADS; i++) MI_REQUIRE(pthread_create(&t[i], NULL, survivor, (void*)i) == 0);
  // Where the object stays, what it holds goes up and down by large pages: the most of the first half stands against the least
  // of the second one.
  size_t rss = 0, rss2 = SIZE_MAX, maps = 0, space = 0;
  bool stays = false;
  for (int round = 0; round < rounds; round++) {
    if (!open_object(&current, argv[1])) return 1;
    pthread_barrier_wait(&before);
    pthread_barrier_wait(&after);
    use(&current, 9);
    pthread_t p;
    MI_REQUIRE(pthread_create(&p, NULL, passing, &current) == 0);
    pthread_join(p, NULL);
    // The surviving threads have used it and are not in it now.
    MI_CHECK(dlclose(current.handle) == 0);
    void* again = dlopen(argv[1], RTLD_NOLOAD | RTLD_NOW);
    if (again != NULL) {
      stays = true;
      dlclose(again);
    }
    // A thread made after the closing must not run a hook of what is gone.
    MI_REQUIRE(pthread_create(&p, NULL, later, NULL) == 0);
    void* block = NULL;
    pthread_join(p, &block);
    free(block);
    const size_t now = round % 16 == 0 || round == rounds - 1 ? mi_test_rss() : 0;
    if (now > 0 && round < rounds / 2) rss = now > rss ? now : rss;
    if (now > 0 && round >= rounds / 2) rss2 = now < rss2 ? now : rss2;
    if (round == rounds / 5) maps = mi_test_mappings(), space = mi_test_address_space();
    if (mi_test_failure_count() > 0) return 1;
  }
  const size_t maps2 = mi_test_mappings(), space2 = mi_test_address_space();
  MI_CHECK_MSG(rss2 <= rss + (12 << 20), "RSS from %zu to %zu KiB", rss >> 10, rss2 >> 10);
  MI_CHECK_MSG(maps2 <= maps + 16, "mappings from %zu to %zu", maps, maps2);
  MI_CHECK_MSG(space2 <= space + (256 << 20), "address space from %zu to %zu MiB", space >> 20, space2 >> 20);
  // An object that asks never to be unloaded is safe by that, but a plugin cannot ask for its host.
  if (stays && strstr(argv[1], "plugin") != NULL) MI_CHECK(!"the plugin stays loaded");
  __atomic_store_n(&finished, 1, __ATOMIC_RELEASE);
  pthread_barrier_wait(&before);
  // Their exit runs after the object is gone.
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  return mi_test_status();
}
