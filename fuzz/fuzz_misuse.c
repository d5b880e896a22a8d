// Owns: the target that misuses memory among right calls: each violation that is certain to be seen must be reported as what it is,
// nothing else may be, and no two live blocks overlap whatever was done.
// May include: fuzz/lib, mimalloc.h, src/sys/report.h.
// Called by: libFuzzer, fuzz/lib/replay.c; under variants with live bits.
// Invariants: violations are reported and the process goes on; a run has a heap of its own, which is destroyed with what was spoiled.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/lib/calls.h"
#include "fuzz/lib/steady.h"
#include "mi-profile.h"
#include "src/heap/page.h"
#include "src/region/page-map.h"
#include "src/sys/report.h"

enum { OP_ALLOC,
       OP_ALLOC_MORE,
       OP_ALIGNED,
       OP_FREE,
       OP_FREE_MORE,
       OP_REALLOC,
       OP_MANY,
       OP_FREE_MANY,
       OP_COLLECT,
       OP_CLOCK,
       OP_ACTOR,
       OP_ACTOR_END,
       OP_DOUBLE,    // free of a freed block
       OP_INTERIOR,  // free inside a live block
       OP_FOREIGN,   // free of what was never ours
       OP_QUERY,     // a question about, or a resize of, one of these
       OP_SIZE,      // free with a size that cannot be the block's
       OP_ALIGN,     // free with an alignment that cannot be
       OP_WRITE,     // to a freed block
       OP_OVERFLOW,  // behind a live one, where ends are checked
       OP_HEAP,      // use of a heap that has ended
       OP_PAGES,     // mistakes with memory that is none of the heaps'
       OP_CODES };

enum { OWN_HEAP = 1,
       STALE = 64,
       WRITE_MAX = 16 };

#define KIND(name) (1U << MI_VIOLATION_##name)

// What may come of a pointer to memory that was freed and may serve for something else by now, in a heap with other blocks.
enum { MOVED_ON = KIND(invalid_free) | KIND(interior_free) | KIND(foreign_free) };

// Freed blocks, as far as their memory is not a live block's again.
typedef struct mi_stale_s {
  uint8_t* p;
  size_t size;
  unsigned age;  // of right calls when it was freed: nothing has happened since where that is still the number
  bool written;
  uint64_t life;  // what tells the page that it was freed in from a later one, where what was written is in blocks nobody had yet
  uint8_t length;
  size_t at;
  uint8_t bytes[WRITE_MAX];
} mi_stale_t;

// Writes to freed memory, which are undone when the run is over: the next one is to find memory as the allocator left it.
typedef struct mi_write_s {
  uint8_t* p;
  uint8_t length;
  uint8_t before[WRITE_MAX];
  uint8_t after[WRITE_MAX];
} mi_write_t;

static mi_write_t mi_writes[STALE];
static unsigned mi_write_count;

static mi_stale_t mi_stales[STALE];
static unsigned mi_age;              // right calls
static unsigned mi_next_stale;       // the slot to be used next
static unsigned mi_reported;         // kinds since the operation began
static unsigned mi_reports;          // their number
static unsigned mi_anytime;          // kinds that earlier misuse may lead to at any moment
static unsigned mi_since_write;      // reports of writes to freed memory since one was made
static mi_fuzz_block_t* mi_spoiled;  // at most one block at a time is overflowed
static bool mi_spoiled_is_told;
static int mi_pipe[2] = {-1, -1};

// Reports

static void mi_misuse_on_error(int err, void* arg) {
  (void)arg;
  for (unsigned kind = 0; kind < MI_VIOLATION_COUNT; kind++) {
    const char* const word = _mi_violation_word((mi_violation_t)kind);
    const char* const told = strstr(mi_violation_message, ": ");
    if (err != ENOMEM && err != EOVERFLOW && told != NULL && strncmp(told + 2, word, strlen(word)) == 0 && told[2 + strlen(word)] == ':') {
      mi_reported |= 1U << kind;
      mi_reports++;
      return;
    }
  }
  // A request that nothing can serve.
  MI_FUZZ_CHECK(err == ENOMEM || err == EOVERFLOW, "%s: report: error %d without a kind", mi_fuzz_model.doing, err);
}

static void mi_misuse_silent(const char* text, void* arg) {
  (void)text;
  (void)arg;
}

// An operation is over: what it must have led to, and what it may have.
static void mi_misuse_judge(unsigned must, unsigned may) {
  const unsigned reported = mi_reported;
  if ((reported & (KIND(overflow) | KIND(underflow))) != 0) {
    mi_spoiled_is_told = true;
  }
  mi_since_write += (reported & mi_anytime) != 0;
  MI_FUZZ_CHECK(must == 0 || (reported & must) != 0, "%s: report: none of kinds 0x%x, but 0x%x: %s", mi_fuzz_model.doing, must, reported,
                mi_violation_message);
  MI_FUZZ_CHECK((reported & ~(must | may | mi_anytime)) == 0, "%s: report: one of kinds 0x%x, allowed are 0x%x: %s",
                mi_fuzz_model.doing, reported, must | may | mi_anytime, mi_violation_message);
  MI_FUZZ_CHECK(must == 0 || mi_anytime != 0 || mi_reports == 1, "%s: report: %u instead of one: %s", mi_fuzz_model.doing, mi_reports,
                mi_violation_message);
  mi_reported = 0;
  mi_reports = 0;
}

// Freed blocks

// A number of the page's own; 0 where there is none.
static uint64_t mi_stale_life(const void* p) {
  const mi_page_t* const page = _mi_page_map_find(p);
  return page == NULL || page->reserved <= 1 ? 0 : page->canary_key.place;
}

static void mi_stale_add(const mi_fuzz_block_t* block) {
  mi_stale_t* const stale = &mi_stales[mi_next_stale++ % STALE];
  *stale = (mi_stale_t){.p = block->p, .size = block->usable, .age = mi_age, .life = mi_stale_life(block->p)};
}

static void mi_stale_on_new(const uint8_t* p, size_t usable) {
  for (size_t i = 0; i < STALE; i++) {
    mi_stale_t* const stale = &mi_stales[i];
    // Of a block with a checked end its room may reach beyond what may be used.
    if (stale->p == NULL || stale->p >= p + usable + 64 || p >= stale->p + stale->size + (stale->size == 0)) {
      continue;
    }
    const uint8_t* const from = stale->p + stale->at;
    if (MI_HAS_ZERO_ON_FREE && stale->written && stale->life != 0 && stale->life == mi_stale_life(p) && from >= p && from + stale->length <= p + usable) {
      MI_FUZZ_CHECK(memcmp(from, stale->bytes, stale->length) != 0 || mi_since_write > 0,
                    "write: %u bytes that were written to the free block at %p are in a new block and were not reported", stale->length,
                    (void*)stale->p);
    }
    stale->p = NULL;
  }
}

static mi_stale_t* mi_stale_pick(const mi_fuzz_op_t* op) {
  mi_stale_t* const stale = &mi_stales[(mi_next_stale - 1 - op->slot) % STALE];
  return stale->p == NULL ? NULL : stale;
}

// Right calls

static void mi_misuse_free(mi_fuzz_block_t* block, unsigned form) {
  const mi_fuzz_block_t old = *block;
  if (block == mi_spoiled) {
    mi_fuzz_model.doing = "free of a block with bytes overwritten behind it";
    mi_free(mi_fuzz_block_take(block));
    // What is wrong at the end of the last word may have come from behind.
    mi_misuse_judge(mi_spoiled_is_told ? 0 : KIND(overflow) | KIND(underflow), KIND(overflow) | KIND(underflow));
    mi_spoiled = NULL;
    mi_anytime &= mi_write_count > 0 ? ~0U : ~(KIND(overflow) | KIND(underflow));
    return;
  }
  mi_age++;
  mi_fuzz_call_free(block, form);
  mi_stale_add(&old);
}

static mi_fuzz_block_t* mi_misuse_block(unsigned slot) { return &mi_fuzz_model.blocks[slot % MI_FUZZ_BLOCKS]; }

static void mi_misuse_right(const mi_fuzz_op_t* op, unsigned code) {
  mi_fuzz_block_t* const block = mi_misuse_block(op->slot);
  mi_fuzz_op_t plain = *op;
  plain.form &= 0x7f;  // of the default heap only
  if (block->p != NULL && code != OP_REALLOC) {
    mi_misuse_free(block, op->form);
  } else if (block->p != NULL && block != mi_spoiled) {
    const mi_fuzz_block_t old = *block;
    mi_age++;
    plain.form = (uint8_t)((op->form & 15) | (op->form & 16 ? 0x80 : 0));  // mi_realloc, mi_realloc_aligned
    mi_fuzz_call_realloc(block, &plain);
    if (block->p != old.p) {
      mi_stale_add(&old);
      mi_stale_on_new(block->p, block->usable);
    }
  } else if (block->p == NULL && code == OP_ALIGNED) {
    mi_age++;
    plain.form = (uint8_t)((op->form & 15) | (op->form & 16 ? 0x10 : 0x70));  // no offsets
    mi_fuzz_call_aligned(block, &plain);
  } else if (block->p == NULL && (code == OP_ALLOC || code == OP_ALLOC_MORE)) {
    mi_age++;
    mi_fuzz_call_alloc(block, &plain);
  }
  mi_misuse_judge(0, 0);
}

static void mi_misuse_many(const mi_fuzz_op_t* op, bool frees) {
  mi_fuzz_op_t plain = *op;
  plain.form &= 0x7f;
  for (unsigned i = 0; i <= op->more; i++) {
    mi_fuzz_block_t* const block = mi_misuse_block(op->slot + i * (frees ? 1 + op->form % 3U : 1));
    if (frees && block->p != NULL) {
      mi_misuse_free(block, op->form >> 4);
    } else if (!frees && block->p == NULL) {
      mi_age++;
      mi_fuzz_call_alloc(block, &plain);
    }
    mi_misuse_judge(0, 0);
  }
}

// Wrong calls

static void mi_misuse_double(const mi_fuzz_op_t* op) {
  const mi_stale_t* const stale = mi_stale_pick(op);
  if (stale == NULL) {
    return;
  }
  mi_fuzz_model.doing = "free of a freed block";
  const unsigned kinds = KIND(double_free) | (stale->age == mi_age ? 0 : MOVED_ON);
  if (op->form % 4 == 1) {
    mi_free_size(stale->p, stale->size);
  } else if (op->form % 4 == 2) {
    mi_ufree(stale->p, NULL);
  } else {
    mi_free(stale->p);
  }
  // mi_ufree asks for the size as well, which is a report of its own.
  mi_reports -= op->form % 4 == 2 && mi_reports == 2;
  mi_misuse_judge(kinds, kinds | (op->form % 4 == 2 ? KIND(use_after_free) : 0));
}

static uint8_t* mi_misuse_inside(const mi_fuzz_op_t* op) {
  const mi_fuzz_block_t* const block = mi_misuse_block(op->slot);
  return block->p == NULL || block->usable < 2 || block == mi_spoiled ? NULL : block->p + 1 + op->n % (block->usable - 1);
}

static void* mi_misuse_foreign(const mi_fuzz_op_t* op) {
  static char here[64];
  static void* others;
  if (others == NULL) {
    others = malloc(1000);
  }
  switch (op->form % 6) {
    case 0: return here + op->n % 64;
    case 1: return (char*)others + op->n % 1000;
    case 2: return (void*)(uintptr_t)(1 + op->n % 4096);
    case 3: return (void*)(uintptr_t)(UINTPTR_MAX - op->n);
    case 4: return (void*)&mi_misuse_foreign;
    default: return (void*)((uintptr_t)op - op->n % 64);
  }
}

static void mi_misuse_query_of(void* p, const mi_fuzz_op_t* op, unsigned kinds) {
  switch (op->more % 8) {
    case 0:
      mi_fuzz_model.doing = "usable size of a bad pointer";
      MI_FUZZ_CHECK(mi_usable_size(p) == 0, "mi_usable_size: a bad pointer has a size");
      break;
    case 1:
      mi_fuzz_model.doing = "realloc of a bad pointer";
      MI_FUZZ_CHECK(mi_realloc(p, op->n % 5000) == NULL, "mi_realloc: a bad pointer was resized");
      break;
    case 2:
      mi_fuzz_model.doing = "expand of a bad pointer";
      MI_FUZZ_CHECK(mi_expand(p, op->n % 5000) == NULL, "mi_expand: a bad pointer was resized");
      break;
    case 3:
      mi_fuzz_model.doing = "rezalloc of a bad pointer";
      MI_FUZZ_CHECK(mi_rezalloc(p, op->n % 5000) == NULL, "mi_rezalloc: a bad pointer was resized");
      break;
    case 4:
      mi_fuzz_model.doing = "reallocarr of a bad pointer";
      MI_FUZZ_CHECK(mi_reallocarr(&p, 1, 1 + op->n % 5000) != 0, "mi_reallocarr: a bad pointer was resized");
      break;
    case 5:
      mi_fuzz_model.doing = "resize of a bad pointer in a heap";
      MI_FUZZ_CHECK(mi_heap_realloc(mi_fuzz_model.heaps[OWN_HEAP].heap, p, op->n % 5000) == NULL, "mi_heap_realloc: a bad pointer was resized");
      break;
    default:
      mi_fuzz_model.doing = "realloc_aligned of a bad pointer";
      MI_FUZZ_CHECK(mi_realloc_aligned(p, op->n % 5000, 64) == NULL, "mi_realloc_aligned: a bad pointer was resized");
      break;
  }
  mi_misuse_judge(kinds, kinds);
}

static void mi_misuse_query(const mi_fuzz_op_t* op) {
  const mi_stale_t* const stale = mi_stale_pick(op);
  uint8_t* const inside = mi_misuse_inside(op);
  if (op->form % 3 == 0 && stale != NULL) {
    mi_misuse_query_of(stale->p, op, KIND(use_after_free) | (stale->age == mi_age ? 0 : MOVED_ON));
  } else if (op->form % 3 == 1 && inside != NULL) {
    mi_misuse_query_of(inside, op, KIND(interior_free));
  } else if (op->form % 3 == 2) {
    mi_misuse_query_of(mi_misuse_foreign(op), op, KIND(foreign_free));
  }
}

static void mi_misuse_free_as(const mi_fuzz_op_t* op, bool by_size) {
  mi_fuzz_block_t* const block = mi_misuse_block(op->slot);
  if (block->p == NULL || block == mi_spoiled) {
    return;
  }
  const mi_fuzz_block_t old = *block;
  void* const p = mi_fuzz_block_take(block);
  mi_age++;
  if (by_size) {
    // A block may have been resized within itself to half of its size, or aligned up to what its address is aligned to: what is
    // less than both is nobody's size.
    const size_t aligned = (uintptr_t)p & (~(uintptr_t)p + 1);
    if ((op->form & 1) != 0 && old.usable >= 256 && aligned <= old.usable / 4) {
      mi_fuzz_model.doing = "free with too small a size";
      mi_free_size(p, 1 + op->n % (old.usable / 4));
    } else {
      mi_fuzz_model.doing = "free with too large a size";
      mi_free_size(p, old.usable + 1 + op->n % 100000);
    }
    mi_misuse_judge(KIND(size_mismatch), KIND(size_mismatch));
  } else {
    mi_fuzz_model.doing = "free with too large an alignment";
    mi_free_aligned(p, ((uintptr_t)p & (~(uintptr_t)p + 1)) << (1 + op->n % 8));
    mi_misuse_judge(KIND(alignment_mismatch), KIND(alignment_mismatch));
  }
  // Its address was right, so it is free now.
  mi_stale_add(&old);
}

// Reads and writes only where memory is accessible: what was freed need not be. The system does it, and says if it cannot.
static bool mi_misuse_peek(const void* p, uint8_t* bytes, size_t length) {
  return write(mi_pipe[1], p, length) == (ssize_t)length && read(mi_pipe[0], bytes, length) == (ssize_t)length;
}

static bool mi_misuse_poke(void* p, const uint8_t* bytes, size_t length) {
  if (write(mi_pipe[1], bytes, length) == (ssize_t)length && read(mi_pipe[0], p, length) == (ssize_t)length) {
    return true;
  }
  uint8_t drop[WRITE_MAX];
  (void)!read(mi_pipe[0], drop, sizeof(drop));
  return false;
}

static void mi_misuse_undo_writes(void) {
  while (mi_write_count > 0) {
    const mi_write_t* const one = &mi_writes[--mi_write_count];
    uint8_t now[WRITE_MAX];
    if (mi_misuse_peek(one->p, now, one->length) && memcmp(now, one->after, one->length) == 0) {
      (void)mi_misuse_poke(one->p, one->before, one->length);
    }
  }
}

static void mi_misuse_write(const mi_fuzz_op_t* op) {
  mi_stale_t* const stale = mi_stale_pick(op);
  if (stale == NULL || stale->size == 0 || stale->written || mi_write_count == STALE) {
    return;
  }
  stale->at = op->n % stale->size;
  const size_t room = stale->size - stale->at;
  const size_t length = 1U + op->form % WRITE_MAX;
  stale->length = (uint8_t)(length < room ? length : room);
  uint64_t state = op->n;
  for (size_t i = 0; i < WRITE_MAX; i++) {
    stale->bytes[i] = (uint8_t)(mi_fuzz_random(&state) | 1);
  }
  mi_write_t* const one = &mi_writes[mi_write_count];
  one->p = stale->p + stale->at;
  one->length = stale->length;
  memcpy(one->after, stale->bytes, WRITE_MAX);
  if (mi_misuse_peek(one->p, one->before, one->length) && mi_misuse_poke(one->p, one->after, one->length)) {
    mi_write_count++;
    stale->written = true;
    mi_fuzz_model.dirty = true;
    mi_since_write = 0;
    mi_anytime |= KIND(free_list_corruption) | (MI_HAS_ZERO_ON_FREE || MI_HAS_PADDING ? KIND(write_after_free) | KIND(overflow) | KIND(underflow) : 0);
  }
}

static void mi_misuse_overflow(const mi_fuzz_op_t* op) {
  mi_fuzz_block_t* const block = mi_misuse_block(op->slot);
  if (!MI_HAS_PADDING || block->p == NULL || block->size == 0 || mi_spoiled != NULL) {
    return;
  }
  const size_t at = block->usable + (op->form & 1 ? 0 : op->n % 8);
  // A zero is what belongs just behind a request. A guarded block has nothing behind it that could be written.
  uint8_t byte;
  if (!mi_misuse_peek(block->p + at, &byte, 1)) {
    return;
  }
  byte ^= (uint8_t)(1 + op->more % 255);
  if (byte == 0 || !mi_misuse_poke(block->p + at, &byte, 1)) {
    return;
  }
  mi_spoiled = block;
  mi_spoiled_is_told = false;
  mi_anytime |= KIND(overflow) | KIND(underflow);
}

// A heap is ended and used all the same: it is told, and the main heap serves.
static void mi_misuse_heap(const mi_fuzz_op_t* op) {
  mi_heap_t* const heap = mi_heap_new();
  MI_FUZZ_CHECK(heap != NULL, "mi_heap_new: there is none");
  if ((op->more & 1) != 0) {
    mi_heap_delete(heap);
  } else {
    mi_heap_destroy(heap);
  }
  mi_misuse_judge(0, 0);
  // What serves may be given a page that lies where one was that blocks were freed in.
  mi_age++;
  void* p = NULL;
  switch (op->form % 4) {
    case 0:
      mi_fuzz_model.doing = "allocation from a heap that has ended";
      p = mi_heap_malloc(heap, op->n % 3000);
      mi_misuse_judge(KIND(use_after_free), 0);
      break;
    case 1:
      mi_fuzz_model.doing = "aligned allocation from a heap that has ended";
      p = mi_heap_malloc_aligned(heap, op->n % 3000, 64);
      mi_misuse_judge(KIND(use_after_free), 0);
      break;
    case 2:
      mi_fuzz_model.doing = "mi_heap_delete of a heap that has ended";
      mi_heap_delete(heap);
      mi_misuse_judge(KIND(double_free), 0);
      return;
    default:
      mi_fuzz_model.doing = "mi_heap_destroy of a heap that has ended";
      mi_heap_destroy(heap);
      mi_misuse_judge(KIND(double_free), 0);
      return;
  }
  MI_FUZZ_CHECK(p != NULL && mi_heap_of(p) == mi_heap_main(), "%s: the main heap does not serve", mi_fuzz_model.doing);
  mi_free(p);
  mi_misuse_judge(0, 0);
}

static void mi_misuse_pages(const mi_fuzz_op_t* op) {
  const size_t size = 1 + op->n % 20000;
  uint8_t* const p = mi_unwrapped_malloc(size, 0);
  MI_FUZZ_CHECK(p != NULL, "mi_unwrapped_malloc: there is no memory");
  p[0] = p[size - 1] = 1;
  mi_misuse_judge(0, 0);
  if ((op->form & 1) != 0) {
    mi_fuzz_model.doing = "free of what is mi_unwrapped_malloc's";
    mi_free(p);
    mi_misuse_judge(KIND(foreign_free), 0);
  }
  mi_fuzz_block_t* const block = mi_misuse_block(op->slot);
  if ((op->form & 2) != 0 && block->p != NULL) {
    mi_fuzz_model.doing = "mi_unwrapped_free of what is a heap's";
    mi_unwrapped_free(block->p);
    mi_misuse_judge(KIND(foreign_free), 0);
  }
  mi_unwrapped_free(p);
  mi_misuse_judge(0, 0);
  if ((op->form & 4) != 0) {
    mi_fuzz_model.doing = "mi_unwrapped_free again";
    mi_unwrapped_free(p);
    mi_misuse_judge(KIND(double_free) | KIND(foreign_free), 0);
  }
}

static void mi_misuse_step(void* arg) {
  const mi_fuzz_op_t* const op = arg;
  const unsigned code = op->code % OP_CODES;
  // Each thread allocates from the run's heap.
  mi_heap_set_default(mi_fuzz_model.heaps[OWN_HEAP].heap);
  switch (code) {
    case OP_MANY: mi_misuse_many(op, false); break;
    case OP_FREE_MANY: mi_misuse_many(op, true); break;
    case OP_COLLECT:
      mi_age++;
      mi_fuzz_model.doing = "collect";
      mi_collect((op->form & 1) != 0);
      mi_misuse_judge(0, 0);
      break;
    case OP_CLOCK: mi_fuzz_steady_pass_ms(op->n % 2000); break;
    case OP_DOUBLE: mi_misuse_double(op); break;
    case OP_INTERIOR: {
      uint8_t* const p = mi_misuse_inside(op);
      if (p != NULL) {
        mi_fuzz_model.doing = "free inside a block";
        mi_free(p);
        mi_misuse_judge(KIND(interior_free), 0);
      }
      break;
    }
    case OP_FOREIGN:
      mi_fuzz_model.doing = "free of what is not ours";
      mi_free(mi_misuse_foreign(op));
      mi_misuse_judge(KIND(foreign_free), 0);
      break;
    case OP_QUERY: mi_misuse_query(op); break;
    case OP_SIZE: mi_misuse_free_as(op, true); break;
    case OP_ALIGN: mi_misuse_free_as(op, false); break;
    case OP_WRITE: mi_misuse_write(op); break;
    case OP_OVERFLOW: mi_misuse_overflow(op); break;
    case OP_HEAP: mi_misuse_heap(op); break;
    case OP_PAGES: mi_misuse_pages(op); break;
    default: mi_misuse_right(op, code); break;
  }
}

static void mi_misuse_begin(uint32_t seed) {
  mi_fuzz_steady_begin(seed);
  // What is written beside a guarded block is told when that is freed, which is not what is judged here.
  mi_option_set(mi_option_guarded_sample_rate, 0);
  MI_FUZZ_CHECK(mi_pipe[0] >= 0 || pipe(mi_pipe) == 0, "the system has no pipe");
  mi_option_set(mi_option_on_violation, 1);
  mi_option_set(mi_option_backtrace, 0);
  mi_fuzz_model_begin(seed);
  mi_register_error(&mi_misuse_on_error, NULL);
  mi_register_output(&mi_misuse_silent, NULL);
  memset(mi_stales, 0, sizeof(mi_stales));
  mi_age = mi_next_stale = mi_reported = mi_reports = mi_anytime = mi_since_write = 0;
  mi_spoiled = NULL;
  mi_fuzz_model.on_new = &mi_stale_on_new;
  mi_heap_t* const heap = mi_heap_new();
  MI_FUZZ_CHECK(heap != NULL, "mi_heap_new: there is none");
  mi_fuzz_model.heaps[OWN_HEAP] = (mi_fuzz_heap_t){.heap = heap, .there = true, .destroys = true};
  memset(mi_fuzz_model.default_heap, OWN_HEAP, sizeof(mi_fuzz_model.default_heap));
}

static void mi_misuse_end(void) {
  mi_fuzz_model.doing = "end";
  mi_fuzz_model.actor = 0;
  for (unsigned i = 1; i < MI_FUZZ_ACTORS; i++) {
    mi_fuzz_end_actor(i);
  }
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[i];
    if (block->p != NULL) {
      (void)mi_fuzz_block_take(block);
    }
  }
  mi_heap_destroy(mi_fuzz_model.heaps[OWN_HEAP].heap);
  mi_misuse_judge(0, 0);
  mi_fuzz_model.heaps[OWN_HEAP].there = false;
  mi_collect(true);
  mi_misuse_judge(0, 0);
  mi_misuse_undo_writes();
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mi_fuzz_head_t head;
  const size_t count = mi_fuzz_read_head(data, size, &head);
  mi_misuse_begin(head.seed);
  for (size_t i = 0; i < count; i++) {
    mi_fuzz_op_t op = mi_fuzz_read_op(data, i);
    const unsigned actor = op.slot % MI_FUZZ_ACTORS;
    if (op.code % OP_CODES == OP_ACTOR) {
      mi_fuzz_model.actor = actor;
    } else if (op.code % OP_CODES == OP_ACTOR_END) {
      mi_fuzz_end_actor(actor);
      mi_fuzz_model.lives[actor]++;
      mi_misuse_judge(0, 0);
    } else {
      mi_fuzz_act(mi_fuzz_model.actor, &mi_misuse_step, &op);
    }
  }
  mi_misuse_end();
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return mi_fuzz_mutate_ops(data, size, max_size, seed, OP_CODES);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* two, size_t two_size, uint8_t* out,
                                 size_t max_size, unsigned seed) {
  return mi_fuzz_cross_ops(one, one_size, two, two_size, out, max_size, seed);
}
