// Owns: the target that calls the whole interface rightly, against the shadow model.
// May include: fuzz/lib, mimalloc.h, mimalloc-stats.h.
// Called by: libFuzzer, fuzz/lib/replay.c; under every variant.
// Invariants: nothing the allocator may report happens; a run leaves no block, heap or thread.
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz/lib/call.h"
#include "fuzz/lib/calls.h"
#include "fuzz/lib/modes.h"
#include "fuzz/lib/steady.h"
#include "mi-profile.h"
#include "mimalloc-stats.h"

// Operations; those that make and end blocks are most of them.
enum { OP_ALLOC,
       OP_ALLOC_MORE,
       OP_ALIGNED,
       OP_FREE,
       OP_FREE_MORE,
       OP_REALLOC,
       OP_REZALLOC,
       OP_EXPAND,
       OP_MANY,       // allocations of one size, in slots that follow each other
       OP_FREE_MANY,  // slots that follow each other, or every second
       OP_ASK,
       OP_HEAP_NEW,
       OP_HEAP_END,
       OP_DEFAULT,
       OP_COLLECT,
       OP_VISIT,
       OP_STATS,
       OP_ACTOR,
       OP_ACTOR_END,
       OP_THREAD_DONE,
       OP_CLOCK,
       OP_OPTION,
       OP_MORE,    // the rarer functions that make blocks
       OP_STRING,  // and those that copy a text
       OP_READ,
       OP_PROFILE,
       OP_SWITCH,
       OP_SUBPROCESS,
       OP_STORM,  // all threads free blocks at once, and allocate
       OP_CODES };

enum { ARENA_SIZE = 32 << 20 };

static void mi_fuzz_many(const mi_fuzz_op_t* op) {
  mi_fuzz_op_t one = *op;
  for (unsigned i = 0; i <= op->more; i++) {
    mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[(op->slot + i) % MI_FUZZ_BLOCKS];
    if (block->p == NULL) {
      one.more = op->more;
      mi_fuzz_call_alloc(block, &one);
    }
  }
}

static void mi_fuzz_free_many(const mi_fuzz_op_t* op) {
  const unsigned step = 1 + op->form % 3;
  for (unsigned i = 0; i <= op->more; i++) {
    mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[(op->slot + i * step) % MI_FUZZ_BLOCKS];
    if (block->p != NULL) {
      mi_fuzz_call_free(block, op->form >> 4);
    }
  }
}

// What is drawn from for refusals, by several threads when they act at once.
static _Atomic(uint64_t) mi_fuzz_refusals;

// Commits and takes back as an allocator that is asked to must: what was taken back reads as zeroes, and nobody can write to it
// meanwhile. Now and then it refuses.
static bool mi_fuzz_commit(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  uint8_t* const region = arg;
  MI_FUZZ_CHECK((uint8_t*)start >= region && size <= ARENA_SIZE - (size_t)((uint8_t*)start - region), "commit: %zu bytes at %p are not of the arena",
                size, start);
  uint64_t drawn = atomic_fetch_add_explicit(&mi_fuzz_refusals, 1, memory_order_relaxed);
  if (mi_fuzz_random(&drawn) % 16 == 0) {
    return false;
  }
  if (!commit) {
    MI_FUZZ_CHECK(madvise(start, size, MADV_DONTNEED) == 0, "the system takes no memory back");
  } else if (is_zero != NULL) {
    *is_zero = false;  // what was never written is zero as well, but nobody keeps count
  }
  return mprotect(start, size, commit ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

// Arenas are of all runs: one cannot be given back.
static void mi_fuzz_heap_in_arena(mi_fuzz_heap_t* heap, bool lent) {
  static mi_arena_id_t arenas[2];
  mi_arena_id_t* const arena = &arenas[lent];
  if (*arena == NULL && lent) {
    void* const region = mmap(NULL, ARENA_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MI_FUZZ_CHECK(region != MAP_FAILED && mi_manage_memory(region, ARENA_SIZE, false, false, true, -1, true, &mi_fuzz_commit, region, arena),
                  "mi_manage_memory: there is no arena");
  } else if (*arena == NULL) {
    MI_FUZZ_CHECK(mi_reserve_os_memory_ex(ARENA_SIZE, false, false, true, arena) == 0, "mi_reserve_os_memory_ex: there is no arena");
  }
  heap->is_small = true;
  heap->arena = *arena;
  heap->heap = mi_heap_new_in_arena(*arena);
}

static void mi_fuzz_heap_new(const mi_fuzz_op_t* op) {
  mi_fuzz_heap_t* const heap = &mi_fuzz_model.heaps[1 + op->slot % (MI_FUZZ_HEAPS - 1)];
  if (heap->there) {
    return;
  }
  *heap = (mi_fuzz_heap_t){.destroys = true, .there = true};
  switch (op->form % 4) {
    case 0:
      heap->tag = op->more;
      heap->destroys = (op->form & 16) != 0;
      heap->heap = mi_heap_new_ex(heap->tag, heap->destroys, NULL);
      break;
    case 1: heap->heap = mi_heap_try_new(); break;
    case 2: mi_fuzz_heap_in_arena(heap, (op->form & 32) != 0); break;
    default: heap->heap = (op->form & 32) != 0 ? mi_heap_new_qsbr() : mi_heap_new(); break;
  }
  MI_FUZZ_CHECK(heap->heap != NULL, "mi_heap_new: there is none");
}

static void mi_fuzz_heap_end(const mi_fuzz_op_t* op) {
  const uint8_t index = mi_fuzz_pick_heap(op->slot);
  mi_fuzz_heap_t* const heap = &mi_fuzz_model.heaps[index];
  if (index == 0) {
    return;
  }
  const bool destroy = op->form % 2 == 0;
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[i];
    if (block->p != NULL && block->heap == index) {
      if (destroy && heap->destroys) {
        (void)mi_fuzz_block_take(block);
      } else {
        block->heap = 0;
      }
    }
  }
  for (size_t i = 0; i < MI_FUZZ_ACTORS; i++) {
    if (mi_fuzz_model.default_heap[i] == index) {
      mi_fuzz_model.default_heap[i] = 0;
    }
  }
  heap->there = false;
  mi_fuzz_model.doing = destroy ? "mi_heap_destroy" : "mi_heap_delete";
  if (destroy) {
    mi_heap_destroy(heap->heap);
  } else {
    mi_heap_delete(heap->heap);
  }
}

static void mi_fuzz_set_default(const mi_fuzz_op_t* op) {
  const uint8_t index = mi_fuzz_pick_heap(op->slot);
  if (mi_fuzz_model.late[mi_fuzz_model.actor]) {
    return;
  }
  mi_fuzz_model.doing = "mi_heap_set_default";
  mi_heap_t* const before = mi_fuzz_model.heaps[mi_fuzz_default_heap()].heap;
  mi_heap_t* const heap = mi_fuzz_model.heaps[index].heap;
  if (op->form % 2 == 0) {
    mi_heap_t* const was = mi_heap_set_default(index == 0 && op->form % 4 == 0 ? NULL : heap);
    MI_FUZZ_CHECK(was == before, "mi_heap_set_default: it was %p, %p is told", (void*)before, (void*)was);
  } else {
    (void)mi_theap_set_default(mi_heap_theap(heap));
  }
  mi_fuzz_model.default_heap[mi_fuzz_model.actor] = index;
  MI_FUZZ_CHECK(mi_heap_get_default() == heap, "mi_heap_get_default: it is %p, not %p", (void*)mi_heap_get_default(), (void*)heap);
}

static void mi_fuzz_collect(const mi_fuzz_op_t* op) {
  const uint8_t index = mi_fuzz_pick_heap(op->slot);
  mi_heap_t* const heap = mi_fuzz_model.heaps[index].heap;
  const bool force = (op->more & 1) != 0;
  mi_fuzz_model.doing = "collect";
  if (mi_fuzz_model.late[mi_fuzz_model.actor] && op->form % 8 >= 2 && op->form % 8 <= 4) {
    return;  // it has no theap
  }
  switch (op->form % 8) {
    case 0: mi_heap_collect(heap, force); break;
    case 1: mi_collect_reduce(op->n % 1000000); break;
    case 2: mi_theap_collect(mi_heap_theap(heap), force); break;
    case 3: mi_theap_quiescent_abandon(mi_heap_theap(heap)); break;
    case 4:
      if (index != 0 && mi_fuzz_default_heap() != index) {
        mi_theap_delete(mi_heap_theap(heap));
      }
      break;
    case 5: mi_stats_merge(); break;
    default: mi_collect(force); break;
  }
}

static void mi_fuzz_thread_done(const mi_fuzz_op_t* op) {
  bool* const late = &mi_fuzz_model.late[mi_fuzz_model.actor];
  if (*late) {
    mi_fuzz_model.doing = "mi_thread_init";
    mi_thread_init();
  } else if (op->form % 4 == 0) {
    mi_fuzz_model.doing = "mi_thread_done";
    mi_thread_done();
  } else {
    return;
  }
  *late = !*late;
  mi_fuzz_model.lives[mi_fuzz_model.actor]++;
  mi_fuzz_model.default_heap[mi_fuzz_model.actor] = 0;
}

static void mi_fuzz_stats(const mi_fuzz_op_t* op) {
  mi_fuzz_model.doing = "stats";
  if (op->form % 8 == 0) {
    mi_stats_reset();
  } else if (op->form % 8 == 1) {
    static char text[40000];
    MI_FUZZ_CHECK(mi_stats_get_json(sizeof(text), text) == text && text[0] == '{', "mi_stats_get_json: it does not fit");
  }
  mi_fuzz_check_stats();
}

typedef struct mi_fuzz_option_s {
  mi_option_t option;
  long values[4];
} mi_fuzz_option_t;

static const mi_fuzz_option_t mi_fuzz_options[] = {
    {mi_option_purge_delay, {10, 0, -1, 1000}},
    {mi_option_page_full_retain, {2, 0, -1, 10}},
    {mi_option_page_reclaim_on_free, {1, 0, -1, 1}},
    {mi_option_quarantine_blocks, {64, 0, 1024, 1}},
    {mi_option_quarantine_size, {64, 0, 1, 1000}},
    {mi_option_page_max_candidates, {4, 0, 1, 100}},
    {mi_option_page_max_reclaim, {-1, 0, 1, 100}},
    {mi_option_page_cross_thread_max_reclaim, {32, 0, 1, -1}},
    {mi_option_generic_collect, {10000, 1, 10, 0}},
    {mi_option_arena_purge_immediate_size, {0, 64, 1024, 4}},
    {mi_option_purge_decommits, {1, 0, 1, 0}},
    {mi_option_arena_purge_mult, {1, 0, 10, 1}},
    {mi_option_guarded_sample_rate, {0, 1, 3, 50}},
    {mi_option_guarded_max, {1 << 30, 5000, 100000, 1 << 30}},
};
enum { OPTIONS = sizeof(mi_fuzz_options) / sizeof(mi_fuzz_options[0]) };

static void mi_fuzz_set_option(unsigned which, unsigned value) {
  const mi_fuzz_option_t* const option = &mi_fuzz_options[which % OPTIONS];
  mi_option_set(option->option, option->values[value % 4]);
}

static void mi_fuzz_block_op(const mi_fuzz_op_t* op, unsigned code) {
  mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[op->slot % MI_FUZZ_BLOCKS];
  if (block->p == NULL) {
    if (code == OP_ALLOC || code == OP_ALLOC_MORE) {
      mi_fuzz_call_alloc(block, op);
    } else if (code == OP_ALIGNED) {
      mi_fuzz_call_aligned(block, op);
    } else if (code == OP_MORE) {
      mi_fuzz_call_more(block, op);
    } else if (code == OP_STRING) {
      mi_fuzz_call_string(block, op);
    }
    return;
  }
  switch (code) {
    case OP_ALLOC:
    case OP_ALLOC_MORE:
    case OP_ALIGNED:
    case OP_MORE:
    case OP_STRING:
    case OP_FREE:
    case OP_FREE_MORE: mi_fuzz_call_free(block, op->form); break;
    case OP_REALLOC: mi_fuzz_call_realloc(block, op); break;
    case OP_REZALLOC: mi_fuzz_call_rezalloc(block, op); break;
    case OP_EXPAND: mi_fuzz_call_expand(block, op); break;
    default:
      mi_fuzz_model.doing = "ask";
      mi_fuzz_block_ask(block, op->n);
      break;
  }
}

// What threads do at once: nothing of the model is touched meanwhile.
typedef struct mi_fuzz_storm_s {
  void* freed[MI_FUZZ_BLOCKS];
  void* made[MI_FUZZ_BLOCKS];
  size_t count;
  size_t size;
} mi_fuzz_storm_t;

static void mi_fuzz_storm_part(unsigned actor, void* arg) {
  mi_fuzz_storm_t* const storm = arg;
  for (size_t i = actor; i < storm->count; i += MI_FUZZ_ACTORS) {
    mi_free(storm->freed[i]);
    storm->made[i] = i % 3 == 0 ? mi_malloc(storm->size) : NULL;
  }
}

static void mi_fuzz_storm(const mi_fuzz_op_t* op) {
  static mi_fuzz_storm_t storm;
  const unsigned acting = mi_fuzz_model.actor;
  storm.count = 0;
  storm.size = mi_fuzz_size(op->form & 7, op->n);
  for (unsigned i = 0; i <= op->more; i++) {
    mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[(op->slot + i) % MI_FUZZ_BLOCKS];
    if (block->p != NULL) {
      storm.freed[storm.count++] = mi_fuzz_block_take(block);
    }
  }
  mi_fuzz_begin("allocation and free at once", 0);
  mi_fuzz_act_at_once(&mi_fuzz_storm_part, &storm);
  mi_fuzz_expect_error(0);
  for (size_t i = 0, slot = op->slot; i < storm.count; i++) {
    while (mi_fuzz_model.blocks[slot % MI_FUZZ_BLOCKS].p != NULL) {
      slot++;
    }
    if (i % 3 == 0) {
      mi_fuzz_model.actor = (unsigned)(i % MI_FUZZ_ACTORS);
      mi_fuzz_block_made(&mi_fuzz_model.blocks[slot % MI_FUZZ_BLOCKS], storm.made[i],
                         &(mi_fuzz_expect_t){.size = storm.size, .align = 16, .heap = MI_FUZZ_NO_HEAP});
    }
  }
  mi_fuzz_model.actor = acting;
}

static void mi_fuzz_step(void* arg) {
  const mi_fuzz_op_t* const op = arg;
  const unsigned code = op->code % OP_CODES;
  switch (code) {
    case OP_MANY: mi_fuzz_many(op); break;
    case OP_FREE_MANY: mi_fuzz_free_many(op); break;
    case OP_HEAP_NEW: mi_fuzz_heap_new(op); break;
    case OP_HEAP_END: mi_fuzz_heap_end(op); break;
    case OP_DEFAULT: mi_fuzz_set_default(op); break;
    case OP_COLLECT: mi_fuzz_collect(op); break;
    case OP_VISIT:
      mi_fuzz_model.doing = "visit";
      mi_fuzz_check_visits();
      break;
    case OP_STATS: mi_fuzz_stats(op); break;
    case OP_THREAD_DONE: mi_fuzz_thread_done(op); break;
    case OP_CLOCK: mi_fuzz_steady_pass_ms(op->n % 2000); break;
    case OP_OPTION: mi_fuzz_set_option(op->slot, op->form); break;
    case OP_READ: mi_fuzz_read(op); break;
    case OP_PROFILE: mi_fuzz_profile(op); break;
    case OP_SWITCH: mi_fuzz_switch(op); break;
    case OP_SUBPROCESS: mi_fuzz_subprocess(op); break;
    default: mi_fuzz_block_op(op, code); break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_head_t head;
  const size_t count = mi_fuzz_read_head(data, size, &head);
  mi_fuzz_steady_begin(head.seed);
  atomic_store_explicit(&mi_fuzz_refusals, head.seed, memory_order_relaxed);
  for (unsigned i = 0; i < OPTIONS; i++) {
    mi_fuzz_set_option(i, 0);
  }
  // The variant that is for nothing but guarding a block now and then begins with guarding each.
  if (strcmp(MI_PROFILE_NAME, "mimalloc-guarded") == 0) {
    mi_option_set(mi_option_guarded_sample_rate, 1);
  }
  // Requests that nothing can meet are many, and no finding.
  mi_option_set(mi_option_show_errors, 0);
  mi_fuzz_model_begin(head.seed);
  for (size_t i = 0; i < count; i++) {
    mi_fuzz_op_t op = mi_fuzz_read_op(data, i);
    const unsigned actor = op.slot % MI_FUZZ_ACTORS;
    if (op.code % OP_CODES == OP_STORM) {
      mi_fuzz_storm(&op);
    } else if (op.code % OP_CODES == OP_ACTOR) {
      mi_fuzz_model.actor = actor;
    } else if (op.code % OP_CODES == OP_ACTOR_END) {
      mi_fuzz_end_actor(actor);
      if (actor != 0) {
        mi_fuzz_model.lives[actor]++;
        mi_fuzz_model.default_heap[actor] = 0;
        mi_fuzz_model.late[actor] = false;
      }
    } else {
      mi_fuzz_act(mi_fuzz_model.actor, &mi_fuzz_step, &op);
    }
  }
  mi_fuzz_modes_end();
  mi_fuzz_model_end(true);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return mi_fuzz_mutate_ops(data, size, max_size, seed, OP_CODES);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* two, size_t two_size, uint8_t* out,
                                 size_t max_size, unsigned seed) {
  return mi_fuzz_cross_ops(one, one_size, two, two_size, out, max_size, seed);
}
