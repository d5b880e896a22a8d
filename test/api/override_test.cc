// Owns: the C++ operators, where they are replaced: each form hands out this allocator's memory and takes it back.
// May include: test/lib, mimalloc.h, the C++ library.
// Called by: the tests override_cxx_linked (object first, shared, static) and override_cxx_preloaded.
// Invariants: compiled with -std=c++17; operators are called by name, so that no call is left out.
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "mimalloc.h"
#include "test/lib/test.h"

#if defined(MI_TEST_PRELOADED)
// Linked with nothing of ours: these come with the preloaded library.
#pragma weak mi_is_in_heap_region
#pragma weak mi_is_redirected
#pragma weak mi_option_disable
#pragma weak mi_usable_size
#endif

// A variant may report each failed request, which most of these are.
__attribute__((constructor)) static void be_quiet() { mi_option_disable(mi_option_show_errors); }

namespace {

void* ours(void* p, size_t size, size_t align = 16) {
  MI_CHECK_MSG(mi_is_in_heap_region(p) && reinterpret_cast<uintptr_t>(p) % align == 0, "%p of %zu, alignment %zu", p, size, align);
  MI_CHECK(mi_usable_size(p) >= size);
  memset(p, 0x3c, size);
  return p;
}

struct alignas(256) wide {
  char bytes[300];
};

struct base {
  virtual ~base() {}
  int value = 1;
};
struct derived : base {
  char more[1000] = {2};
};

}  // namespace

MI_TEST(operators) {
  MI_CHECK(mi_is_redirected());
  for (const size_t n : {size_t(0), size_t(1), size_t(40), size_t(1000), size_t(9000), size_t(3000000)}) {
    ::operator delete(ours(::operator new(n), n));
    ::operator delete(ours(::operator new(n), n), n);
    ::operator delete(ours(::operator new(n, std::nothrow), n), std::nothrow);
    ::operator delete[](ours(::operator new[](n), n));
    ::operator delete[](ours(::operator new[](n), n), n);
    ::operator delete[](ours(::operator new[](n, std::nothrow), n), std::nothrow);
    for (size_t align = 32; align <= (1u << 20); align *= 32) {
      const std::align_val_t a = std::align_val_t(align);
      ::operator delete(ours(::operator new(n, a), n, align), a);
      ::operator delete(ours(::operator new(n, a), n, align), n, a);
      ::operator delete(ours(::operator new(n, a, std::nothrow), n, align), a, std::nothrow);
      ::operator delete[](ours(::operator new[](n, a), n, align), a);
      ::operator delete[](ours(::operator new[](n, a), n, align), n, a);
      ::operator delete[](ours(::operator new[](n, a, std::nothrow), n, align), a, std::nothrow);
    }
  }
}

MI_TEST(expressions) {
  std::unique_ptr<wide> w(new wide);
  MI_CHECK(mi_is_in_heap_region(w.get()) && reinterpret_cast<uintptr_t>(w.get()) % 256 == 0);
  std::unique_ptr<wide[]> many(new wide[5]);
  MI_CHECK(mi_is_in_heap_region(many.get()) && reinterpret_cast<uintptr_t>(many.get()) % 256 == 0);
  std::unique_ptr<base> b(new derived);
  MI_CHECK(mi_is_in_heap_region(b.get()) && b->value == 1);
  std::unique_ptr<int> none(new (std::nothrow) int(7));
  MI_CHECK(none != nullptr && *none == 7);
}

MI_TEST(library) {
  std::map<int, std::string> map;
  std::vector<std::string> v;
  for (int i = 0; i < 1000; i++) {
    map[i] = std::string(static_cast<size_t>(i), 'x');
    v.push_back(map[i]);
  }
  MI_CHECK(mi_is_in_heap_region(v.data()) && mi_is_in_heap_region(v[500].data()));
  MI_CHECK_EQ(map[999].size(), 999);
  std::ostringstream out;
  for (int i = 0; i < 1000; i++) out << i << ' ';
  MI_CHECK_EQ(out.str().size(), 3890);
  // Allocated in one thread by the library, freed in another.
  std::future<std::string> future = std::async(std::launch::async, [] { return std::string(5000, 'y'); });
  MI_CHECK_EQ(future.get().size(), 5000);
  std::shared_ptr<derived> shared = std::make_shared<derived>();
  MI_CHECK(mi_is_in_heap_region(shared.get()));
}

MI_TEST(exceptions) {
  // The exception object itself comes from malloc.
  int caught = 0;
  for (int i = 0; i < 100; i++) {
    try {
      throw std::string(200, 'e');
    } catch (const std::string& s) {
      caught += s.size() == 200 && mi_is_in_heap_region(s.data());
    }
  }
  MI_CHECK_EQ(caught, 100);
  bool thrown = false;
  try {
    std::vector<char> v(mi_test_hide_size(PTRDIFF_MAX));
    MI_CHECK(v.empty());
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  MI_CHECK(thrown);
}

MI_TEST_MAIN()
