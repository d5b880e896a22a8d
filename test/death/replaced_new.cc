// Owns: a program that replaces the two base forms of new and delete, with a header before each block.
// May include: test/lib, the C++ library.
// Called by: rows of test/death/family.txt.
// Invariants: every other form must come down to the two, as the standard says, so none meets a block that is not its own.
// Flags: -std=c++17 -pthread -fno-builtin
#include <memory>
#include <new>
#include <vector>

#include "test/lib/test.h"

// Leaving the sized forms out is what is tested.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsized-deallocation"
#endif

namespace {
const size_t kHeader = 16;
size_t made;
size_t gone;
}  // namespace

void* operator new(std::size_t n) {
  char* p = static_cast<char*>(malloc(n + kHeader));
  if (p == nullptr) throw std::bad_alloc();
  made++;
  return p + kHeader;
}

void operator delete(void* p) noexcept {
  if (p == nullptr) return;
  gone++;
  free(static_cast<char*>(p) - kHeader);
}

static void* fresh(void* p) { return mi_test_hide(p); }

int main() {
  mi_test_current = "replaced new";
  operator delete(fresh(operator new(24)));
  operator delete (fresh(operator new(24)), size_t{24});
  operator delete(fresh(operator new(24)), std::nothrow);
  operator delete[](fresh(operator new[](24)));
  operator delete[](fresh(operator new[](24)), size_t{24});
  operator delete[](fresh(operator new[](24)), std::nothrow);
  operator delete(fresh(operator new(24, std::nothrow)));
  operator delete[](fresh(operator new[](24, std::nothrow)), size_t{24});
  MI_CHECK_EQ(made, 8);
  MI_CHECK_EQ(gone, 8);
  {
    std::vector<int> v(1000);
    std::unique_ptr<long[]> p(new long[100]);
    std::shared_ptr<int> s = std::make_shared<int>(3);
  }
  MI_CHECK_EQ(made, gone);
  // The aligned forms are a base of their own, which is not replaced.
  operator delete(fresh(operator new(24, std::align_val_t(64))), 24, std::align_val_t(64));
  operator delete[](fresh(operator new[](24, std::align_val_t(64))), std::align_val_t(64));
  MI_CHECK_EQ(made, gone);
  return mi_test_status();
}
