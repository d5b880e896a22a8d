// Owns: glibc's functions about malloc, and the internal ones that tie the static C library to its own malloc.
// May include: base, sys, heap, mimalloc.h; stdio for malloc_info, which is given a stream.
// Called by: programs; a static C library.
// Invariants: the answers are about this allocator; no other heap is touched. The structures are those of glibc's
// malloc.h, which is not included since other C libraries lack it.
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "src/api/api.h"
#include "src/sys/stats.h"

struct mi_mallinfo_s {
  int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

struct mi_mallinfo2_s {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

static int mi_as_int(size_t x) { return x > INT_MAX ? INT_MAX : (int)x; }

// What we can tell: memory from the system, the part of it that pages have, and the rest. A huge block is what glibc has
// mapped by itself, a page what it calls a chunk.
mi_exported struct mi_mallinfo2_s mallinfo2(void) {
  const size_t committed = (size_t)_mi_stat_view(&_mi_stats.committed).current;
  const size_t in_pages = _mi_min((size_t)_mi_stat_view(&_mi_stats.page_committed).current, committed);
  return (struct mi_mallinfo2_s){
      .arena = committed,
      .ordblks = (size_t)_mi_stat_view(&_mi_stats.pages).current,
      .hblkhd = (size_t)_mi_stat_view(&_mi_stats.malloc_huge).current,
      .uordblks = in_pages,
      .fordblks = committed - in_pages,
      .keepcost = committed - in_pages,
  };
}

// Values that do not fit are INT_MAX: an int that wrapped would say anything.
mi_exported struct mi_mallinfo_s mallinfo(void) {
  const struct mi_mallinfo2_s info = mallinfo2();
  return (struct mi_mallinfo_s){
      .arena = mi_as_int(info.arena),
      .ordblks = mi_as_int(info.ordblks),
      .hblkhd = mi_as_int(info.hblkhd),
      .uordblks = mi_as_int(info.uordblks),
      .fordblks = mi_as_int(info.fordblks),
      .keepcost = mi_as_int(info.keepcost),
  };
}

// Gives back what can be given back now. 1: there was something.
mi_exported int malloc_trim(size_t pad) {
  (void)pad;
  const int64_t before = _mi_stat_view(&_mi_stats.committed).current;
  mi_collect(true);
  return _mi_stat_view(&_mi_stats.committed).current < before;
}

// glibc's parameters mean nothing here. 1, which says that all is well, since programs take 0 for an error.
mi_exported int mallopt(int parameter, int value) {
  (void)parameter;
  (void)value;
  return 1;
}

mi_exported void malloc_stats(void) { mi_stats_print(NULL); }

mi_exported int malloc_info(int options, FILE* stream) {
  if (options != 0) {
    errno = EINVAL;
    return -1;
  }
  const struct mi_mallinfo2_s info = mallinfo2();
  const int written = fprintf(stream,
                              "<malloc version=\"1\">\n"
                              "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
                              "<system type=\"current\" size=\"%zu\"/>\n"
                              "<system type=\"max\" size=\"%zu\"/>\n"
                              "</malloc>\n",
                              info.ordblks, info.fordblks, info.arena, (size_t)_mi_stat_view(&_mi_stats.committed).peak);
  return written < 0 ? -1 : 0;
}

// glibc's fork and thread exit call these, which live in the object of its malloc: without them a static link would take
// that object too, and have malloc twice. Our own hooks do the work. Not exported: in a shared library they have no use.
void __malloc_fork_lock_parent(void) {}
void __malloc_fork_unlock_parent(void) {}
void __malloc_fork_unlock_child(void) {}
void __malloc_arena_thread_freeres(void) {}
