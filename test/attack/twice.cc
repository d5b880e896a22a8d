// Owns: attacks by a second free of a block.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: twice HOW SIZE.
// Invariants: the goal is two live blocks that overlap.
// Flags: -pthread -fno-builtin
#include <memory>

#include "test/attack/attack.h"

static size_t size;
static char* p;

// The block comes from among others, which keep the memory in use when the thread ends.
static void* alloc_in_thread(void*) {
  char* block[24];
  for (int i = 0; i < (size > 10000000 ? 3 : 24); i++) block[i] = attack_get(size);
  return block[1];
}

static pthread_barrier_t barrier;

static void* free_at_once(void* q) {
  pthread_barrier_wait(&barrier);
  free(q);
  return nullptr;
}

struct holder {
  char* what;
  explicit holder(char* w) : what(w) {}
  ~holder() { free(mi_test_hide(what)); }
};

static void* free_at_exit_of_thread(void*) {
  // Two of the thread's own objects hold one block, and both end with it.
  static thread_local holder first(p);
  static thread_local holder second(first.what);
  return second.what;
}

static void misuse(const char* how, char* left, char* right) {
  if (strcmp(how, "plain") == 0) {
    free(p);
    free(mi_test_hide(p));
  } else if (strcmp(how, "a-b-a") == 0) {
    free(p);
    free(left);
    free(mi_test_hide(p));
  } else if (strcmp(how, "cache-full") == 0) {
    // Seven blocks fill a cache in front of the lists; what follows takes another way.
    char* filler[7];
    for (int i = 0; i < 7; i++) filler[i] = attack_get(size);
    for (int i = 0; i < 7; i++) free(filler[i]);
    free(p);
    free(left);
    free(mi_test_hide(p));
    // And now the cache is empty again.
    for (int i = 0; i < 7; i++) filler[i] = attack_get(size);
  } else if (strcmp(how, "overwritten") == 0) {
    free(p);
    memset(mi_test_hide(p), 0x10, size < 32 ? size : 32);
    free(mi_test_hide(p));
  } else if (strcmp(how, "second-word-overwritten") == 0) {
    free(p);
    attack_word_write(p + 8, 1);
    free(mi_test_hide(p));
  } else if (strcmp(how, "other-thread") == 0) {
    free(p);
    attack_run_thread(attack_free_in_thread, mi_test_hide(p));
  } else if (strcmp(how, "both-in-threads") == 0) {
    attack_run_thread(attack_free_in_thread, p);
    attack_run_thread(attack_free_in_thread, left);
    attack_run_thread(attack_free_in_thread, mi_test_hide(p));
  } else if (strcmp(how, "thread-ended") == 0) {
    p = static_cast<char*>(attack_run_thread(alloc_in_thread, nullptr));
    attack_announce(p);
    free(p);
    free(mi_test_hide(p));
  } else if (strcmp(how, "thread-destructors") == 0) {
    attack_run_thread(free_at_exit_of_thread, nullptr);
  } else if (strcmp(how, "destructors") == 0) {
    holder first(p);
    holder second(p);
  } else if (strcmp(how, "owners") == 0) {
    struct giver {
      void operator()(char* x) const { free(mi_test_hide(x)); }
    };
    std::unique_ptr<char, giver> one(p), two(p);
    one.reset();
  } else if (strcmp(how, "realloc-moved") == 0) {
    char* moved = static_cast<char*>(realloc(p, size * 3 + 64));
    // Where it stayed the pointer is still good, and the free of it is one free.
    for (int i = 0; i < 20 && moved == mi_test_hide(p); i++) {
      p = attack_get(size);
      attack_announce(p);
      moved = static_cast<char*>(realloc(p, size * 3 + 64));
    }
    // So long that it finds no room behind it; what is not touched costs nothing.
    if (moved == mi_test_hide(p)) moved = static_cast<char*>(realloc(p, size_t{600} << 20));
    if (moved == nullptr || moved == mi_test_hide(p)) attack_end(false);
    free(mi_test_hide(p));
  } else if (strcmp(how, "at-once") == 0) {
    // The owner and another thread at the same moment; whoever is first, one of the two is wrong.
    pthread_t thread;
    pthread_barrier_init(&barrier, nullptr, 2);
    MI_REQUIRE(pthread_create(&thread, nullptr, free_at_once, p) == 0);
    pthread_barrier_wait(&barrier);
    free(mi_test_hide(p));
    pthread_join(thread, nullptr);
  } else if (strcmp(how, "handed-out-again") == 0) {
    // The old pointer frees the block of the new owner.
    free(p);
    const size_t fit = (size_t{64} << 20) / size, most = fit < 3000 ? fit : 3000;
    bool back = false;
    while (attack_taken.count < most && !back) {
      char* a = attack_get(size);
      attack_taken.block[attack_taken.count++] = a;
      back = a == mi_test_hide(p);
    }
    if (!back) attack_end(false);
    free(mi_test_hide(p));
  } else {
    attack_usage(how);
  }
  (void)right;
}

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  size = static_cast<size_t>(strtoull(argv[2], nullptr, 10));
  const bool huge = size > 10000000;
  // Neighbours that live on keep the page where there is one.
  char* keep[24];
  const int count = huge ? 1 : 24;
  for (int i = 0; i < count; i++) keep[i] = attack_get(size);
  char* left = attack_get(size);
  p = attack_get(size);
  char* right = attack_get(size);
  attack_announce(p);
  // A second free of what has no memory any more reads nothing of ours; for other allocators it may.
  attack_expect_fault(p - 4096, p + size);
  misuse(argv[1], left, right);
  (void)keep;
  attack_end(attack_take(size, nullptr, nullptr));
}
