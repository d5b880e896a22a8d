// Owns: C++ life cycle: thread_local constructors that allocate, destructors that free; static destructors, exit handlers and late threads.
// May include: test/lib, the C++ library.
// Called by: rows of test/contract/rows.txt.
// Invariants: the process ends by exit while threads still allocate; only its status tells whether that went well.
// Flags: -std=c++17 -pthread -fno-builtin
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/lib/test.h"

namespace {

struct Holder {
  std::vector<std::string> words;
  std::map<int, std::vector<char>> tree;
  void* raw;
  Holder() : raw(std::malloc(300)) {
    for (int i = 0; i < 50; i++) {
      words.push_back(std::string(static_cast<size_t>(i) * 11, 'w'));
      tree[i].resize(static_cast<size_t>(i) * 50);
    }
  }
  ~Holder() {
    // The destructor allocates too, after most of the thread is gone.
    words.push_back(std::string(5000, 'd'));
    std::free(raw);
    std::free(std::malloc(100000));
    check();
  }
  void check() const {
    for (size_t i = 0; i < 50; i++) MI_CHECK(words[i].size() == i * 11 && (i == 0 || words[i][i] == 'w'));
  }
};

thread_local Holder first;
thread_local std::unique_ptr<Holder> second(new Holder);
thread_local std::list<int> third{1, 2, 3};

Holder global;
std::string* handed_over = new std::string(1000, 'h');

// Destroyed very late: it was constructed first (priority 101) and frees what others made.
struct LateFree {
  std::vector<void*> blocks;
  ~LateFree() {
    for (void* p : blocks) std::free(p);
    void* p = std::malloc(50);
    MI_CHECK(p != nullptr);
    std::free(p);
    if (mi_test_failure_count() > 0) _exit(1);
  }
};
__attribute__((init_priority(101))) LateFree late_free;

void at_exit() {
  for (size_t n = 1; n < 3000000; n *= 3) late_free.blocks.push_back(std::malloc(n));
}

__attribute__((destructor)) void c_destructor() {
  char* p = static_cast<char*>(std::malloc(3 << 20));
  MI_CHECK(p != nullptr);
  p[0] = 1;
  std::free(p);
  std::free(std::realloc(std::malloc(10), 100));
}

std::atomic<bool> stop{false};

void busy() {
  first.check();
  std::vector<void*> mine(100);
  uint64_t seed = 3;
  while (!stop.load(std::memory_order_relaxed)) {
    const size_t i = mi_test_random(&seed) % mine.size();
    std::free(mine[i]);
    const size_t n = mi_test_random(&seed) % 5000;
    mine[i] = std::malloc(n);
    if (mine[i] == nullptr) _exit(3);
    mi_test_fill(mine[i], n < 8 ? 0 : 8, n);
  }
}

}  // namespace

MI_TEST(thread_locals) {
  for (int round = 0; round < 100; round++) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
      threads.emplace_back([i] {
        if (i % 2) std::free(std::malloc(10));
        first.check();
        second->check();
        third.push_back(i);
        if (i == 3) second.reset();
      });
    }
    for (auto& t : threads) t.join();
  }
  first.check();
}

MI_TEST(exit_with_late_threads) {
  // Detached threads go on during exit, in static destructors and after them.
  std::atexit(at_exit);
  for (int i = 0; i < 4; i++) std::thread(busy).detach();
  for (int i = 0; i < 1000; i++) late_free.blocks.push_back(std::malloc(static_cast<size_t>(i)));
  delete handed_over;
}

int main(int argc, char** argv) {
  const int status = mi_test_main(argc, argv);
  // Not _exit: the destructors are what is tested. They can still turn the status into 1.
  std::exit(status);
}
