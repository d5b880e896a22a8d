// Owns: the smallest C++ program that uses new, with a witness that this allocator served it.
// May include: the C++ library, and mimalloc.h where it is on the include path.
// Called by: linked_test.py and the test targets.
// Invariants: prints one line when all is well.
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" bool mi_is_in_heap_region(const void* p);

// Before main, as static constructors do.
static std::string* const early = new std::string(100, 'x');

struct alignas(256) wide {
  char bytes[256];
};

int main() {
  bool ok = mi_is_in_heap_region(early) && mi_is_in_heap_region(early->data());
  std::map<int, std::vector<std::string>> map;
  for (int i = 0; i < 1000; i++) map[i % 10].push_back(std::string(static_cast<std::size_t>(i), 'y'));
  ok = ok && mi_is_in_heap_region(&map.begin()->second);
  const std::unique_ptr<wide> w(new wide);
  ok = ok && mi_is_in_heap_region(w.get()) && reinterpret_cast<std::size_t>(w.get()) % 256 == 0;
  try {
    throw std::runtime_error("thrown");
  } catch (const std::exception& e) {
    ok = ok && std::string(e.what()) == "thrown";
  }
  delete early;
  std::puts(ok ? "works" : "failed");
  return ok ? 0 : 1;
}
