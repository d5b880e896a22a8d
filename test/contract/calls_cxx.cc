// Owns: the contract of the C++ calls: every form of new and delete up to C++17, the new handler, bad_alloc.
// May include: test/lib, the C++ library.
// Called by: rows of test/contract/rows.txt.
// Invariants: each form is called by name, so the compiler cannot leave it out.
// Flags: -std=c++17 -fno-builtin -pthread
#include <malloc.h>

#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "test/lib/test.h"

namespace {

const size_t sizes[] = {0, 1, 7, 8, 16, 17, 24, 33, 64, 100, 128, 500, 1000, 1024, 4096, 8192, 8193, 40000, 65536, 100000, 524288, 600000, 3 << 20};
const size_t alignments[] = {1, 2, 8, 16, 32, 64, 128, 1024, 4096, 65536, 1 << 20, 4 << 20};

bool is_aligned(const void* p, size_t align) { return (reinterpret_cast<uintptr_t>(p) & (align - 1)) == 0; }

void use(void* p, size_t n, size_t align) {
  MI_CHECK_MSG(p != nullptr && is_aligned(p, align), "%p of %zu bytes, alignment %zu", p, n, align);
  MI_CHECK(malloc_usable_size(p) >= n);
  mi_test_fill(p, n, n);
  MI_CHECK(mi_test_filled(p, n, n));
}

}  // namespace

MI_TEST(plain_forms) {
  for (size_t n : sizes) {
    n = mi_test_hide_size(n);
    void* p[8];
    for (int i = 0; i < 4; i++) use(p[i] = ::operator new(n), n, n <= 8 ? 8 : 16);
    for (int i = 4; i < 8; i++) use(p[i] = ::operator new[](n), n, n <= 8 ? 8 : 16);
    ::operator delete(p[0]);
    ::operator delete(p[1], n);
    ::operator delete(p[2], std::nothrow);
    ::operator delete(p[3]);
    ::operator delete[](p[4]);
    ::operator delete[](p[5], n);
    ::operator delete[](p[6], std::nothrow);
    ::operator delete[](p[7]);
    void* q = ::operator new(n, std::nothrow);
    void* r = ::operator new[](n, std::nothrow);
    use(q, n, 8);
    use(r, n, 8);
    ::operator delete(q, n);
    ::operator delete[](r, n);
  }
  ::operator delete(nullptr);
  ::operator delete[](nullptr);
  ::operator delete(nullptr, size_t(8));
  ::operator delete(nullptr, std::align_val_t(64));
  ::operator delete(nullptr, std::nothrow);
}

MI_TEST(aligned_forms) {
  for (size_t n : sizes) {
    for (size_t align : alignments) {
      n = mi_test_hide_size(n);
      const std::align_val_t a = std::align_val_t(align);
      void* p[6];
      for (int i = 0; i < 3; i++) use(p[i] = ::operator new(n, a), n, align);
      for (int i = 3; i < 6; i++) use(p[i] = ::operator new[](n, a), n, align);
      ::operator delete(p[0], a);
      ::operator delete(p[1], n, a);
      ::operator delete(p[2], a, std::nothrow);
      ::operator delete[](p[3], a);
      ::operator delete[](p[4], n, a);
      ::operator delete[](p[5], a, std::nothrow);
      void* q = ::operator new(n, a, std::nothrow);
      void* r = ::operator new[](n, a, std::nothrow);
      use(q, n, align);
      use(r, n, align);
      ::operator delete(q, n, a);
      ::operator delete[](r, n, a);
    }
  }
}

MI_TEST(unique_when_empty) {
  void* p = ::operator new(mi_test_hide_size(0));
  void* q = ::operator new(mi_test_hide_size(0));
  MI_CHECK(p != nullptr && q != nullptr && p != q);
  ::operator delete(p);
  ::operator delete(q);
}

namespace {

int handler_calls;
void counting_handler() {
  if (++handler_calls == 5) std::set_new_handler(nullptr);
}
void throwing_handler() {
  handler_calls++;
  throw std::bad_alloc();
}
template <class F>
bool throws(F f) {
  try {
    f();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}
const size_t too_much = SIZE_MAX / 2 - 4096;

}  // namespace

MI_TEST(new_handler) {
  const size_t n = mi_test_hide_size(too_much);
  const std::align_val_t a = std::align_val_t(64);
  std::set_new_handler(nullptr);
  MI_CHECK(throws([=] { mi_test_hide(::operator new(n)); }));
  MI_CHECK(throws([=] { mi_test_hide(::operator new[](n)); }));
  MI_CHECK(throws([=] { mi_test_hide(::operator new(n, a)); }));
  MI_CHECK(throws([=] { mi_test_hide(::operator new[](n, a)); }));
  MI_CHECK(throws([=] { mi_test_hide(::operator new(mi_test_hide_size(SIZE_MAX))); }));
  MI_CHECK(::operator new(n, std::nothrow) == nullptr);
  MI_CHECK(::operator new[](n, std::nothrow) == nullptr);
  MI_CHECK(::operator new(n, a, std::nothrow) == nullptr);
  MI_CHECK(::operator new[](n, a, std::nothrow) == nullptr);
  for (int form = 0; form < 8; form++) {
    handler_calls = 0;
    std::set_new_handler(counting_handler);
    void* p = nullptr;
    const bool threw = throws([&] {
      switch (form) {
        case 0: p = ::operator new(n); break;
        case 1: p = ::operator new[](n); break;
        case 2: p = ::operator new(n, a); break;
        case 3: p = ::operator new[](n, a); break;
        case 4: p = ::operator new(n, std::nothrow); break;
        case 5: p = ::operator new[](n, std::nothrow); break;
        case 6: p = ::operator new(n, a, std::nothrow); break;
        default: p = ::operator new[](n, a, std::nothrow); break;
      }
    });
    MI_CHECK_MSG(p == nullptr && threw == (form < 4), "form %d", form);
    MI_CHECK_MSG(handler_calls == 5, "form %d: the handler was called %d times until it gave up", form, handler_calls);
    // A handler that throws: the throwing forms pass it on, the others give NULL.
    handler_calls = 0;
    std::set_new_handler(throwing_handler);
    const bool threw2 = throws([&] {
      switch (form) {
        case 0: p = ::operator new(n); break;
        case 1: p = ::operator new[](n); break;
        case 2: p = ::operator new(n, a); break;
        case 3: p = ::operator new[](n, a); break;
        case 4: p = ::operator new(n, std::nothrow); break;
        case 5: p = ::operator new[](n, std::nothrow); break;
        case 6: p = ::operator new(n, a, std::nothrow); break;
        default: p = ::operator new[](n, a, std::nothrow); break;
      }
    });
    MI_CHECK_MSG(p == nullptr && threw2 == (form < 4) && handler_calls == 1, "form %d, a handler that throws: %d calls", form, handler_calls);
    std::set_new_handler(nullptr);
  }
}

namespace {

std::vector<void*> reserve;
void releasing_handler() {
  handler_calls++;
  std::set_new_handler(nullptr);
}

}  // namespace

MI_TEST(handler_may_allocate) {
  // The handler runs without any lock of the allocator held.
  std::set_new_handler([] {
    handler_calls++;
    for (int i = 0; i < 100; i++) reserve.push_back(std::malloc(100));
    releasing_handler();
  });
  handler_calls = 0;
  MI_CHECK(throws([] { mi_test_hide(::operator new(mi_test_hide_size(too_much))); }));
  MI_CHECK_EQ(handler_calls, 2);
  for (void* p : reserve) std::free(p);
  reserve.clear();
}

namespace {

struct Base {
  virtual ~Base() {}
  int x = 1;
};
struct alignas(256) Derived : Base {
  char room[1000];
  ~Derived() override { room[0] = 1; }
};
struct alignas(64) Small {
  char c;
};

}  // namespace

MI_TEST(expressions) {
  for (int i = 0; i < 1000; i++) {
    Base* b = new Derived;
    MI_CHECK(is_aligned(b, 256));
    delete b;
    Small* s = new Small[3];
    MI_CHECK(is_aligned(s, 64));
    delete[] s;
    std::map<std::string, std::vector<int>> m;
    for (int k = 0; k < 10; k++) m[std::string(static_cast<size_t>(k) * 20 + 1, 'k')].resize(static_cast<size_t>(k) * 100);
  }
  // A constructor that throws gives its memory back by the matching delete.
  struct Throws {
    Throws() { throw 1; }
    char room[5000];
  };
  for (int i = 0; i < 100; i++) {
    try {
      delete new Throws;
      MI_CHECK(!"no exception");
    } catch (int) {
    }
  }
}

MI_TEST(malloc_family_agrees) {
  // A block of operator new counts as a malloc block to the queries.
  void* p = ::operator new(1000);
  MI_CHECK(malloc_usable_size(p) >= 1000);
  ::operator delete(p);
}

MI_TEST_MAIN()
