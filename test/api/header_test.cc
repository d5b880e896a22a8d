// Owns: the public headers as C++, compiled for each standard with all warnings as errors.
// May include: test/lib, the public headers, the C++ library.
// Called by: the tests header_cxx11, header_cxx14, header_cxx17, header_cxx20.
// Invariants: this is the one file of its program that includes mimalloc-new-delete.h.
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "test/api/header_calls.h"
#include "test/api/header_calls_arenas.h"
#include "test/api/header_calls_events.h"
#include "test/api/header_calls_heaps.h"
#include "test/api/header_calls_layout.h"
#include "test/api/header_calls_profile.h"
#include "test/api/header_calls_profiler.h"
#include "test/api/header_calls_stats.h"
#include "test/api/header_calls_subproc.h"
#include "test/api/header_calls_threads.h"

#include "mimalloc-new-delete.h"

namespace {

template <class T>
using alloc = mi_stl_allocator<T>;

typedef std::basic_string<char, std::char_traits<char>, alloc<char>> string;

struct alignas(128) wide {
  explicit wide(int v) : value(v) {}
  int value;
};

}  // namespace

MI_TEST(stl_vector) {
  std::vector<int, alloc<int>> v;
  for (int i = 0; i < 10000; i++) v.push_back(i);
  MI_CHECK(mi_is_in_heap_region(v.data()));
  long long sum = 0;
  for (int x : v) sum += x;
  MI_CHECK_EQ(sum, 49995000);
  std::vector<int, alloc<int>> copy(v), moved(std::move(v));
  MI_CHECK(copy == moved);
  copy.resize(10);
  copy.shrink_to_fit();
  std::swap(copy, moved);
  MI_CHECK_EQ(copy.size(), 10000);
  MI_CHECK_EQ(moved.size(), 10);
}

MI_TEST(stl_nodes) {
  std::list<string, alloc<string>> list;
  std::map<int, string, std::less<int>, alloc<std::pair<const int, string>>> map;
  std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, alloc<std::pair<const int, int>>> hash;
  std::deque<int, alloc<int>> deque;
  for (int i = 0; i < 1000; i++) {
    const string text(static_cast<size_t>(i % 100), 'x');
    list.push_front(text);
    map[i] = text;
    hash[i] = i * i;
    deque.push_front(i);
  }
  MI_CHECK(mi_is_in_heap_region(&list.front()) && mi_is_in_heap_region(&map.begin()->second));
  MI_CHECK_EQ(list.front().size(), 99);
  MI_CHECK_EQ(map[537].size(), 37);
  MI_CHECK_EQ(hash[31], 961);
  MI_CHECK_EQ(deque.back(), 0);
  map.erase(537);
  MI_CHECK_EQ(map.count(537), 0);
  const std::shared_ptr<int> shared = std::allocate_shared<int>(alloc<int>(), 42);
  MI_CHECK(*shared == 42 && mi_is_in_heap_region(shared.get()));
}

MI_TEST(stl_alignment) {
  std::vector<wide, alloc<wide>> v;
  for (int i = 0; i < 100; i++) v.emplace_back(i);
  for (int i = 0; i < 100; i++) MI_CHECK(v[static_cast<size_t>(i)].value == i);
  check_at(v.data(), 128, 0);
}

MI_TEST(stl_traits) {
  typedef std::allocator_traits<alloc<int>> traits;
  static_assert(std::is_same<traits::rebind_alloc<char>, alloc<char>>::value, "rebinds to itself");
  static_assert(traits::propagate_on_container_swap::value, "swaps without looking at the allocators");
  static_assert(std::is_nothrow_copy_constructible<alloc<int>>::value, "copies cannot fail");
  MI_CHECK(alloc<int>() == alloc<char>() && !(alloc<int>() != alloc<char>()));
  alloc<int> a;
  MI_CHECK(traits::max_size(a) <= PTRDIFF_MAX / sizeof(int));
  bool thrown = false;
  try {
    int* p = traits::allocate(a, mi_test_hide_size(SIZE_MAX / 2));
    MI_CHECK(p == nullptr);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  MI_CHECK(thrown);
  int* p = traits::allocate(a, 7);
  traits::construct(a, p, 3);
  MI_CHECK_EQ(*p, 3);
  MI_CHECK(a.address(*p) == p);
  traits::destroy(a, p);
  traits::deallocate(a, p, 7);
}

MI_TEST(new_delete) {
  // By name, so that no pair can be left out by the compiler.
  void* p = ::operator new(10);
  MI_CHECK(mi_is_in_heap_region(p));
  ::operator delete(p);
  ::operator delete[](p = ::operator new[](10));
  p = ::operator new(10, std::nothrow);
  MI_CHECK(mi_is_in_heap_region(p));
  ::operator delete(p, std::nothrow);
  p = ::operator new[](10, std::nothrow);
  ::operator delete[](p, std::nothrow);
  MI_CHECK(::operator new(mi_test_hide_size(SIZE_MAX / 2), std::nothrow) == nullptr);
#if defined(__cpp_sized_deallocation)
  ::operator delete(::operator new(10), static_cast<size_t>(10));
  ::operator delete[](::operator new[](10), static_cast<size_t>(10));
#endif
#if defined(__cpp_aligned_new)
  const std::align_val_t a = std::align_val_t(128);
  p = ::operator new(10, a);
  MI_CHECK(mi_is_in_heap_region(p));
  check_at(p, 128, 0);
  ::operator delete(p, a);
  ::operator delete[](::operator new[](10, a), a);
  ::operator delete(::operator new(10, a), static_cast<size_t>(10), a);
  ::operator delete[](::operator new[](10, a), static_cast<size_t>(10), a);
  p = ::operator new(10, a, std::nothrow);
  check_at(p, 128, 0);
  ::operator delete(p, a, std::nothrow);
  p = ::operator new[](10, a, std::nothrow);
  ::operator delete[](p, a, std::nothrow);
  MI_CHECK(::operator new(mi_test_hide_size(SIZE_MAX / 2), a, std::nothrow) == nullptr);
  wide* const w = new wide(5);
  check_at(w, 128, 0);
  MI_CHECK_EQ(w->value, 5);
  delete w;
#endif
}

MI_TEST_MAIN()
