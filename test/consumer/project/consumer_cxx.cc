// Owns: the same in C++, by the standard containers.
// May include: the installed headers only.
// Called by: CMakeLists.txt and Makefile here, for install_test.py.
// Invariants: prints "ours" and returns 0, or says what is not.
#include <mimalloc.h>

#include <cstdio>
#include <map>
#include <string>

int main() {
  std::map<std::string, int> words;
  for (int i = 0; i < 1000; i++) {
    words["a word that does not fit into the string itself, number " + std::to_string(i)] = i;
  }
  if (!mi_is_in_heap_region(&words.begin()->second)) {
    std::puts("operator new is not ours");
    return 1;
  }
  std::puts("ours");
  return 0;
}
