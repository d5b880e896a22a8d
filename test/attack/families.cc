// Owns: attacks by a free that says the wrong size, alignment or family of a block.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: families HOW SIZE.
// Invariants: the goal is that the free is done and goes unnoticed, also when the block is handed out again.
// Flags: -pthread -fno-builtin
#include <dlfcn.h>

#include <new>
#include <string>

#include "test/attack/attack.h"

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  const std::string how = argv[1];
  const size_t size = static_cast<size_t>(strtoull(argv[2], nullptr, 10));
  // The family that a name begins with is the block's, the rest is the free's.
  const bool is_array = how.compare(0, 9, "new-array") == 0;
  const bool is_aligned = how.compare(0, 11, "aligned-new") == 0;
  const bool is_malloc = how.compare(0, 6, "malloc") == 0;
  void* p = is_array ? ::operator new[](size)
      : is_aligned   ? ::operator new(size, std::align_val_t(256))
      : is_malloc    ? malloc(size)
                     : ::operator new(size);
  MI_REQUIRE(p != nullptr);
  p = attack_announce(p);
  if (how == "new-free") {
    free(p);
  } else if (how == "new-realloc") {
    p = realloc(p, size * 2);
  } else if (how == "malloc-delete" || how == "new-array-delete" || how == "aligned-new-delete") {
    ::operator delete(p);
  } else if (how == "malloc-delete-array" || how == "new-delete-array") {
    ::operator delete[](p);
  } else if (how == "new-delete-aligned") {
    // Off what the free says it is aligned to.
    if ((reinterpret_cast<uintptr_t>(p) & 4095) == 0) p = attack_announce(::operator new(size));
    ::operator delete(p, std::align_val_t(4096));
  } else if (how == "new-delete-larger") {
    ::operator delete(p, size * 4);
  } else if (how == "new-delete-smaller") {
    ::operator delete(p, size / 4 + 1);
  } else if (how == "new-delete-one-more") {
    ::operator delete(p, size + 1);
  } else if (how == "new-array-delete-larger") {
    ::operator delete[](p, size * 4);
  } else if (how == "malloc-free-sized-larger") {
    auto* free_sized = reinterpret_cast<void (*)(void*, size_t)>(dlsym(RTLD_DEFAULT, "free_sized"));
    MI_REQUIRE(free_sized != nullptr);
    free_sized(p, size * 4);
  } else if (how == "malloc-free-aligned-sized") {
    auto* free_aligned_sized = reinterpret_cast<void (*)(void*, size_t, size_t)>(dlsym(RTLD_DEFAULT, "free_aligned_sized"));
    MI_REQUIRE(free_aligned_sized != nullptr);
    free_aligned_sized(p, 16, size * 4);
  } else {
    attack_usage(how.c_str());
  }
  attack_take(size, nullptr, nullptr);
  attack_end(true);
}
