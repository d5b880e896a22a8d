// Owns: the public interface of arenas.
// May include: its neighbours.
// Called by: mimalloc.h, which programs include.
// Invariants: as in mimalloc.h.
#ifndef MIMALLOC_ARENA_H
#define MIMALLOC_ARENA_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

// ---- Arenas. Blocks lie in large pieces of memory. The process makes what it needs; a program may reserve some ahead, lend
// its own, and keep a piece for certain heaps (exclusive). Such an arena stays to the end of the process. ----

// mi_reserve_os_memory reserves an arena of at least size bytes from the system: committed, if commit says so, else
// bit by bit when it is used; with allow_large in OS pages of 2 MiB if the administrator has set enough of them aside
// (vm.nr_hugepages), and if not, after a warning, in ordinary ones. Large and huge OS pages are never purged or guarded;
// after a fork whoever writes to them needs free ones to copy to, or the system ends the child. Returns 0 or ENOMEM.
mi_decl_export int mi_reserve_os_memory(size_t size, bool commit, bool allow_large) mi_attr_noexcept;

// mi_manage_os_memory lends size bytes at start to the allocator, for good. The whole slices in it are used, see
// mi_arena_min_alignment; the metadata stands elsewhere. is_committed: they are readable and writable, else the
// allocator makes them so when it needs them; is_pinned: they are never purged or guarded; is_zero: they read as zeroes;
// numa_node: the node of their memory, -1 for none. The memory is never unmapped. Returns false, after a warning, where no
// whole slice is in it, it overlaps an arena or a block of this allocator, or its addresses are out of reach.
mi_decl_export bool mi_manage_os_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                        int numa_node) mi_attr_noexcept;

// mi_reserve_huge_os_pages_at reserves an arena of pages OS pages of 1 GiB, or of OS pages of 2 MiB where there are none of
// those, on a node of memory, or anywhere for -1. It stops after about timeout_msecs milliseconds, 0 for never, or when no
// more can be had, with a warning and with what it has. Returns 0, or ENOMEM if that is nothing.
mi_decl_export int mi_reserve_huge_os_pages_at(size_t pages, int numa_node, size_t timeout_msecs) mi_attr_noexcept;

// mi_reserve_huge_os_pages_interleave does the same spread over the first numa_nodes nodes, 0 for all there are, with an
// arena on each. Returns 0, or ENOMEM if no node had any.
mi_decl_export int mi_reserve_huge_os_pages_interleave(size_t pages, size_t numa_nodes,
                                                       size_t timeout_msecs) mi_attr_noexcept;

// mi_reserve_huge_os_pages is mi_reserve_huge_os_pages_interleave over all nodes by its old name, in at most max_secs seconds, 0
// for any time; it stores how many pages there are. pages_reserved may be NULL.
mi_decl_export int mi_reserve_huge_os_pages(size_t pages, double max_secs, size_t* pages_reserved) mi_attr_noexcept;

// In the forms that follow an exclusive arena serves only heaps that are made in it. They store the arena's id, or none on
// failure; arena_id may be NULL. With MI_API_V2 an id is an int, and the names stand for those that end in _v2.
#if defined(MI_API_V2)
#define mi_reserve_os_memory_ex mi_reserve_os_memory_ex_v2
#define mi_manage_os_memory_ex mi_manage_os_memory_ex_v2
#define mi_reserve_huge_os_pages_at_ex mi_reserve_huge_os_pages_at_ex_v2
#define mi_arena_area mi_arena_area_v2
#else
// mi_reserve_os_memory_ex is mi_reserve_os_memory for an arena that may be exclusive.
mi_decl_export int mi_reserve_os_memory_ex(size_t size, bool commit, bool allow_large, bool exclusive,
                                           mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_manage_os_memory_ex is mi_manage_os_memory for an arena that may be exclusive.
mi_decl_export bool mi_manage_os_memory_ex(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                           int numa_node, bool exclusive, mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_manage_memory is mi_manage_os_memory_ex for memory that commit_fun commits and takes back; it gets commit_fun_arg
// each time. Where it refuses to commit an allocation fails, where it refuses to take back the memory stays committed.
// With a commit_fun of NULL the system's own calls do both.
mi_decl_export bool mi_manage_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                     int numa_node, bool exclusive, mi_commit_fun_t* commit_fun, void* commit_fun_arg,
                                     mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_reserve_huge_os_pages_at_ex is mi_reserve_huge_os_pages_at for an arena that may be exclusive.
mi_decl_export int mi_reserve_huge_os_pages_at_ex(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                                  mi_arena_id_t* arena_id) mi_attr_noexcept;

// mi_arena_area returns where an arena begins and stores its size, which may be NULL; NULL and 0 for no arena.
mi_decl_export void* mi_arena_area(mi_arena_id_t arena_id, size_t* size);

// mi_arena_contains tells whether p points into the arena. Any address may be asked.
mi_decl_export bool mi_arena_contains(mi_arena_id_t arena_id, const void* p);
#endif

// mi_reserve_os_memory_ex_v2 is mi_reserve_os_memory_ex in version 2 of the interface.
mi_decl_export int mi_reserve_os_memory_ex_v2(size_t size, bool commit, bool allow_large, bool exclusive,
                                              int* arena_id) mi_attr_noexcept;

// mi_manage_os_memory_ex_v2 is mi_manage_os_memory_ex in version 2 of the interface.
mi_decl_export bool mi_manage_os_memory_ex_v2(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                              int numa_node, bool exclusive, int* arena_id) mi_attr_noexcept;

// mi_reserve_huge_os_pages_at_ex_v2 is mi_reserve_huge_os_pages_at_ex in version 2 of the interface.
mi_decl_export int mi_reserve_huge_os_pages_at_ex_v2(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                                     int* arena_id) mi_attr_noexcept;

// mi_arena_area_v2 is mi_arena_area in version 2 of the interface.
mi_decl_export void* mi_arena_area_v2(int arena_id, size_t* size);

// mi_arena_min_alignment returns what the start of an arena is a multiple of, and its size: a slice.
mi_decl_export size_t mi_arena_min_alignment(void);

// mi_arena_min_size returns the size of the smallest arena.
mi_decl_export size_t mi_arena_min_size(void);

// mi_arena_max_object_size returns the size up to which blocks are placed in arenas, other than those of heaps that were
// made in one.
mi_decl_export size_t mi_arena_max_object_size(void);

// mi_arenas_purge gives the unused memory of all arenas back to the system now, whatever the option purge_delay says.
mi_decl_export void mi_arenas_purge(void) mi_attr_noexcept;

// mi_arenas_print writes a line for each arena to the registered output: its place, size, what of it is in use, and kind.
mi_decl_export void mi_arenas_print(void) mi_attr_noexcept;

// mi_debug_show_arenas is mi_arenas_print by another name.
mi_decl_export void mi_debug_show_arenas(void) mi_attr_noexcept;

#if defined(__cplusplus)
}  // extern "C"
#endif

#endif  // MIMALLOC_ARENA_H
