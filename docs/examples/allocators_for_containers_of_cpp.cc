// Containers on the main heap, on a heap of the program, and on one that goes with the last of them.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "mimalloc.h"

int main() {
  std::vector<int, mi_stl_allocator<int>> numbers;
  numbers.assign(1000, 1);

  mi_heap_t* const heap = mi_heap_new();
  {
    const mi_heap_stl_allocator<int> of_heap(heap);  // does not end the heap
    std::vector<int, mi_heap_stl_allocator<int>> more(1000, 2, of_heap);
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  mi_heap_delete(heap);

  typedef std::basic_string<char, std::char_traits<char>, mi_heap_destroy_stl_allocator<char>> text;
  typedef std::pair<const int, text> entry;
  {
    // The map has a heap, which its strings share. Nothing is freed one by one; the heap is destroyed with the map.
    const mi_heap_destroy_stl_allocator<entry> own;
    std::map<int, text, std::less<int>, mi_heap_destroy_stl_allocator<entry>> names(own);
    for (int i = 0; i < 100; i++) names.insert(entry(i, text("a name that is long enough for a block of its own", own)));
    std::printf("%zu names, %zu numbers\n", names.size(), numbers.size());
  }
  return numbers.back() == 2 ? 0 : 1;
}
