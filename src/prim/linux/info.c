// Owns: what the kernel tells of the machine and of this process.
// May include: prim, base, the C library's headers.
// Called by: through prim.h.
// Invariants: /proc and /sys may be missing or closed; then the careful value is given, and nothing fails.
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/sysinfo.h>

#include "src/base/bits.h"
#include "src/prim/linux/linux.h"
#include "src/prim/linux/syscall.h"

enum {
  MI_INFO_TEXT_SIZE = 128,
  MI_INFO_PAGE_SIZE = 4096,
  MI_INFO_RLIMIT_DATA = 2,
  MI_INFO_RLIMIT_AS = 9,
  MI_INFO_RUSAGE_SELF = 0,
  // No machine that runs Linux with 64 bits gives a process fewer.
  MI_INFO_ADDRESS_BITS_MIN = 36,
  MI_INFO_ADDRESS_BITS_MAX = 56,
  // The kernel's own default.
  MI_INFO_MAX_MAPPINGS = 65530,
};

// Files

mi_cold size_t _mi_prim_linux_read(const char* path, char* buf, size_t size) {
  buf[0] = 0;
  const long fd = mi_syscall6(SYS_openat, AT_FDCWD, mi_syscall_arg(path), O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (mi_syscall_failed(fd)) {
    return 0;
  }
  // The kernel hands these files out in one piece, so that a second read to see the end would tell nothing.
  long n;
  do {
    n = mi_syscall3(SYS_read, fd, mi_syscall_arg(buf), (long)(size - 1));
  } while (n == -EINTR);
  (void)mi_syscall3(SYS_close, fd, 0, 0);
  const size_t len = n > 0 ? (size_t)n : 0;
  buf[len] = 0;
  return len;
}

static mi_cold bool mi_info_contains(const char* text, const char* word) {
  for (; *text != 0; text++) {
    size_t i = 0;
    while (word[i] != 0 && text[i] == word[i]) {
      i++;
    }
    if (word[i] == 0) {
      return true;
    }
  }
  return false;
}

// The number at the start of a text and what follows it; a number too large is the largest.
static const char* mi_info_number(const char* text, size_t* number) {
  size_t n = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    if (_mi_mul_overflow(n, 10, &n) || _mi_add_overflow(n, (size_t)(*text - '0'), &n)) {
      n = SIZE_MAX;
    }
  }
  *number = n;
  return text;
}

// Configuration

// The C library's copy of what the kernel handed to the process; 0 where it has none. It is there before any other code.
static mi_cold unsigned long mi_info_auxv(unsigned long type) {
  const int saved_errno = errno;
  const unsigned long value = getauxval(type);
  errno = saved_errno;
  return value;
}

static size_t mi_info_page_size(void) {
  const size_t size = mi_info_auxv(AT_PAGESZ);
  return _mi_is_power_of_two(size) ? size : MI_INFO_PAGE_SIZE;
}

// Mappings without a hint lie in the part of the address space that has the first stack at its top, also where the machine
// has more, as with five levels of page tables. The kernel's random bytes are on that stack. The emulation of another
// machine may put the stack low, so mappings of our own have a say.
static unsigned mi_info_address_bits(size_t page_size) {
#if UINTPTR_MAX == UINT32_MAX
  (void)page_size;
  return 32;
#elif defined(__x86_64__)
  (void)page_size;
  return 47;
#else
  uintptr_t highest = (uintptr_t)1 << (MI_INFO_ADDRESS_BITS_MIN - 1) | mi_info_auxv(AT_RANDOM);
  void* p;
  if (mi_syscall_mmap(NULL, page_size, PROT_NONE, MAP_NORESERVE, &p) == 0) {
    highest |= (uintptr_t)p;
    (void)mi_syscall3(SYS_munmap, mi_syscall_arg(p), (long)page_size, 0);
  }
  const unsigned bits = _mi_bits_log2_64(highest) + 1;
  return bits < MI_INFO_ADDRESS_BITS_MAX ? bits : MI_INFO_ADDRESS_BITS_MAX;
#endif
}

static size_t mi_info_scale(unsigned long count, unsigned unit) {
  size_t bytes;
  return _mi_mul_overflow(count, unit == 0 ? 1 : unit, &bytes) ? SIZE_MAX : bytes;
}

// Of the machine, with the space for swapping; 0: unknown.
static size_t mi_info_memory(void) {
  struct sysinfo info = {0};
  size_t memory;
  if (mi_syscall_error(mi_syscall3(SYS_sysinfo, mi_syscall_arg(&info), 0, 0)) != 0) {
    return 0;
  }
  const bool is_more = _mi_add_overflow(mi_info_scale(info.totalram, info.mem_unit), mi_info_scale(info.totalswap, info.mem_unit), &memory);
  return is_more ? SIZE_MAX : memory;
}

static mi_cold size_t mi_info_limit(long resource) {
  // The kernel's own layout, the same everywhere.
  uint64_t limit[2] = {UINT64_MAX, UINT64_MAX};
  const long result = mi_syscall6(SYS_prlimit64, 0, resource, 0, mi_syscall_arg(limit), 0, 0);
  return mi_syscall_failed(result) || limit[0] > SIZE_MAX ? SIZE_MAX : (size_t)limit[0];
}

// Whether the kernel hands out more than it has. Where it does not say, it is asked for twice what the machine has, which
// strict accounting refuses; so does a limit on addresses, which makes the answer a careful one.
static mi_cold bool mi_info_has_overcommit(size_t page_size) {
  char text[MI_INFO_TEXT_SIZE];
  if (_mi_prim_linux_read("/proc/sys/vm/overcommit_memory", text, sizeof(text)) > 0) {
    return text[0] == '0' || text[0] == '1';
  }
  size_t size;
  void* p = NULL;
  const size_t memory = mi_info_memory();
  if (memory == 0 || _mi_mul_overflow(memory, 2, &size)) {
    return false;
  }
  size = _mi_align_down(size, page_size);
  if (mi_syscall_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_NORESERVE, &p) != 0) {
    return false;
  }
  (void)mi_syscall3(SYS_munmap, mi_syscall_arg(p), (long)size, 0);
  return true;
}

static mi_cold void mi_info_huge_pages(mi_prim_config_t* config) {
  char text[MI_INFO_TEXT_SIZE];
  config->huge_page_size = 0;
  config->thp_always = false;
  if (_mi_prim_linux_read("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text)) == 0 ||
      mi_info_contains(text, "[never]")) {
    return;
  }
  config->thp_always = mi_info_contains(text, "[always]");
  // What the entries of one table lead to. These machines' have 64 bits each, on others the kernel tells.
  size_t size = config->page_size / sizeof(uint64_t) * config->page_size;
#if !defined(__x86_64__) && !defined(__aarch64__) && !(defined(__riscv) && __riscv_xlen == 64)
  size_t told;
  (void)_mi_prim_linux_read("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof(text));
  (void)mi_info_number(text, &told);
  size = _mi_is_power_of_two(told) ? told : size;
#endif
  config->huge_page_size = size;
}

// A kernel before 6.13 says EINVAL.
static mi_cold bool mi_info_has_light_guards(void* page, size_t page_size) {
  void* p = page;
  if (p == NULL && _mi_prim_reserve(page_size, false, &p) != 0) {
    return false;
  }
  const bool works = _mi_prim_guard(p, page_size) == 0;
  if (page == NULL) {
    (void)_mi_prim_release(p, page_size);
  }
  return works;
}

// Asked only where each guard costs some. Elsewhere the careful value serves who wants such guards all the same.
static size_t mi_info_max_mappings(void) {
  char text[MI_INFO_TEXT_SIZE];
  size_t number;
  (void)_mi_prim_linux_read("/proc/sys/vm/max_map_count", text, sizeof(text));
  (void)mi_info_number(text, &number);
  return number != 0 ? number : MI_INFO_MAX_MAPPINGS;
}

mi_cold void _mi_prim_init(mi_prim_config_t* config) {
  config->page_size = mi_info_page_size();
  config->alloc_granularity = config->page_size;
  // What is writable counts against the limit on data, whether it was touched or not.
  const size_t data_limit = mi_info_limit(MI_INFO_RLIMIT_DATA);
  config->address_space_limit = _mi_min(mi_info_limit(MI_INFO_RLIMIT_AS), data_limit);
  config->address_bits = mi_info_address_bits(config->page_size);
  config->has_overcommit = data_limit == SIZE_MAX && mi_info_has_overcommit(config->page_size);
  config->has_partial_release = true;
  mi_info_huge_pages(config);
  _mi_prim_linux_set_overcommit(config->has_overcommit);
  config->has_light_guards = false;
  config->max_mappings = MI_INFO_MAX_MAPPINGS;
}

mi_cold void _mi_prim_try_guards(mi_prim_config_t* config, void* page) {
  config->has_light_guards = mi_info_has_light_guards(page, config->page_size);
  config->max_mappings = config->has_light_guards ? MI_INFO_MAX_MAPPINGS : mi_info_max_mappings();
}

// This process

// The kernel's struct rusage. C libraries with 64-bit time on 32-bit machines have another.
typedef struct mi_info_usage_s {
  long user_s;
  long user_us;
  long system_s;
  long system_us;
  long max_rss_kib;
  long unused[4];
  long major_faults;
  long reserved[8];
} mi_info_usage_t;

static int64_t mi_info_ms(long seconds, long microseconds) { return (int64_t)seconds * 1000 + microseconds / 1000; }

void _mi_prim_process_info(mi_prim_process_info_t* info) {
  *info = (mi_prim_process_info_t){0, 0, 0, 0, 0};
#if !defined(__x86_64__) || defined(__LP64__)
  mi_info_usage_t usage = {0};
  if (mi_syscall_error(mi_syscall3(SYS_getrusage, MI_INFO_RUSAGE_SELF, mi_syscall_arg(&usage), 0)) == 0) {
    info->user_ms = mi_info_ms(usage.user_s, usage.user_us);
    info->system_ms = mi_info_ms(usage.system_s, usage.system_us);
    info->peak_rss = mi_info_scale((unsigned long)usage.max_rss_kib, 1024);
    info->page_faults = (size_t)usage.major_faults;
  }
#endif
  // The second number is the count of resident pages.
  char text[MI_INFO_TEXT_SIZE];
  size_t pages;
  (void)_mi_prim_linux_read("/proc/self/statm", text, sizeof(text));
  const char* p = mi_info_number(text, &pages);
  if (*p == ' ') {
    (void)mi_info_number(p + 1, &pages);
    info->current_rss = mi_info_scale(pages, (unsigned)mi_info_page_size());
  }
  // The kernel updates the peak from time to time only.
  info->peak_rss = _mi_max(info->peak_rss, info->current_rss);
}
