// Owns: the allocators of mimalloc.h for the containers of the C++ library: where they put things, and that nothing stays.
// May include: test/lib, mimalloc.h, the C++ library.
// Called by: the tests stl_cxx11, stl_cxx14, stl_cxx17, stl_cxx20.
// Invariants: valid in C++11; what is left over is counted by visiting the heap, never by the allocators' own word.
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#if __cplusplus >= 201703L
#include <memory_resource>
#endif

#include "mimalloc.h"
#include "test/lib/test.h"

// A variant may report each failed request, which some of these are.
__attribute__((constructor)) static void be_quiet() { mi_option_disable(mi_option_show_errors); }

namespace {

bool count_block(const mi_heap_t*, const mi_heap_area_t*, void* block, size_t, void* arg) {
  *static_cast<size_t*>(arg) += block != nullptr;
  return true;
}

// How many live blocks a heap has.
size_t live(mi_heap_t* heap) {
  size_t n = 0;
  MI_CHECK(mi_heap_visit_blocks(heap, true, count_block, &n));
  return n;
}

// A heap that must be empty in the end.
struct scoped_heap {
  scoped_heap() : heap(mi_heap_new()) { MI_CHECK(heap != nullptr); }
  ~scoped_heap() {
    MI_CHECK_EQ(live(heap), 0);
    mi_heap_delete(heap);
  }
  scoped_heap(const scoped_heap&) = delete;
  scoped_heap& operator=(const scoped_heap&) = delete;
  mi_heap_t* const heap;
};

template <template <class> class A>
using string_of = std::basic_string<char, std::char_traits<char>, A<char>>;
template <template <class> class A, class K, class V>
using map_of = std::map<K, V, std::less<K>, A<std::pair<const K, V>>>;
template <template <class> class A, class K, class V>
using hash_of = std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, A<std::pair<const K, V>>>;

template <size_t Align>
struct alignas(Align) aligned_int {
  aligned_int(int v = 0) : value(v) {}
  bool operator<(const aligned_int& other) const { return value < other.value; }
  int value;
};

bool is_at(const void* p, size_t align) { return reinterpret_cast<uintptr_t>(p) % align == 0; }

// Every kind of container; `lies` tells whether an address is where the allocator should have put it.
template <template <class> class A, class Lies>
void fill_containers(const A<int>& a, Lies lies) {
  std::vector<int, A<int>> vector(a);
  std::deque<int, A<int>> deque(a);
  std::list<string_of<A>, A<string_of<A>>> list(a);
  std::forward_list<int, A<int>> forward(a);
  std::set<int, std::less<int>, A<int>> set(a);
  map_of<A, int, string_of<A>> map(a);
  hash_of<A, int, int> hash(a);
  string_of<A> text(a);
  for (int i = 0; i < 1000; i++) {
    string_of<A> word(static_cast<size_t>(i % 100), 'x', a);
    vector.push_back(i);
    deque.push_front(i);
    list.push_front(word);
    forward.push_front(i);
    set.insert(999 - i);
    map.insert(std::make_pair(i, word));
    hash.insert(std::make_pair(i, i * i));
    text += word;
  }
  MI_CHECK(lies(vector.data()) && lies(&deque.back()) && lies(&list.front()) && lies(list.front().data()) && lies(&forward.front()));
  MI_CHECK(lies(&*set.begin()) && lies(&map.begin()->second) && lies(map.at(99).data()) && lies(&*hash.begin()) && lies(text.data()));
  long long sum = 0;
  for (int x : vector) sum += x;
  MI_CHECK_EQ(sum, 499500);
  MI_CHECK_EQ(deque.back(), 0);
  MI_CHECK_EQ(list.front().size(), 99);
  MI_CHECK_EQ(map.at(537).size(), 37);
  MI_CHECK_EQ(hash.at(31), 961);
  MI_CHECK_EQ(text.size(), 49500);
  map.erase(537);
  MI_CHECK_EQ(map.count(537), 0);
  vector.resize(10);
  vector.shrink_to_fit();
  std::vector<int, A<int>> copy(vector), moved(std::move(vector));
  MI_CHECK(copy == moved && lies(copy.data()) && lies(moved.data()));

  const std::shared_ptr<string_of<A>> shared = std::allocate_shared<string_of<A>>(a, size_t(300), 's', a);
  const std::weak_ptr<string_of<A>> weak = shared;
  MI_CHECK(lies(shared.get()) && lies(shared->data()) && weak.lock() == shared);
}

template <template <class> class A, size_t Align, class Lies>
void fill_aligned(const A<int>& a, Lies lies) {
  typedef aligned_int<Align> wide;
  std::vector<wide, A<wide>> vector(a);
  std::list<wide, A<wide>> list(a);
  std::set<wide, std::less<wide>, A<wide>> set(a);
  for (int i = 0; i < 100; i++) {
    vector.emplace_back(i);
    list.emplace_back(i);
    set.insert(wide(i));
    MI_CHECK(lies(&vector.back()) && is_at(&vector.back(), Align));
    MI_CHECK(lies(&list.back()) && is_at(&list.back(), Align) && is_at(&*set.rbegin(), Align));
  }
  MI_CHECK(vector[57].value == 57 && list.back().value == 99 && set.count(wide(31)) == 1);
  const std::shared_ptr<wide> shared = std::allocate_shared<wide>(a, 7);
  MI_CHECK(lies(shared.get()) && is_at(shared.get(), Align) && shared->value == 7);
}

template <template <class> class A, class Lies>
void fill_all(const A<int>& a, Lies lies) {
  fill_containers<A>(a, lies);
  fill_aligned<A, 32>(a, lies);
  fill_aligned<A, 256>(a, lies);
  fill_aligned<A, 8192>(a, lies);
}

// An element whose copies fail after some.
struct fragile {
  static int copies_left;
  fragile() : memory(1000, 'f') {}
  fragile(const fragile& other) : memory(other.memory) {
    if (copies_left-- == 0) throw std::runtime_error("no more copies");
  }
  fragile& operator=(const fragile&) = default;
  std::vector<char> memory;
};
int fragile::copies_left;

template <template <class> class A>
void throw_from_constructors(const A<int>& a) {
  for (int copies = 0; copies < 12; copies++) {
    fragile::copies_left = copies;
    bool thrown = false;
    try {
      std::vector<fragile, A<fragile>> vector(a);
      std::list<fragile, A<fragile>> list(a);
      const fragile one;
      for (int i = 0; i < 5; i++) list.push_back(one);
      for (int i = 0; i < 5; i++) vector.push_back(one);
      const std::shared_ptr<fragile> shared = std::allocate_shared<fragile>(a, one);
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    MI_CHECK(thrown);
  }
}

int handler_calls;
void give_up_at_the_third_call() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

// A request that no system can meet ends in std::bad_alloc, after the calls of the new-handler.
template <class T, template <class> class A>
void fail(const A<int>& base) {
  A<T> a(base);
  const size_t counts[] = {mi_test_hide_size(PTRDIFF_MAX / sizeof(T)), mi_test_hide_size(SIZE_MAX)};
  for (size_t i = 0; i < 2; i++) {
    bool thrown = false;
    handler_calls = 0;
    std::set_new_handler(give_up_at_the_third_call);
    try {
      T* const p = a.allocate(counts[i]);
      MI_CHECK(p == nullptr);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    std::set_new_handler(nullptr);
    // A number of bytes that overflows is not worth asking the handler for.
    MI_CHECK(thrown);
    MI_CHECK_EQ(handler_calls, i == 0 ? 3 : 0);
  }
}

template <template <class> class A>
void check_traits(const A<int>& a) {
  typedef std::allocator_traits<A<int>> traits;
  static_assert(std::is_same<typename traits::template rebind_alloc<char>, A<char>>::value, "rebinds to itself");
  static_assert(std::is_same<typename A<int>::template rebind<char>::other, A<char>>::value, "also by its own member");
  static_assert(traits::propagate_on_container_copy_assignment::value && traits::propagate_on_container_move_assignment::value &&
                    traits::propagate_on_container_swap::value,
                "goes with the contents");
  static_assert(std::is_nothrow_copy_constructible<A<int>>::value && std::is_copy_assignable<A<int>>::value, "copies cannot fail");
  static_assert(std::is_same<typename traits::pointer, int*>::value && std::is_same<typename traits::size_type, size_t>::value, "plain types");
  A<int> copy(a);
  const A<char> other(copy);
  const A<int> back(other);
  MI_CHECK(copy == a && other == a && back == a && !(copy != a) && !(other != back));
  const A<int> moved(std::move(copy));
  MI_CHECK(copy == moved && copy == a);
  MI_CHECK(traits::select_on_container_copy_construction(a) == a);
  MI_CHECK(traits::max_size(a) == PTRDIFF_MAX / sizeof(int));
  int* const p = traits::allocate(copy, 7);
  traits::construct(copy, p, 3);
  MI_CHECK(*p == 3 && a.address(*p) == p && a.address(*const_cast<const int*>(p)) == p);
  traits::destroy(copy, p);
  A<int>(other).deallocate(p, 7);
  fail<int, A>(a);
  fail<aligned_int<128>, A>(a);
}

}  // namespace

MI_TEST(stateless) {
  const auto lies = [](const void* p) { return mi_is_in_heap_region(p); };
  fill_all<mi_stl_allocator>(mi_stl_allocator<int>(), lies);
  check_traits<mi_stl_allocator>(mi_stl_allocator<int>());
  throw_from_constructors<mi_stl_allocator>(mi_stl_allocator<int>());
  static_assert(mi_stl_allocator<int>::is_always_equal::value && std::is_empty<mi_stl_allocator<int>>::value, "has no state");
}

MI_TEST(heap_that_is_given) {
  scoped_heap h;
  const auto lies = [&h](const void* p) { return mi_heap_contains(h.heap, p); };
  const mi_heap_stl_allocator<int> a(h.heap);
  fill_all<mi_heap_stl_allocator>(a, lies);
  check_traits<mi_heap_stl_allocator>(a);
  throw_from_constructors<mi_heap_stl_allocator>(a);
  static_assert(!mi_heap_stl_allocator<int>::is_always_equal::value, "has a heap");
  MI_CHECK(a.is_equal(mi_heap_stl_allocator<char>(h.heap)) && a == mi_heap_stl_allocator<char>(h.heap));
  MI_CHECK(!a.is_equal(mi_heap_stl_allocator<int>(mi_heap_main())) && a != mi_heap_stl_allocator<char>());
}

MI_TEST(heap_that_is_given_and_destroyed_by_its_owner) {
  mi_heap_t* const heap = mi_heap_new();
  const auto lies = [heap](const void* p) { return mi_heap_contains(heap, p); };
  {
    const mi_heap_destroy_stl_allocator<int> a(heap);
    fill_all<mi_heap_destroy_stl_allocator>(a, lies);
    check_traits<mi_heap_destroy_stl_allocator>(a);
    throw_from_constructors<mi_heap_destroy_stl_allocator>(a);
    static_assert(!mi_heap_destroy_stl_allocator<int>::is_always_equal::value, "has a heap");
  }
  // Nothing was freed one by one, and the heap is there still.
  MI_CHECK(live(heap) > 1000);
  void* const p = mi_heap_malloc(heap, 100);
  MI_CHECK(mi_heap_contains(heap, p));
  mi_heap_destroy(heap);
}

MI_TEST(own_heap_ends_with_its_last_copy) {
  int* kept = nullptr;
  {
    mi_heap_stl_allocator<char> last(nullptr);
    {
      mi_heap_stl_allocator<int> a;
      MI_CHECK(a != mi_heap_stl_allocator<int>() && a != mi_heap_stl_allocator<int>(mi_heap_main()));
      kept = a.allocate(10);
      last = mi_heap_stl_allocator<char>(a);
    }
    kept[9] = 1234;
    last.deallocate(last.allocate(100), 100);
    MI_CHECK(!mi_heap_contains(mi_heap_main(), kept));
  }
  // The heap was deleted: what was live is the main heap's now.
  MI_CHECK(mi_heap_contains(mi_heap_main(), kept) && kept[9] == 1234);
  mi_stl_allocator<int>().deallocate(kept, 10);
}

MI_TEST(own_heap_is_destroyed_with_its_last_copy) {
  const void* inside[3];
  {
    typedef mi_heap_destroy_stl_allocator<int> alloc;
    std::unique_ptr<std::vector<int, alloc>> outer(new std::vector<int, alloc>(1000, 7));
    std::list<int, alloc> list(outer->get_allocator());
    list.assign(100, 8);
    string_of<mi_heap_destroy_stl_allocator> text(1000, 'x', outer->get_allocator());
    inside[0] = outer->data();
    inside[1] = &list.front();
    inside[2] = text.data();
    outer.reset();
    // Not freed, since others share the heap.
    MI_CHECK_EQ(*static_cast<const int*>(inside[0]), 7);
    for (const void* p : inside) MI_CHECK(mi_check_owned(p) && !mi_heap_contains(mi_heap_main(), p));
  }
  for (const void* p : inside) MI_CHECK(mi_heap_of(p) == nullptr);
}

MI_TEST(a_shared_pointer_keeps_its_heap) {
  std::shared_ptr<string_of<mi_heap_stl_allocator>> text;
  {
    const mi_heap_stl_allocator<char> a;
    text = std::allocate_shared<string_of<mi_heap_stl_allocator>>(a, size_t(500), 't', a);
  }
  MI_CHECK(text->size() == 500 && !mi_heap_contains(mi_heap_main(), text.get()));
  std::shared_ptr<std::vector<int, mi_heap_destroy_stl_allocator<int>>> vector;
  {
    const mi_heap_destroy_stl_allocator<int> a;
    vector = std::allocate_shared<std::vector<int, mi_heap_destroy_stl_allocator<int>>>(a, size_t(500), 5, a);
  }
  MI_CHECK(vector->back() == 5 && !mi_heap_contains(mi_heap_main(), vector.get()));
}

// Contents move between containers of different heaps: with their allocator, or one by one where that stays.
MI_TEST(two_heaps) {
  scoped_heap one, two;
  typedef mi_heap_stl_allocator<int> alloc;
  typedef std::vector<int, alloc> vector;
  typedef std::list<int, alloc> list;
  const alloc a(one.heap), b(two.heap);
  {
    vector va(100, 1, a), vb(200, 2, b);
    const int* const data = va.data();
    va.swap(vb);
    MI_CHECK(vb.data() == data && vb.get_allocator() == a && va.get_allocator() == b && va.size() == 200);
    va = std::move(vb);
    MI_CHECK(va.data() == data && va.get_allocator() == a);
    vb = va;
    MI_CHECK(vb == va && vb.get_allocator() == a && mi_heap_contains(one.heap, vb.data()));
    const vector elsewhere(std::move(va), b);  // another heap: its elements are moved one by one
    MI_CHECK(elsewhere.size() == 100 && elsewhere[99] == 1 && mi_heap_contains(two.heap, elsewhere.data()));
    const vector copied(elsewhere, a);
    MI_CHECK(copied == elsewhere && mi_heap_contains(one.heap, copied.data()));
    va.assign(5, 3);  // what was moved from serves again
    MI_CHECK(va.size() == 5 && mi_heap_contains(one.heap, va.data()));
  }
  {
    list la(100, 1, a), lb(200, 2, b), other(50, 3, alloc(mi_heap_stl_allocator<char>(a)));
    la.splice(la.end(), other);  // the same heap, which splice asks for
    MI_CHECK(la.size() == 150 && other.empty() && mi_heap_contains(one.heap, &la.back()));
    const int* const front = &la.front();
    std::swap(la, lb);
    MI_CHECK(&lb.front() == front && lb.get_allocator() == a);
    la = std::move(lb);
    MI_CHECK(&la.front() == front && la.get_allocator() == a);
    const list elsewhere(std::move(la), b);
    MI_CHECK(elsewhere.size() == 150 && mi_heap_contains(two.heap, &elsewhere.back()));
    la = elsewhere;
    MI_CHECK(la.size() == 150 && la.get_allocator() == b);
  }
  {
    map_of<mi_heap_stl_allocator, int, int> ma(a), mb(b);
    for (int i = 0; i < 100; i++) ma[i] = mb[i + 1000] = i;
    ma.swap(mb);
    MI_CHECK(ma.count(1000) == 1 && mi_heap_contains(two.heap, &*ma.begin()));
    mb = std::move(ma);
    MI_CHECK(mb.count(1099) == 1 && mi_heap_contains(two.heap, &*mb.begin()));
  }
}

MI_TEST(threads_share_an_allocator) {
  scoped_heap h;
  const mi_heap_stl_allocator<int> a(h.heap);
  std::vector<std::shared_ptr<std::deque<int, mi_heap_stl_allocator<int>>>> made(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < made.size(); t++) {
    threads.emplace_back([t, &made, a, &h] {
      made[t] = std::allocate_shared<std::deque<int, mi_heap_stl_allocator<int>>>(a, a);
      for (int i = 0; i < 5000; i++) made[t]->push_back(i);
      MI_CHECK(mi_heap_contains(h.heap, &made[t]->back()));
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& d : made) MI_CHECK(d->size() == 5000 && d->back() == 4999);
}

#if __cplusplus >= 201703L
namespace {

// How a program offers a heap to code that takes any memory resource.
class heap_resource : public std::pmr::memory_resource {
 public:
  explicit heap_resource(mi_heap_t* h) : heap(h) {}

 private:
  void* do_allocate(size_t size, size_t align) override {
    void* const p = mi_heap_malloc_aligned(heap, size, align);
    if (p == nullptr) throw std::bad_alloc();
    return p;
  }
  void do_deallocate(void* p, size_t size, size_t align) override { mi_free_size_aligned(p, size, align); }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    const heap_resource* const o = dynamic_cast<const heap_resource*>(&other);
    return o != nullptr && o->heap == heap;
  }
  mi_heap_t* const heap;
};

}  // namespace

MI_TEST(polymorphic) {
  scoped_heap one, two;
  heap_resource ra(one.heap), same(one.heap), rb(two.heap);
  MI_CHECK(ra == same && ra != rb && ra != *std::pmr::new_delete_resource());
  {
    std::pmr::vector<std::pmr::string> words(&ra);
    std::pmr::map<int, std::pmr::string> map(&ra);
    std::pmr::vector<aligned_int<512>> wide(&ra);
    for (int i = 0; i < 300; i++) {
      words.emplace_back(static_cast<size_t>(i), 'w');
      map.emplace(i, words.back());
      wide.emplace_back(i);
    }
    MI_CHECK(mi_heap_contains(one.heap, words.data()) && mi_heap_contains(one.heap, words.back().data()));
    MI_CHECK(mi_heap_contains(one.heap, map[299].data()) && mi_heap_contains(one.heap, &wide.back()) && is_at(wide.data(), 512));
    std::pmr::vector<std::pmr::string> other(&rb);
    other = std::move(words);  // resources do not move with contents
    MI_CHECK(other.size() == 300 && mi_heap_contains(two.heap, other.back().data()));
    std::pmr::monotonic_buffer_resource buffer(&rb);
    std::pmr::list<int> list(&buffer);
    list.assign(1000, 1);
    MI_CHECK(mi_heap_contains(two.heap, &list.back()));
    std::pmr::unsynchronized_pool_resource pool(&rb);
    std::pmr::list<std::pmr::string> pooled(&pool);
    for (int i = 0; i < 100; i++) pooled.emplace_back(100, 'p');
    MI_CHECK(mi_heap_contains(two.heap, pooled.back().data()));
  }
}
#endif

MI_TEST_MAIN()
