// Owns: who called whom, by frame pointers, and which file an address of code comes from.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: async-signal-safe: no lock, no allocation. A word is read only after the kernel has said that it is there; of a thread's
// own stack it has said so once.
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "src/base/bits.h"
#include "src/prim/linux/linux.h"
#include "src/prim/linux/syscall.h"
#include "src/prim/prim.h"

enum {
  // The smallest page of any machine: what is there at one of its bytes is there at all.
  MI_STACK_PAGE = 4096,
  // A frame that is larger is taken for the end of the chain.
  MI_STACK_FRAME_MAX = 1024 * 1024,
  // Between a thread's first frame and the top of its stack: what the kernel and the C library put there.
  MI_STACK_TOP_MAX = 256 * 1024,
};

// The C library puts a thread's variables at the upper end of its stack, above all frames, but for the first thread.
static mi_thread_local char mi_stack_thread_mark;

// Asks the kernel by a call that every sandbox must allow which allows locks: it compares a word, moves no waiter from here
// to there, and says EFAULT where nothing can be read.
static bool mi_stack_is_readable(uintptr_t address) {
  uint32_t unused = 0;
  const long result = mi_syscall6(SYS_futex, (long)(address & ~(uintptr_t)3), MI_FUTEX_CMP_REQUEUE_PRIVATE, 0, 0,
                                  mi_syscall_arg(&unused), 0);
  return result == 0 || result == -EAGAIN;
}

// What ends the stack of the calling thread above `frame`, as far as it is known. The kernel's random bytes are at the upper
// end of the first thread's.
static uintptr_t mi_stack_top(uintptr_t frame) {
  const uintptr_t mark = (uintptr_t)&mi_stack_thread_mark;
  // The C library looks through a list each time; whoever looks finds the same.
  static _Atomic(uintptr_t) known;
  uintptr_t random = mi_atomic_load_relaxed(&known);
  if (random == 0) {
    random = getauxval(AT_RANDOM);
    mi_atomic_store_relaxed(&known, random);
  }
  const uintptr_t top = mark > frame ? mark : UINTPTR_MAX;
  return random > frame && random < top ? random : top;
}

// A part of the calling thread's own stack, up to its top, that the kernel has said is there: it stays for as long as the thread
// runs, so nobody asks again. An end of 0: it is not known.
static mi_thread_local uintptr_t mi_stack_own_start;
static mi_thread_local uintptr_t mi_stack_own_end;

static bool mi_stack_is_own(uintptr_t address) { return address >= mi_stack_own_start && address < mi_stack_own_end; }

// A walk has found all from `start` to `known` to be there. What does not go on up to the top, as the stack of a coroutine, may be
// gone the next time.
static void mi_stack_note(uintptr_t start, uintptr_t known, uintptr_t top) {
  if (mi_stack_own_end != 0) {
    mi_stack_own_start = known >= mi_stack_own_start ? _mi_min(start, mi_stack_own_start) : mi_stack_own_start;
    return;
  }
  if (mi_stack_own_start != 0 || top == UINTPTR_MAX || (top > known && top - known > MI_STACK_TOP_MAX)) {
    return;
  }
  // The first that comes here decides, whatever signal comes in between.
  mi_stack_own_start = UINTPTR_MAX;
  while (known < top && mi_stack_is_readable(known)) {
    known += MI_STACK_PAGE;
  }
  if (known >= top) {
    mi_stack_own_start = start;
    mi_stack_own_end = _mi_align_up(top, MI_STACK_PAGE);
  }
}

static uintptr_t mi_stack_strip(uintptr_t address) {
#if defined(__aarch64__)
  // A signed return address; the instruction does nothing on machines without signatures.
  register uintptr_t x30 __asm__("x30") = address;
  __asm__("hint #7"
          : "+r"(x30));
  return x30;
#else
  return address;
#endif
}

// Where the caller's frame and the return address stand, from the frame pointer.
#if defined(__riscv)
enum { MI_STACK_CALLER = -2,
       MI_STACK_RETURN = -1,
       MI_STACK_HAS_CHAIN = 1 };
#elif defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
enum { MI_STACK_CALLER = 0,
       MI_STACK_RETURN = 1,
       MI_STACK_HAS_CHAIN = 1 };
#else
enum { MI_STACK_CALLER = 0,
       MI_STACK_RETURN = 1,
       MI_STACK_HAS_CHAIN = 0 };
#endif

mi_no_msan size_t _mi_prim_backtrace(const void* frame, uintptr_t* calls, size_t count) {
  const uintptr_t word = sizeof(uintptr_t);
  uintptr_t at = (uintptr_t)frame;
  const uintptr_t top = mi_stack_top(at);
  // All up to here is there.
  const uintptr_t start = _mi_align_down(at, MI_STACK_PAGE);
  uintptr_t known = start;
  size_t found = 0;
  while (MI_STACK_HAS_CHAIN != 0 && found < count && at % word == 0) {
    const uintptr_t end = at + 2 * word;
    while (known < end && known < top && (mi_stack_is_own(known) || mi_stack_is_readable(known))) {
      known += MI_STACK_PAGE;
    }
    if (known < end || end > top) {
      break;
    }
    const uintptr_t* const words = (const uintptr_t*)at;
    const uintptr_t next = words[MI_STACK_CALLER];
    const uintptr_t back = mi_stack_strip(words[MI_STACK_RETURN]);
    if (back < MI_STACK_PAGE) {
      break;
    }
    // The call is before the instruction that follows it.
    calls[found++] = back - 1;
    if (next <= at || next - at > MI_STACK_FRAME_MAX) {
      break;
    }
    at = next;
  }
  if (known > start) {
    mi_stack_note(start, known, top);
  }
  return found;
}

// Files

static void mi_module_set_path(mi_prim_module_t* module, const char* path) {
  size_t i = 0;
  for (; i < sizeof(module->path) - 1 && path[i] != 0; i++) {
    module->path[i] = (unsigned char)path[i] < ' ' || path[i] == 0x7f ? '?' : path[i];
  }
  module->path[i] = 0;
}

// The program itself: the kernel says where its headers are. Wraps: an address before the program is far behind it.
static mi_wraps bool mi_module_is_program(uintptr_t address, mi_prim_module_t* module) {
  const ElfW(Phdr)* const headers = (const ElfW(Phdr)*)getauxval(AT_PHDR);
  const size_t count = getauxval(AT_PHNUM);
  const char* const path = (const char*)getauxval(AT_EXECFN);
  if (headers == NULL || path == NULL) {
    return false;
  }
  // How far the program was moved, as its own headers show where they say where they are; else by the start of the file,
  // which the first segment holds with the headers behind it.
  uintptr_t moved = 0;
  bool has_own = false;
  for (size_t i = 0; i < count; i++) {
    if (headers[i].p_type == PT_PHDR) {
      moved = (uintptr_t)headers - headers[i].p_vaddr;
      has_own = true;
    } else if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0 && !has_own) {
      moved = (uintptr_t)headers - sizeof(ElfW(Ehdr)) - headers[i].p_vaddr;
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (headers[i].p_type == PT_LOAD && address - moved - headers[i].p_vaddr < headers[i].p_memsz) {
      mi_module_set_path(module, path);
      module->offset = address - moved;
      return true;
    }
  }
  return false;
}

// glibc 2.35 and later: a search that takes no lock. The start of its result, which has room for more.
typedef struct mi_module_found_s {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  struct link_map* map;
  void* frames;  // the table of the frames of its functions
  void* more[11];
} mi_module_found_t;

extern int _dl_find_object(void* address, mi_module_found_t* result) __attribute__((weak));

static mi_no_msan bool mi_module_is_loaded(uintptr_t address, mi_prim_module_t* module) {
  mi_module_found_t found;
  if (&_dl_find_object == NULL || _dl_find_object((void*)address, &found) != 0 || found.map == NULL ||
      found.map->l_name == NULL || found.map->l_name[0] == 0) {
    return false;
  }
  mi_module_set_path(module, found.map->l_name);
  module->offset = address - found.map->l_addr;
  return true;
}

mi_no_msan bool _mi_prim_is_own_library(uintptr_t address) {
  // An end of 0: not known yet. Empty: there is none.
  static _Atomic(uintptr_t) start = 1;
  static _Atomic(uintptr_t) end;
  // The end is stored last, with the start before it.
  uintptr_t to = mi_atomic_load_acquire(&end);
  if (to == 0) {
    mi_module_found_t found;
    mi_prim_module_t module;
    const uintptr_t own = (uintptr_t)&_mi_prim_is_own_library;
    const bool is_library =
        !mi_module_is_program(own, &module) && &_dl_find_object != NULL && _dl_find_object((void*)own, &found) == 0;
    to = is_library ? (uintptr_t)found.map_end : 1;
    mi_atomic_store_relaxed(&start, is_library ? (uintptr_t)found.map_start : 1);
    mi_atomic_store_release(&end, to);
  }
  return address - mi_atomic_load_relaxed(&start) < to - mi_atomic_load_relaxed(&start);
}

static bool mi_module_same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

// A file's first mapping is that of its start, and shared objects count their addresses from there. Wraps
// where the address is of no file, and no offset.
static mi_wraps bool mi_module_is_mapped(uintptr_t address, mi_prim_module_t* module) {
  mi_linux_maps_t maps;
  if (!_mi_prim_linux_maps_open(&maps)) {
    return false;
  }
  mi_linux_mapping_t mapping;
  uintptr_t base = 0;
  bool found = false;
  module->path[0] = 0;
  while (!found && _mi_prim_linux_maps_next(&maps, &mapping)) {
    if (mapping.offset == 0 && mapping.path[0] != 0 && !mi_module_same(mapping.path, module->path)) {
      mi_module_set_path(module, mapping.path);
      base = mapping.start;
    }
    found = address >= mapping.start && address < mapping.end && mapping.path[0] != 0 && mi_module_same(mapping.path, module->path);
  }
  _mi_prim_linux_maps_close(&maps);
  module->offset = address - base;
  return found;
}

bool _mi_prim_module_of(uintptr_t address, bool thorough, mi_prim_module_t* module) {
  const int saved_errno = errno;
  const bool found = mi_module_is_program(address, module) || mi_module_is_loaded(address, module) ||
      (thorough && mi_module_is_mapped(address, module));
  errno = saved_errno;
  return found;
}

// Calls of a fault

// Whether an address follows an instruction that calls, which tells a return address on the stack from most else there.
static bool mi_stack_is_return(uintptr_t address) {
#if defined(__x86_64__) || defined(__i386__)
  enum { LONGEST = 7 };
  if (address < MI_STACK_PAGE || !mi_stack_is_readable(address - LONGEST) || !mi_stack_is_readable(address - 1)) {
    return false;
  }
  const unsigned char* const code = (const unsigned char*)address;
  bool is_call = code[-5] == 0xe8;
  for (int i = 2; i <= LONGEST; i++) {
    is_call = is_call || (code[-i] == 0xff && (code[-i + 1] & 0x38) == 0x10);
  }
  return is_call;
#elif defined(__aarch64__)
  // bl and blr, the latter also with a check of the address's signature.
  const uint32_t* const code = (const uint32_t*)address;
  return address >= MI_STACK_PAGE && address % sizeof(*code) == 0 && mi_stack_is_readable(address - sizeof(*code)) &&
      ((code[-1] & 0xfc000000) == 0x94000000 || (code[-1] & 0xfeff0000) == 0xd63f0000);
#else
  return address >= MI_STACK_PAGE && mi_stack_is_readable(address - 4);
#endif
}

size_t _mi_prim_calls_plausible(const uintptr_t* calls, size_t count) {
  size_t i = 0;
  while (i < count && mi_stack_is_return(calls[i] + 1)) {
    i++;
  }
  return i;
}

static mi_no_msan uintptr_t mi_stack_word(uintptr_t at) {
  const bool is_there = at >= MI_STACK_PAGE && at % sizeof(uintptr_t) == 0 && mi_stack_is_readable(at);
  return is_there ? *(const uintptr_t*)at : 0;
}

// Where the function of a fault goes back to, if it has made no frame that the chain goes through; 0: it has, or nobody knows.
// Code of the C library that copies and compares mostly is of this kind, and what matters is who called it.
static mi_no_msan uintptr_t mi_stack_frameless_return(const mi_prim_fault_t* fault) {
  const uintptr_t stack = (uintptr_t)fault->stack;
  mi_module_found_t found;
  mi_prim_module_t module;
  size_t size = 0;
  const bool is_loaded = &_dl_find_object != NULL && _dl_find_object((void*)fault->code, &found) == 0;
  switch (_mi_prim_linux_frame(is_loaded ? found.frames : NULL, fault->code, &size)) {
    case MI_LINUX_FRAME_BY_POINTER:
      return 0;
    case MI_LINUX_FRAME_BY_STACK:
      if (fault->link != 0) {
        // A frame that has been begun has room for what the register held.
        return size == 0 ? mi_stack_strip(fault->link) : 0;
      }
      return mi_stack_word(stack + size - sizeof(uintptr_t));
    case MI_LINUX_FRAME_UNKNOWN:
      break;
  }
  // Then the word is anything, mostly: what a call that is long over has left there, or bytes of data that look like a call.
  const uintptr_t back = fault->link != 0 ? mi_stack_strip(fault->link) : mi_stack_word(stack);
  return _mi_prim_module_of(back - 1, false, &module) ? back : 0;
}

// Wraps: a register that points below the stack is no frame.
mi_wraps size_t _mi_prim_fault_calls(const mi_prim_fault_t* fault, uintptr_t* calls, size_t count) {
  size_t found = 0;
  if (count > 0) {
    calls[found++] = fault->code;
  }
  if (found < count) {
    const uintptr_t back = mi_stack_frameless_return(fault);
    if (mi_stack_is_return(back)) {
      calls[found++] = back - 1;
    }
  }
  const uintptr_t frame = (uintptr_t)fault->frame;
  if (frame - (uintptr_t)fault->stack > MI_STACK_FRAME_MAX) {
    return found;
  }
  uintptr_t* const rest = calls + found;
  const size_t more = _mi_prim_calls_plausible(rest, _mi_prim_backtrace(fault->frame, rest, count - found));
  // A function with a frame that has not called anything yet: the register says what the frame says.
  const bool is_twice = more > 0 && found > 1 && rest[0] == rest[-1];
  for (size_t i = 0; is_twice && i + 1 < more; i++) {
    rest[i] = rest[i + 1];
  }
  return found + more - is_twice;
}
