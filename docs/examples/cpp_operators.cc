// A type that is always allocated here, and a loop that lets the program's new-handler make room.
#include <cstdio>
#include <new>

#include "mimalloc.h"

namespace {

struct connection {
  int socket;
  char buffer[4000];
  static void* operator new(std::size_t size) { return mi_new(size); }
  static void operator delete(void* p, std::size_t size) { mi_free_size(p, size); }
};

int calls;
void make_room() {
  if (++calls == 2) std::set_new_handler(nullptr);  // there is nothing left that could be given up
}

}  // namespace

int main() {
  connection* const c = new connection;
  c->socket = 7;
  delete c;

  mi_option_disable(mi_option_show_errors);  // the request that follows is meant to fail
  std::set_new_handler(make_room);
  volatile std::size_t too_much = SIZE_MAX / 4;
  try {
    mi_free(mi_new(too_much));
  } catch (const std::bad_alloc&) {
    std::printf("no memory after %d calls of the handler\n", calls);
  }
  void* const p = mi_new_nothrow(too_much);  // the one kind that returns NULL
  return calls == 2 && p == nullptr ? 0 : 1;
}
