// Owns: the contract with the operating system: memory, clock, environment, randomness, waiting, thread ends, fork.
// May include: base.
// Called by: sys, region, heap.
// Invariants: no type of an operating system; errno is untouched; nothing is allocated or locked, except where said.
//
// Every function may be called before the C library's constructors have run, from any thread and, except for the hooks, from
// a signal handler. An `int` result is 0 or the error number of the system; after an error nothing has changed, except
// where said. `addr` and `size` are multiples of the page size, `size` is not zero, and the range lies in memory of
// _mi_prim_reserve that has not been released.
#pragma once

#include "src/base/atomic.h"

typedef struct mi_prim_config_s {
  size_t page_size;            // a power of two: what all ranges are multiples of
  size_t alloc_granularity;    // what a reservation's start is a multiple of
  size_t huge_page_size;       // of a page that the system forms by itself where a range allows it; 0: it forms none
  size_t address_space_limit;  // what this process may map; SIZE_MAX: as much as there are addresses
  unsigned address_bits;       // a reservation's addresses have no bit set from here up
  bool has_overcommit;         // committed memory is charged when it is touched; else when it is committed
  bool has_partial_release;    // a part of a reservation can be released
  bool thp_always;             // huge pages are formed without being asked for
  bool has_light_guards;       // _mi_prim_guard makes guards that are no mappings of their own; see _mi_prim_try_guards
  size_t max_mappings;         // how many mappings this process may have; 0: nobody counts; likewise
} mi_prim_config_t;

typedef struct mi_prim_process_info_s {
  int64_t user_ms;     // processor time in the program
  int64_t system_ms;   // processor time in the system on its behalf
  size_t current_rss;  // resident bytes as the system counts them; 0: unknown
  size_t peak_rss;     // the most there have been; at least current_rss
  size_t page_faults;  // those that had to wait for a device
} mi_prim_process_info_t;

// _mi_prim_init fills the configuration but for the guards. Call it before any other function for memory, and once: a later
// call reads the system's files again, which a sandbox may have forbidden meanwhile. What cannot be found out gets the
// careful value.
void _mi_prim_init(mi_prim_config_t* config);

// _mi_prim_try_guards fills in what the configuration says of guards, by a trial on `page`: an OS page of a reservation that
// nobody uses, and that may be inaccessible afterwards. NULL: a page is made for it. To be called once, with the same care.
void _mi_prim_try_guards(mi_prim_config_t* config, void* page);

// Memory

// _mi_prim_reserve maps `size` bytes of zeroed private memory anywhere and stores the start. With `commit` it is readable
// and writable; else it is inaccessible and not charged until _mi_prim_commit. ENOMEM: there are no addresses, mappings or
// memory left. *addr is unchanged by an error.
int _mi_prim_reserve(size_t size, bool commit, void** addr);

// _mi_prim_reserve_at does the same, at `wish` if nothing is there and the system is willing, else anywhere. What is mapped
// already is never replaced. Any address may be wished for.
int _mi_prim_reserve_at(void* wish, size_t size, bool commit, void** addr);

// _mi_prim_release gives a range back, addresses included. A part of a reservation only where has_partial_release says so;
// then ENOMEM means that the process has no mapping left to split with, and everything is still there.
int _mi_prim_release(void* addr, size_t size);

// _mi_prim_commit makes a range readable and writable. What was not committed before is zero, the rest keeps its content.
// ENOMEM: the memory, or a mapping to split with, is not to be had.
int _mi_prim_commit(void* addr, size_t size);

// _mi_prim_decommit drops content, memory and charge. The range is inaccessible until it is committed again. ENOMEM: no
// mapping is left to split with.
int _mi_prim_decommit(void* addr, size_t size);

// _mi_prim_purge drops the content of a committed range and gives its memory back; the range stays readable and writable.
// *is_zero tells whether it reads zero from now on; false after an error. EINVAL: the program has locked it in memory.
int _mi_prim_purge(void* addr, size_t size, bool* is_zero);

// _mi_prim_reset lets the system take the memory of a committed range when it needs some. Each page of it reads as before or
// zero until it is written to again. Where the system has no such call, it purges.
int _mi_prim_reset(void* addr, size_t size);

// _mi_prim_protect makes a committed range inaccessible or, with `readable`, read-only; the content stays. ENOMEM: no
// mapping is left to split with.
int _mi_prim_protect(void* addr, size_t size, bool readable);

// _mi_prim_unprotect makes such a range readable and writable again. Both also take pages of the library's own data.
int _mi_prim_unprotect(void* addr, size_t size);

// _mi_prim_seal fixes a range, of which every page is mapped, as it is: from then on nothing in this process can release
// or replace it, or make it more or less accessible, for as long as the process lives. To be called at the start only, or
// where the operator allows it, as a sandbox may not know the call. ENOTSUP: the system cannot do this. Takes pages of the library's own data as well.
int _mi_prim_seal(void* addr, size_t size);

// Whether calls of the system that came late may be tried. False: a simulator of the processor stands between, as valgrind
// does, which writes a warning for each call that it does not know. Not before the environment is there.
bool _mi_prim_may_try_calls(void);

// _mi_prim_guard drops the content of a committed range and makes it inaccessible, without a mapping of its own and without a
// change of its charge. _mi_prim_purge, _mi_prim_reset, _mi_prim_commit and a fork leave it so; _mi_prim_decommit and
// _mi_prim_release end it. ENOTSUP: not without has_light_guards; EINVAL: the program has locked the range in memory;
// ENOMEM: no memory for the system's tables. After an error a part of the range may be inaccessible.
int _mi_prim_guard(void* addr, size_t size);

// _mi_prim_unguard makes what _mi_prim_guard made inaccessible in a committed range readable and writable again, and zero; the
// rest of the range is not changed.
int _mi_prim_unguard(void* addr, size_t size);

// _mi_prim_grow enlarges a committed range, a whole reservation or what is left of one, to `new_size`, larger than
// `old_size`, and stores its start, which differs only when `may_move`. The content is kept, the rest is zero; a moved
// range has the granularity's alignment only. ENOMEM: no room; EFAULT: the range is not uniform to the system, in place its end;
// ENOTSUP: the system cannot do this. *new_addr is unchanged by an error.
int _mi_prim_grow(void* addr, size_t old_size, size_t new_size, bool may_move, void** new_addr);

// _mi_prim_move moves the content of one committed range to the start of another, of `to_size`, without copying it. The old
// content of `to`, guards included, is lost, what is behind the `size` bytes reads zero if it did; `from` stays committed and
// reads zero. The ranges do not overlap and no other thread uses either. An error leaves the content of both as it was:
// ENOTSUP: the system cannot do this; ENOMEM, EFAULT: it cannot now, or with these ranges; copy.
int _mi_prim_move(void* from, void* to, size_t size, size_t to_size);

// _mi_prim_populate has the memory of a committed range there before it is touched, which is cheaper than a fault for each
// of its pages. Best effort: what it does not get, or all where the system has no such call, comes when it is touched.
void _mi_prim_populate(void* addr, size_t size);

// _mi_prim_huge_page_advice asks that a range be backed by huge pages where it can, or that it never be. EINVAL: the system
// knows no huge pages.
int _mi_prim_huge_page_advice(void* addr, size_t size, bool allow);

// _mi_prim_reserve_huge maps committed, zeroed memory in pages of `huge_size` bytes, a power of two, of which `size` is a
// multiple, from those that the system keeps aside for whoever asks. At `wish`, a multiple too, if nothing is there, else
// anywhere. All pages are there when it returns, on node `numa_node` as far as that has some, unless that is negative. They cannot
// be purged, and guarded or protected only whole. Takes as long as zeroing them does. ENOMEM: there are not so many;
// EINVAL, ENOTSUP: the system has none of that size. *addr is unchanged by an error.
int _mi_prim_reserve_huge(void* wish, size_t size, size_t huge_size, int numa_node, void** addr);

// _mi_prim_numa_nodes is how many nodes of memory the machine has, at least 1: the highest number and one. Takes a system call.
size_t _mi_prim_numa_nodes(void);

// _mi_prim_numa_node is the node that the calling thread runs on now; 0 where there is one only. Takes a system call.
int _mi_prim_numa_node(void);

// _mi_prim_numa_prefer has a range's memory, which is not there yet, come from a node as long as that has some.
int _mi_prim_numa_prefer(void* addr, size_t size, int numa_node);

// _mi_prim_wipe_on_fork has the children of this process see a committed range as zero. Best effort: a system that cannot
// hands them a copy.
void _mi_prim_wipe_on_fork(void* addr, size_t size);

// Clock, environment, randomness

// _mi_prim_clock_ms is the time in milliseconds since some moment before the process started. Never goes back, may be some
// milliseconds behind, and is read without a system call where the system offers that. 0 where there is no clock.
int64_t _mi_prim_clock_ms(void);

// _mi_prim_getenv looks up an environment variable, letters in upper and lower case alike. 1: the value and its zero are in
// `buf`; 2: so is its beginning, as it does not fit in `size` bytes; 0: it is not set, or the process is a secure execution;
// -1: the environment is not there yet, ask again later. `buf` holds the empty string if the result is neither 1 nor 2;
// `size` is not 0. Not to be called while another thread changes the environment.
int _mi_prim_getenv(const char* name, char* buf, size_t size);

// _mi_prim_env_name copies the name of the environment's variable number `index`, from 0 on, cut at `size` bytes with its
// zero. 1: done; 0: there are not so many, or the process is a secure execution; -1: the environment is not there yet.
int _mi_prim_env_name(size_t index, char* buf, size_t size);

// _mi_prim_is_secure_exec tells whether this process has more rights than the one that started it, so that nothing from its
// environment may be trusted. True also as long as it cannot be told.
bool _mi_prim_is_secure_exec(void);

// _mi_prim_random fills `buf` from the system's random generator without ever waiting. False: it is not available, now or
// at all, and `buf` is unspecified; mix what else there is.
bool _mi_prim_random(void* buf, size_t size);

// _mi_prim_random_at_start copies the random bytes that the system gave the process at its start. The C library uses the
// same ones for its own secrets: pass them through a one-way function. A forked child has its parent's. False: there are none.
bool _mi_prim_random_at_start(uint8_t bytes[16]);

// Stacks

enum { MI_PRIM_MODULE_PATH = 256 };

typedef struct mi_prim_module_s {
  char path[MI_PRIM_MODULE_PATH];  // of the file, cut at the size; as the program was called for the program itself
  uintptr_t offset;                // of the address, as the file counts addresses
} mi_prim_module_t;

// _mi_prim_backtrace finds who called the function that has the frame `frame`, by the chain of frame pointers, and stores
// the address of each call, the latest first; the number of them is the result. It reads nothing but words of the calling
// thread's stack which the system says are there, whatever the chain holds, and ends where the chain does: at a function
// without a frame pointer, or where the stack changes. 0 on machines without such a chain.
size_t _mi_prim_backtrace(const void* frame, uintptr_t* calls, size_t count);

// _mi_prim_calls_plausible says how many of these calls, the latest first, are instructions that call: where the chain leads through
// a function that keeps something else in the register, what follows is whatever the stack holds.
size_t _mi_prim_calls_plausible(const uintptr_t* calls, size_t count);

// _mi_prim_module_of finds the file that code at an address comes from. `thorough` allows to open files of the system, which
// a sandbox may punish: only for a process that ends. False: it is not known.
bool _mi_prim_module_of(uintptr_t address, bool thorough, mi_prim_module_t* module);

// _mi_prim_is_own_library tells whether an address lies in the shared library that this code is in. False where it is a part of
// the program itself, and where that cannot be told.
bool _mi_prim_is_own_library(uintptr_t address);

// _mi_prim_maps_copy hands the system's list of the mappings of this process to `write`, piece by piece, as the system writes
// it. Opens a file of the system. False: there is none, or it cannot be read.
bool _mi_prim_maps_copy(void (*write)(void* arg, const char* text, size_t length), void* arg);

// A file that is mapped: from the first of its mappings to the last; and which of them is the first with code, from where in
// the file. No code: code_size is 0.
typedef struct mi_prim_mapped_s {
  char path[MI_PRIM_MODULE_PATH];  // cut at the size
  uintptr_t base;
  size_t size;
  uintptr_t code;
  size_t code_size;
  uintptr_t code_offset;
} mi_prim_mapped_t;

// _mi_prim_modules_visit calls `visit` for each file that is mapped, while that returns true. Opens a file of the system. False:
// there is none, or it cannot be read.
bool _mi_prim_modules_visit(bool (*visit)(const mi_prim_mapped_t* mapped, void* arg), void* arg);

// Files

// _mi_prim_file_create opens a file for writing and empties it; one that is not there is made, for its owner alone. `careful`:
// nothing but a file that is this user's, with no other name, and no symbolic link; EPERM, ELOOP: it is something else, which
// is left as it was.
int _mi_prim_file_create(const char* path, bool careful, intptr_t* file);

// _mi_prim_file_write writes all bytes, unless there is an error; _mi_prim_file_close closes the file, whatever its result.
int _mi_prim_file_write(intptr_t file, const void* bytes, size_t size);
int _mi_prim_file_close(intptr_t file);

// _mi_prim_process_id is the number by which the system's own tools name this process.
uintptr_t _mi_prim_process_id(void);

// Faults

// What touched memory that cannot be touched so.
typedef enum mi_prim_access_e {
  MI_PRIM_ACCESS_UNKNOWN,
  MI_PRIM_ACCESS_READ,
  MI_PRIM_ACCESS_WRITE,
  MI_PRIM_ACCESS_EXECUTE,
} mi_prim_access_t;

typedef struct mi_prim_fault_s {
  uintptr_t address;
  mi_prim_access_t access;
  uintptr_t code;          // where the instruction stands
  const uintptr_t* stack;  // the stack pointer there
  uintptr_t link;          // where a function without a frame returns to; 0: that is on the stack, or not known
  const void* frame;       // the frame pointer there; it holds anything in code compiled without
} mi_prim_fault_t;

// _mi_prim_fault_hook has `on_fault` called, on the thread and with every signal blocked, for each access to memory that is
// refused, wherever the address is, before any handler of the program. True: the access is tried again; false: what follows is
// what would follow without the hook: the program's handler, with its mask, its flags and all that it is told, or the end of the
// process by that signal, at that instruction. A fault inside on_fault ends the process at once. Once in a process. What the
// program had installed is kept; what it installs later has to come through _mi_prim_fault_action. False: it cannot be done.
bool _mi_prim_fault_hook(bool (*on_fault)(const mi_prim_fault_t* fault));

// _mi_prim_fault_action is what sigaction does for the signals of faults, and for a program that has to see what it installed
// itself: `action` and `old` are each a struct sigaction, or NULL. Async-signal-safe; takes no lock. False: the hook is not
// there, or this is another signal, or a process that only borrows this one's memory: the C library's sigaction is to be called.
bool _mi_prim_fault_action(int sig, const void* action, void* old);

// _mi_prim_fault_calls finds the calls that led to a fault, as _mi_prim_backtrace does; the first is the instruction itself.
size_t _mi_prim_fault_calls(const mi_prim_fault_t* fault, uintptr_t* calls, size_t count);

// A forked child is another process.
void _mi_prim_fault_fork_child(void);

// Messages and the end

// _mi_prim_write_stderr writes `len` bytes to the standard error output, all of them unless that fails.
void _mi_prim_write_stderr(const char* msg, size_t len);

// A file that is written to as long as it is what it was when it was opened, whatever a program does with its numbers.
typedef struct mi_prim_log_s {
  int file;
  uint64_t device;
  uint64_t node;
} mi_prim_log_t;

// _mi_prim_log_open opens a file to append to, or makes one that nobody else can read; a last part of the path that is a link is
// refused, as is everything in a process with more rights than its starter's.
int _mi_prim_log_open(const char* path, mi_prim_log_t* log);

// _mi_prim_log_write writes `len` bytes, in one piece unless that fails. False: not all of it is written, or the file has been
// closed; nothing is written to another file in its place.
bool _mi_prim_log_write(const mi_prim_log_t* log, const char* msg, size_t len);

// _mi_prim_abort ends the process with SIGABRT or what the system has for it. A handler of the program runs first.
_Noreturn void _mi_prim_abort(void);

// _mi_prim_process_info fills in what the system counts for this process; what is not known is 0.
void _mi_prim_process_info(mi_prim_process_info_t* info);

// Threads

// _mi_prim_os_thread_id is the number by which the system's own tools name the calling thread. For messages: it takes a
// system call, and another number follows in a forked child.
uintptr_t _mi_prim_os_thread_id(void);

// _mi_prim_os_thread_id_at_hand is the same without a system call, where the C library knows it; in a sandbox that forbids the
// call a thread may always ask.
uintptr_t _mi_prim_os_thread_id_at_hand(void);

// _mi_prim_wait sleeps as long as *word is `expected` and nobody wakes it. Returns for other reasons too, with or without an
// error (EAGAIN, EINTR): look at the word and wait again. Full barrier when it sleeps; the word's own accesses order the rest.
int _mi_prim_wait(_Atomic(uint32_t)* word, uint32_t expected);

// _mi_prim_wake wakes one thread that waits on *word, or all. The word may be gone already when the call is made.
void _mi_prim_wake(_Atomic(uint32_t)* word, bool all);

// _mi_prim_yield lets others run for a moment. May sleep for about a tenth of a millisecond.
void _mi_prim_yield(void);

// _mi_prim_thread_on_exit_init installs the function that is called at the end of each thread which has armed the hook,
// with what it was armed with. Once in a process; may allocate. False: there can be no hook, and arming does nothing.
bool _mi_prim_thread_on_exit_init(void (*on_exit)(void* arg));

// _mi_prim_thread_on_exit_set arms the hook of the calling thread, or disarms it with NULL. The hook is disarmed when it
// runs, and may arm itself again: it runs once more in the next round of the thread's exit functions, so that it can outlast
// those of others, which may still allocate. Arming may allocate, through our own malloc: have the thread's state ready
// before, and expect to be called from inside. Where that allocation fails the hook stays unarmed.
void _mi_prim_thread_on_exit_set(void* arg);

// _mi_prim_thread_on_exit_done removes the hook from all threads, as when the library is unloaded: it does not start
// any more. One that has started already in another thread goes on.
void _mi_prim_thread_on_exit_done(void);

// _mi_prim_is_never_unloaded tells whether this copy is part of a library that says of itself that it stays to the end of the
// process, once it is loaded.
bool _mi_prim_is_never_unloaded(void);

// _mi_prim_exit_watch makes _mi_prim_is_exiting able to tell the end of the process from the library being unloaded while
// the process goes on. To be called once, when the library is loaded; takes an OS page for good, but not where
// the library is never unloaded.
void _mi_prim_exit_watch(size_t page_size);

// _mi_prim_is_exiting tells whether the process is ending. Without a watch it says so always, which is the safe answer.
bool _mi_prim_is_exiting(void);

// _mi_prim_c_library_asks tells whether the C library's own allocations come from an allocator for whose blocks `is_ours`
// is true. May allocate. An answer that cannot be had is yes.
bool _mi_prim_c_library_asks(bool (*is_ours)(const void* p));

// _mi_prim_is_single_threaded tells whether no other thread can be running. False when that is not known.
bool _mi_prim_is_single_threaded(void);

// _mi_prim_fork_hooks has `prepare` called before each fork, in the thread that forks, and after it `parent` or `child`.
// Once in a process; may allocate. Hooks that were installed later prepare earlier and are called later afterwards. False:
// there can be no hooks.
bool _mi_prim_fork_hooks(void (*prepare)(void), void (*parent)(void), void (*child)(void));
