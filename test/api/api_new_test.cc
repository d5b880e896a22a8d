// Owns: the new-handler and std::bad_alloc, through the mi_new family and through operator new.
// May include: test/lib, mimalloc.h, the C++ library.
// Called by: the test api_new, linked with and preloaded by each variant.
// Invariants: compiled with -std=c++17; failed requests are of sizes that no system has.
#include <new>

#include "mimalloc.h"
#include "test/lib/test.h"

// A variant may report each failed request, which most of these are.
__attribute__((constructor)) static void be_quiet() { mi_option_disable(mi_option_show_errors); }

namespace {

const size_t too_much = SIZE_MAX / 4;
int calls;
int give_up_after;

// Counts its calls and uninstalls itself after some.
void counting_handler() {
  if (++calls >= give_up_after) std::set_new_handler(nullptr);
}

struct handler_error : std::bad_alloc {};
void throwing_handler() {
  calls++;
  throw handler_error();
}

// Runs f with the handler; tells whether it threw std::bad_alloc, and checks how often the handler was called.
template <class F>
bool throws(std::new_handler handler, int expected_calls, F f) {
  calls = 0;
  give_up_after = expected_calls;
  std::set_new_handler(handler);
  bool thrown = false;
  try {
    void* const p = f();
    MI_CHECK(p == nullptr);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  std::set_new_handler(nullptr);
  MI_CHECK_EQ(calls, expected_calls);
  return thrown;
}

typedef void* (*call_t)();
size_t much() { return mi_test_hide_size(too_much); }
const std::align_val_t wide = std::align_val_t(256);

const call_t throwing[] = {
    [] { return mi_new(much()); },
    [] { return mi_new_aligned(much(), 64); },
    [] { return mi_new_n(much(), 2); },
    [] { return mi_new_realloc(nullptr, much()); },
    [] { return mi_new_reallocn(nullptr, much(), 2); },
    [] { return mi_heap_alloc_new(mi_heap_main(), much()); },
    [] { return mi_heap_alloc_new_n(mi_heap_main(), much(), 2); },
    [] { return ::operator new(much()); },
    [] { return ::operator new[](much()); },
    [] { return ::operator new(much(), wide); },
    [] { return ::operator new[](much(), wide); },
};

const call_t nothrow_operators[] = {
    [] { return ::operator new(much(), std::nothrow); },
    [] { return ::operator new[](much(), std::nothrow); },
    [] { return ::operator new(much(), wide, std::nothrow); },
    [] { return ::operator new[](much(), wide, std::nothrow); },
};

const call_t nothrow_calls[] = {
    [] { return mi_new_nothrow(much()); },
    [] { return mi_new_aligned_nothrow(much(), 64); },
};

}  // namespace

MI_TEST(throws_without_handler) {
  for (const call_t f : throwing) MI_CHECK(throws(nullptr, 0, f));
  for (const call_t f : nothrow_operators) MI_CHECK(!throws(nullptr, 0, f));
  for (const call_t f : nothrow_calls) MI_CHECK(!throws(nullptr, 0, f));
}

MI_TEST(handler_is_called_until_it_gives_up) {
  for (const call_t f : throwing) MI_CHECK(throws(counting_handler, 3, f));
  for (const call_t f : nothrow_operators) MI_CHECK(!throws(counting_handler, 3, f));
  for (const call_t f : nothrow_calls) MI_CHECK(!throws(counting_handler, 3, f));
}

MI_TEST(handler_may_throw) {
  for (const call_t f : throwing) MI_CHECK(throws(throwing_handler, 1, f));
#if !defined(MI_TEST_STATIC)
  // A static program has only our operators, which are C and cannot catch.
  for (const call_t f : nothrow_operators) MI_CHECK(!throws(throwing_handler, 1, f));
#endif
}

MI_TEST(products_that_overflow_throw_at_once) {
  const size_t n = mi_test_hide_size(SIZE_MAX / 2 + 2);
  MI_CHECK(throws(counting_handler, 0, [n] { return mi_new_n(n, 2); }));
  MI_CHECK(throws(counting_handler, 0, [n] { return mi_heap_alloc_new_n(mi_heap_main(), n, 2); }));
  MI_CHECK(throws(counting_handler, 0, [n] { return mi_new_reallocn(nullptr, n, 2); }));
}

MI_TEST(bad_alignment_does_not_loop) {
  const size_t a = mi_test_hide_size(48);
  MI_CHECK(throws(counting_handler, 0, [a] { return mi_new_aligned(10, a); }));
  MI_CHECK(!throws(counting_handler, 0, [a] { return mi_new_aligned_nothrow(10, a); }));
}

MI_TEST(failed_resize_keeps_the_block) {
  void* p = mi_new(100);
  mi_test_fill(p, 100, 1);
  MI_CHECK(throws(counting_handler, 2, [p] { return mi_new_realloc(p, much()); }));
  MI_CHECK(mi_test_filled(p, 100, 1));
  p = mi_new_realloc(p, 1000);
  MI_CHECK(mi_test_filled(p, 96, 1));
  mi_free(p);
}

MI_TEST_MAIN()
