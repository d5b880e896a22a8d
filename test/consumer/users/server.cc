// Owns: a server, as one is written in C++: all of its new and delete come here, sessions have heaps of their own, a response is
// built in one that is thrown away, and what is over-aligned stays so.
// May include: users.h, mimalloc.h, mimalloc-new-delete.h, the C++ library.
// Called by: users_test.py, which compiles it for each standard, and runs it with each variant.
// Invariants: the one file of its program, so that it may include mimalloc-new-delete.h.
#include "mimalloc-new-delete.h"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "users.h"

namespace {

template <class T>
using session_alloc = mi_heap_stl_allocator<T>;
template <class T>
using response_alloc = mi_heap_destroy_stl_allocator<T>;
typedef std::basic_string<char, std::char_traits<char>, session_alloc<char>> session_string;
typedef std::basic_string<char, std::char_traits<char>, response_alloc<char>> response_string;

// All of a session is in its heap.
class session {
 public:
  explicit session(int id) : number(id), values(session_alloc<int>()) {}
  void set(const std::string& key, const std::string& value) {
    const session_string k(key.data(), key.size(), values.get_allocator());
    const session_string v(value.data(), value.size(), values.get_allocator());
    const auto added = values.emplace(k, v);
    if (!added.second) added.first->second = v;
  }
  std::string get(const std::string& key) const {
    const auto found = values.find(session_string(key.data(), key.size(), values.get_allocator()));
    if (found == values.end()) throw std::out_of_range(key);
    return std::string(found->second.data(), found->second.size());
  }
  const int number;

 private:
  std::map<session_string, session_string, std::less<session_string>, session_alloc<std::pair<const session_string, session_string>>> values;
};

// A counter for each processor, on a cache line of its own.
struct alignas(64) counter {
  std::atomic<long> value{0};
};

class server {
 public:
  server() : counters(4) {}
  std::shared_ptr<session> open(int id) {
    const std::lock_guard<std::mutex> guard(lock);
    std::shared_ptr<session>& s = sessions[id];
    if (!s) s = std::allocate_shared<session>(mi_stl_allocator<session>(), id);
    return s;
  }
  void close(int id) {
    const std::lock_guard<std::mutex> guard(lock);
    sessions.erase(id);
  }
  std::size_t answer(const session& s, int lines) {
    const response_alloc<char> own;
    std::vector<response_string, response_alloc<response_string>> response(own);
    for (int i = 0; i < lines; i++) {
      const std::string line = "line " + std::to_string(i) + " of a response to " + s.get("name");
      response.emplace_back(line.data(), line.size(), own);
    }
    counters[static_cast<std::size_t>(s.number) % counters.size()].value += lines;
    std::size_t size = 0;
    for (const response_string& line : response) size += line.size();
    return size;
  }
  long answered() const {
    long sum = 0;
    for (const counter& c : counters) {
      NEED(reinterpret_cast<std::uintptr_t>(&c) % 64 == 0);
      sum += c.value;
    }
    return sum;
  }

 private:
  std::mutex lock;
  std::unordered_map<int, std::shared_ptr<session>, std::hash<int>, std::equal_to<int>, mi_stl_allocator<std::pair<const int, std::shared_ptr<session>>>> sessions;
  std::vector<counter, mi_stl_allocator<counter>> counters;
};

}  // namespace

int main() {
  NEED(mi_is_in_heap_region(std::unique_ptr<int>(new int(1)).get()));
  server s;
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; w++) {
    workers.emplace_back([&s, w] {
      for (int i = 0; i < 50; i++) {
        const int id = w * 1000 + i;
        const std::shared_ptr<session> one = s.open(id);
        one->set("name", "a name that needs a block of its own, number " + std::to_string(id));
        one->set("name", "another name that needs a block of its own, number " + std::to_string(id));
        NEED(s.answer(*one, 20) > 1000);
        if (i % 2 == 0) s.close(id);
      }
    });
  }
  for (std::thread& w : workers) w.join();
  NEED(s.answered() == 4 * 50 * 20);
  bool thrown = false;
  try {
    s.open(1)->get("no such key");
  } catch (const std::out_of_range&) {
    thrown = true;
  }
  NEED(thrown);
  std::function<std::size_t(int)> big = [&s](int n) { return s.answer(*s.open(1001), n); };
  NEED(big(3) > 0);
  std::puts("ok");
  return 0;
}
