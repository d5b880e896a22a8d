// Owns: frees that do not fit the allocation: another family, a wrong size, a wrong or dropped alignment; and all pairs that do.
// May include: test/lib, the C++ library.
// Called by: rows of test/death/family.txt; see the usage at the end.
// Invariants: `pair` and `twice` print the address before the free, and ends with 0 when that went unnoticed; `legal` is silent.
// Flags: -std=c++17 -pthread -fno-builtin
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/lib/test.h"

// C23; not every C library has them.
extern "C" {
void free_sized(void* p, size_t size) __attribute__((weak));
void free_aligned_sized(void* p, size_t align, size_t size) __attribute__((weak));
}

namespace {

const size_t kAlign = 64;
const size_t kSizes[] = {1, 8, 24, 100, 1000, 4096, 40000, 256 << 10, 3 << 20};

std::align_val_t al(size_t align) { return static_cast<std::align_val_t>(align); }

struct Alloc {
  const char* name;
  void* (*make)(size_t size, size_t align);
};

const Alloc kAllocs[] = {
    {"malloc", [](size_t n, size_t) { return malloc(n); }},
    {"calloc", [](size_t n, size_t) { return calloc(1, n); }},
    {"realloc", [](size_t n, size_t) { return realloc(malloc(n * 4 + 100), n); }},
    {"strdup", [](size_t n, size_t) { return static_cast<void*>(strdup(std::string(n - 1, 'x').c_str())); }},
    {"aligned_alloc", [](size_t n, size_t a) { return aligned_alloc(a, n); }},
    {"memalign", [](size_t n, size_t a) { return memalign(a, n); }},
    {"posix_memalign",
     [](size_t n, size_t a) {
       void* p = nullptr;
       return posix_memalign(&p, a < sizeof(void*) ? sizeof(void*) : a, n) == 0 ? p : nullptr;
     }},
    {"valloc", [](size_t n, size_t) { return valloc(n); }},
    {"new", [](size_t n, size_t) { return operator new(n); }},
    {"new-nothrow", [](size_t n, size_t) { return operator new(n, std::nothrow); }},
    {"new[]", [](size_t n, size_t) { return operator new[](n); }},
    {"new[]-nothrow", [](size_t n, size_t) { return operator new[](n, std::nothrow); }},
    {"new-aligned", [](size_t n, size_t a) { return operator new(n, al(a)); }},
    {"new-aligned-nothrow", [](size_t n, size_t a) { return operator new(n, al(a), std::nothrow); }},
    {"new[]-aligned", [](size_t n, size_t a) { return operator new[](n, al(a)); }},
    {"new[]-aligned-nothrow", [](size_t n, size_t a) { return operator new[](n, al(a), std::nothrow); }},
};

struct Free {
  const char* name;
  const char* takes;  // the beginnings of the allocs' names, each behind a blank
  void (*call)(void* p, size_t size, size_t align);
};

const char kC[] = " malloc calloc realloc strdup aligned_alloc memalign posix_memalign valloc ";

const Free kFrees[] = {
    {"free", kC, [](void* p, size_t, size_t) { free(p); }},
    {"realloc", kC, [](void* p, size_t n, size_t) { free(realloc(p, n * 3 + 1)); }},
    {"realloc-smaller", kC, [](void* p, size_t n, size_t) { free(realloc(p, n - n / 8)); }},
    {"reallocarray", kC, [](void* p, size_t n, size_t) { free(reallocarray(p, 2, n)); }},
    {"free_sized", " malloc calloc realloc strdup ", [](void* p, size_t n, size_t) { (free_sized != nullptr) ? free_sized(p, n) : free(p); }},
    {"free_aligned_sized", " aligned_alloc memalign posix_memalign ",
     [](void* p, size_t n, size_t a) { (free_aligned_sized != nullptr) ? free_aligned_sized(p, a, n) : free(p); }},
    {"delete", " new new-nothrow ", [](void* p, size_t, size_t) { operator delete(p); }},
    {"delete-nothrow", " new new-nothrow ", [](void* p, size_t, size_t) { operator delete(p, std::nothrow); }},
    {"delete-sized", " new new-nothrow ", [](void* p, size_t n, size_t) { operator delete(p, n); }},
    {"delete[]", " new[] new[]-nothrow ", [](void* p, size_t, size_t) { operator delete[](p); }},
    {"delete[]-nothrow", " new[] new[]-nothrow ", [](void* p, size_t, size_t) { operator delete[](p, std::nothrow); }},
    {"delete[]-sized", " new[] new[]-nothrow ", [](void* p, size_t n, size_t) { operator delete[](p, n); }},
    {"delete-aligned", " new-aligned new-aligned-nothrow ", [](void* p, size_t, size_t a) { operator delete(p, al(a)); }},
    {"delete-aligned-nothrow", " new-aligned new-aligned-nothrow ", [](void* p, size_t, size_t a) { operator delete(p, al(a), std::nothrow); }},
    {"delete-aligned-sized", " new-aligned new-aligned-nothrow ", [](void* p, size_t n, size_t a) { operator delete(p, n, al(a)); }},
    {"delete[]-aligned", " new[]-aligned new[]-aligned-nothrow ", [](void* p, size_t, size_t a) { operator delete[](p, al(a)); }},
    {"delete[]-aligned-nothrow", " new[]-aligned new[]-aligned-nothrow ",
     [](void* p, size_t, size_t a) { operator delete[](p, al(a), std::nothrow); }},
    {"delete[]-aligned-sized", " new[]-aligned new[]-aligned-nothrow ",
     [](void* p, size_t n, size_t a) { operator delete[](p, n, al(a)); }},
};

bool takes(const Free& f, const Alloc& a) { return std::string(f.takes).find(" " + std::string(a.name) + " ") != std::string::npos; }

template <typename T, size_t N>
const T* find(const T (&table)[N], const char* name) {
  for (const T& row : table) {
    if (strcmp(row.name, name) == 0) return &row;
  }
  mi_test_say("nothing is called %s", name);
  _exit(2);
}

void announce(void* p) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "pointer 0x%llx\n", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(p)));
  mi_test_write(1, line, static_cast<size_t>(n));
}

int pair(const Alloc* a, const Free* f, size_t size, size_t freed_size, size_t freed_align, bool in_thread) {
  // A neighbour, so that the page stays in use.
  static void* volatile keep MI_TEST_UNUSED;
  keep = a->make(size, kAlign);
  void* p = mi_test_hide(a->make(size, kAlign));
  MI_REQUIRE(p != nullptr);
  announce(p);
  if (in_thread) {
    std::thread([&] { f->call(p, freed_size, freed_align); }).join();
  } else {
    f->call(p, freed_size, freed_align);
  }
  mi_test_write(1, "went on\n", 8);
  return 0;
}

// Freed in one form, and again in the same or another.
int twice(const Alloc* a, const Free* f, size_t size, size_t second_size, const Free* second) {
  static void* volatile keep MI_TEST_UNUSED;
  keep = a->make(size, kAlign);
  void* p = a->make(size, kAlign);
  MI_REQUIRE(p != nullptr);
  announce(p);
  f->call(mi_test_hide(p), size, kAlign);
  second->call(mi_test_hide(p), second_size, kAlign);
  mi_test_write(1, "went on\n", 8);
  return 0;
}

void legal_pairs() {
  for (const size_t size : kSizes) {
    for (const Alloc& a : kAllocs) {
      for (const Free& f : kFrees) {
        if (!takes(f, a)) continue;
        const bool aligned = strstr(a.name, "align") != nullptr;
        for (size_t align = aligned ? 1 : kAlign; align <= (aligned ? size_t{1} << 20 : kAlign); align *= 4) {
          // C's alignments are at least a pointer's in posix_memalign, which the test raises by itself.
          const size_t named = strcmp(a.name, "posix_memalign") == 0 && align < sizeof(void*) ? sizeof(void*) : align;
          void* p = a.make(size, named);
          MI_REQUIRE(p != nullptr);
          memset(p, 1, size);
          f.call(p, size, named);
          // By another thread, and beside others of the same page.
          void* q[3] = {a.make(size, named), a.make(size, named), a.make(size, named)};
          if (align == kAlign && size <= 40000) {
            std::thread([&] { f.call(q[1], size, named); }).join();
          } else {
            f.call(q[1], size, named);
          }
          f.call(q[0], size, named);
          f.call(q[2], size, named);
        }
      }
    }
  }
}

// What realloc leaves where it was is known by its new size.
void legal_resized() {
  for (const size_t size : kSizes) {
    for (size_t percent = 30; percent <= 300; percent += 15) {
      const size_t to = std::max<size_t>(size * percent / 100, 1);
      void* p = realloc(malloc(size), to);
      MI_REQUIRE(p != nullptr);
      if (free_sized != nullptr) {
        free_sized(p, to);
      } else {
        free(p);
      }
      p = realloc(aligned_alloc(kAlign, size), to);
      if (free_sized != nullptr) {
        free_sized(p, to);
      } else {
        free(p);
      }
    }
  }
}

void legal_zero() {
  if (free_sized != nullptr) free_sized(malloc(0), 0);
  if (free_aligned_sized != nullptr) free_aligned_sized(aligned_alloc(256, 0), 256, 0);
  operator delete (operator new(0), size_t{0});
  operator delete[](operator new[](0), size_t{0});
  operator delete(operator new(0, al(4096)), 0, al(4096));
  operator delete(operator new(0, al(1 << 20)), 0, al(1 << 20));
  operator delete (nullptr, size_t{8});
  operator delete[](nullptr, size_t{8}, al(64));
  if (free_sized != nullptr) free_sized(nullptr, 8);
}

struct Base {
  virtual ~Base() = default;
  int x = 0;
};
struct Derived : Base {
  char more[500] = {};
};
struct alignas(64) Wide {
  char c[24];
};
struct alignas(4096) Paged : Base {
  char c[100];
};
struct WithDestructor {
  ~WithDestructor() { c[0] = 1; }
  char c[7];
};
struct Throws {
  Throws() { throw std::runtime_error("constructor"); }
  char c[300];
};

void legal_expressions() {
  for (size_t i = 0; i < 40; i++) {
    std::unique_ptr<Base> derived(new Derived);
    std::unique_ptr<Base> paged(new Paged);
    std::unique_ptr<Wide> wide(new Wide);
    std::unique_ptr<Wide[]> wides(new Wide[i + 1]);
    std::unique_ptr<WithDestructor[]> cookies(new WithDestructor[i]);
    std::unique_ptr<char[]> chars(new (std::nothrow) char[i * 1000]);
    std::shared_ptr<Derived> shared = std::make_shared<Derived>();
    std::shared_ptr<Base> other(shared);
    std::vector<Wide> vector(i);
    std::vector<std::string> words(i, "long enough to need memory of its own");
    std::stable_sort(words.begin(), words.end());
    std::map<size_t, std::string> map;
    for (size_t k = 0; k < i; k++) map[k] = words[0];
    std::function<size_t()> function = [words] { return words.size(); };
    MI_CHECK_EQ(function(), i);
    std::ostringstream out;
    out << i << words.size();
    MI_CHECK_EQ(std::async(std::launch::async, [i] { return std::string(i * 100, 'x').size(); }).get(), i * 100);
    try {
      new Throws;
    } catch (const std::runtime_error&) {
    }
    std::exception_ptr kept;
    try {
      throw std::runtime_error(words.empty() ? "" : words[0]);
    } catch (...) {
      kept = std::current_exception();
    }
  }
}

void legal_mixed_c() {
  char* line = nullptr;
  size_t capacity = 0;
  FILE* f = fopen("/proc/self/status", "r");
  if (f != nullptr) {
    while (getline(&line, &capacity, f) > 0) {
    }
    fclose(f);
  }
  free(line);
  char* text = nullptr;
  MI_CHECK(asprintf(&text, "%d", 123456789) == 9);
  free(text);
  size_t n = 0;
  f = open_memstream(&text, &n);
  for (int i = 0; f != nullptr && i < 1000; i++) fprintf(f, "%d ", i);
  if (f != nullptr) fclose(f);
  free(text);
  free(realpath("/proc/self", nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  mi_test_current = kind;
  if ((strcmp(kind, "pair") == 0 || strcmp(kind, "pair-in-thread") == 0) && argc > 4) {
    const size_t size = strtoull(argv[4], nullptr, 10);
    return pair(find(kAllocs, argv[2]), find(kFrees, argv[3]), size, argc > 5 ? strtoull(argv[5], nullptr, 10) : size,
                argc > 6 ? strtoull(argv[6], nullptr, 10) : kAlign, strcmp(kind, "pair-in-thread") == 0);
  }
  if (strcmp(kind, "twice") == 0 && argc > 4) {
    const size_t size = strtoull(argv[4], nullptr, 10);
    const Free* f = find(kFrees, argv[3]);
    return twice(find(kAllocs, argv[2]), f, size, argc > 5 ? strtoull(argv[5], nullptr, 10) : size, argc > 6 ? find(kFrees, argv[6]) : f);
  }
  if (strcmp(kind, "legal") == 0) {
    legal_pairs();
    legal_resized();
    legal_zero();
    legal_expressions();
    legal_mixed_c();
    return mi_test_status();
  }
  mi_test_say("usage: family pair ALLOC FREE SIZE [FREED_SIZE [FREED_ALIGN]] | pair-in-thread ... | twice ALLOC FREE SIZE [SECOND_SIZE [SECOND]] | legal");
  return 2;
}
