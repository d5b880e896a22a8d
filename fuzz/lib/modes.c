// Owns: the readings and switches of a run.
// May include: fuzz/lib, mimalloc.h, mimalloc-stats.h.
// Called by: through modes.h.
// Invariants: as modes.h says.
#include "fuzz/lib/modes.h"

#include <string.h>

#include "fuzz/lib/call.h"
#include "mi-profile.h"
#include "mimalloc-stats.h"

// Reading

static char mi_fuzz_out[60000];

static void mi_fuzz_on_text(const char* text, void* arg) {
  size_t* const length = arg;
  *length += strlen(text);
}

static bool mi_fuzz_on_heap(mi_heap_t* heap, void* arg) {
  unsigned* const seen = arg;
  MI_FUZZ_CHECK(*seen != 0 || heap == mi_heap_main(), "visit: the main heap is not the first");
  (*seen)++;
  for (size_t i = 0; i < MI_FUZZ_HEAPS; i++) {
    if (mi_fuzz_model.heaps[i].there && mi_fuzz_model.heaps[i].heap == heap) {
      return true;
    }
  }
  mi_fuzz_fail("visit: a heap is told of that there is not");
}

static void mi_fuzz_read_heaps(void) {
  unsigned seen = 0;
  unsigned there = 0;
  for (size_t i = 0; i < MI_FUZZ_HEAPS; i++) {
    there += mi_fuzz_model.heaps[i].there;
  }
  mi_fuzz_model.doing = "mi_subproc_visit_heaps";
  MI_FUZZ_CHECK(mi_subproc_visit_heaps(mi_subproc_main(), &mi_fuzz_on_heap, &seen) && seen == there,
                "visit: %u heaps are told of, there are %u", seen, there);
}

static void mi_fuzz_read_arenas(void) {
  for (size_t i = 0; i < MI_FUZZ_BLOCKS; i++) {
    const mi_fuzz_block_t* const block = &mi_fuzz_model.blocks[i];
    const mi_fuzz_heap_t* const heap = &mi_fuzz_model.heaps[block->heap];
    if (block->p == NULL || !heap->is_small || block->size == 0) {
      continue;
    }
    size_t size = 0;
    const uint8_t* const start = mi_arena_area(heap->arena, &size);
    MI_FUZZ_CHECK(mi_arena_contains(heap->arena, block->p) && (size_t)(block->p - start) < size && block->usable <= size - (size_t)(block->p - start),
                  "arena: %zu bytes at %p are not in the arena of their heap, %zu bytes at %p", block->usable, (const void*)block->p, size,
                  (const void*)start);
  }
  MI_FUZZ_CHECK(!mi_arena_contains(NULL, &mi_fuzz_model) && mi_arena_area(NULL, NULL) == NULL, "arena: none has something in it");
  MI_FUZZ_CHECK(mi_arena_min_size() >= mi_arena_min_alignment() && mi_arena_max_object_size() > 0, "arena: the least sizes are wrong");
}

static void mi_fuzz_read_process(void) {
  size_t rss = 0;
  size_t peak_rss = 0;
  size_t commit = 0;
  size_t peak_commit = 0;
  mi_process_info(NULL, NULL, NULL, &rss, &peak_rss, &commit, &peak_commit, NULL);
  MI_FUZZ_CHECK(rss > 0 && peak_rss > 0 && commit <= peak_commit, "mi_process_info: %zu of %zu bytes, %zu of %zu", rss, peak_rss, commit,
                peak_commit);
  MI_FUZZ_CHECK(mi_version() == MI_MALLOC_VERSION && !mi_is_redirected(), "mi_version: it is %d", mi_version());
}

// In JSON every brace and bracket is closed, outside of texts, and nothing stands behind the last.
static void mi_fuzz_check_json(const char* what, const char* text) {
  MI_FUZZ_CHECK(text == mi_fuzz_out && text[0] == '{', "%s: it does not fit", what);
  char open[32];
  size_t depth = 0;
  for (const char* at = text; *at != 0; at++) {
    if (*at == '"') {
      at = strchr(at + 1, '"');
      MI_FUZZ_CHECK(at != NULL, "%s: a text has no end", what);
    } else if (*at == '{' || *at == '[') {
      MI_FUZZ_CHECK(depth < sizeof(open), "%s: too deep", what);
      open[depth++] = *at;
    } else if (*at == '}' || *at == ']') {
      MI_FUZZ_CHECK(depth > 0 && open[depth - 1] == (*at == '}' ? '{' : '['), "%s: what is closed was not opened: %.40s", what, at);
      depth--;
      MI_FUZZ_CHECK(depth > 0 || at[1 + strspn(at + 1, " \n")] == 0, "%s: something stands behind the end: %.40s", what, at + 1);
    }
  }
  MI_FUZZ_CHECK(depth == 0, "%s: the end is missing", what);
}

static void mi_fuzz_read_texts(mi_heap_t* heap, unsigned which) {
  size_t length = 0;
  switch (which % 8) {
    case 0: mi_stats_print_out(&mi_fuzz_on_text, &length); break;
    case 1: mi_heap_stats_print_out(heap, &mi_fuzz_on_text, &length); break;
    case 2: mi_thread_stats_print_out(&mi_fuzz_on_text, &length); break;
    case 3: mi_options_print_out(&mi_fuzz_on_text, &length); break;
    case 4: mi_process_info_print_out(&mi_fuzz_on_text, &length); break;
    case 5: mi_subproc_heap_stats_print_out(mi_subproc_main(), &mi_fuzz_on_text, &length); break;
    case 6:
      mi_fuzz_check_json("mi_heap_stats_get_json", mi_heap_stats_get_json(heap, sizeof(mi_fuzz_out), mi_fuzz_out));
      return;
    default:
      mi_fuzz_check_json("mi_subproc_stats_get_json", mi_subproc_stats_get_json(mi_subproc_main(), sizeof(mi_fuzz_out), mi_fuzz_out));
      return;
  }
  MI_FUZZ_CHECK(length > 0, "print: there is no text of kind %u", which % 8);
}

static void mi_fuzz_read_stats(uint8_t index) {
  static mi_stats_t stats;
  mi_stats_init(&stats);
  if (!mi_fuzz_model.late[mi_fuzz_model.actor]) {
    MI_FUZZ_CHECK(mi_theap_stats_get(mi_fuzz_theap(index), &stats), "stats: none of a theap");
    int64_t blocks = 0;
    for (size_t bin = 0; bin <= MI_BIN_HUGE; bin++) {
      blocks += stats.malloc_bins[bin].current;
    }
    MI_FUZZ_CHECK(blocks >= 0 && blocks <= (int64_t)mi_fuzz_model.live_blocks, "stats: a theap has %lld blocks, %zu are live",
                  (long long)blocks, mi_fuzz_model.live_blocks);
  }
  mi_stats_init(&stats);
  MI_FUZZ_CHECK(mi_subproc_stats_get(mi_subproc_main(), &stats) && mi_subproc_stats_get_exclusive(mi_subproc_main(), &stats),
                "stats: none of the sub-process");
  for (size_t bin = 2; bin < MI_BIN_HUGE; bin++) {
    MI_FUZZ_CHECK(mi_stats_get_bin_size(bin) > mi_stats_get_bin_size(bin - 1), "stats: bin %zu is not larger than the one before", bin);
  }
}

// What events have counted cannot be compared, as they were off at the start; what lives can.
static bool mi_fuzz_on_live(void* p, size_t usable, void* arg) {
  size_t* const told = arg;
  const mi_fuzz_block_t* const block = mi_fuzz_block_at(p, usable);
  MI_FUZZ_CHECK(block != NULL && block->p + block->usable == (uint8_t*)p + usable, "visit: %zu bytes at %p are told of and not live", usable, p);
  (*told)++;
  return true;
}

static void mi_fuzz_read_live(void) {
  size_t told = 0;
  MI_FUZZ_CHECK(mi_memory_visit_live_allocations(&mi_fuzz_on_live, &told) && told <= mi_fuzz_model.live_blocks,
                "visit: %zu blocks are told of, %zu are live", told, mi_fuzz_model.live_blocks);
  mi_memory_snapshot_t_decl(snapshot);
  MI_FUZZ_CHECK(mi_memory_snapshot(&snapshot), "mi_memory_snapshot: there is none");
}

void mi_fuzz_read(const mi_fuzz_op_t* op) {
  const uint8_t index = mi_fuzz_pick_heap(op->slot);
  mi_fuzz_model.doing = "read";
  switch (op->form % 8) {
    case 0: mi_fuzz_read_heaps(); break;
    case 1: mi_fuzz_read_arenas(); break;
    case 2: mi_fuzz_read_process(); break;
    case 3: mi_fuzz_read_texts(mi_fuzz_heap(index), op->more); break;
    case 4: mi_fuzz_read_stats(index); break;
    case 5: mi_fuzz_read_live(); break;
    case 6: mi_fuzz_check_thread_visits(index); break;
    default: {
      const mi_option_t option = (mi_option_t)(op->n % _mi_option_last);
      const long value = mi_option_get(option);
      MI_FUZZ_CHECK(mi_option_is_enabled(option) == (value != 0), "option %d: it is %ld", (int)option, value);
      const long clamped = mi_option_get_clamp(option, 10, 20);
      MI_FUZZ_CHECK(clamped == (value < 10 ? 10 : value > 20 ? 20
                                                             : value),
                    "option %d: %ld is made %ld between 10 and 20", (int)option, value, clamped);
      break;
    }
  }
}

// The profiler

typedef struct mi_fuzz_sum_s {
  size_t objects;
  size_t bytes;
} mi_fuzz_sum_t;

static bool mi_fuzz_on_stack(const mi_prof_sample_info_t* info, void* arg) {
  mi_fuzz_sum_t* const sum = arg;
  sum->objects += info->live_objects;
  sum->bytes += info->live_bytes;
  MI_FUZZ_CHECK(info->depth == 0 || info->stack != NULL, "profile: a stack of %zu calls is not there", info->depth);
  return true;
}

static void mi_fuzz_on_dump(void* arg, const char* bytes, size_t size) {
  size_t* const length = arg;
  MI_FUZZ_CHECK(bytes != NULL && size > 0, "profile: a piece of no bytes is written");
  *length += size;
}

static void mi_fuzz_profile_read(void) {
  mi_prof_stats_t_decl(stats);
  mi_fuzz_sum_t sum = {0};
  MI_FUZZ_CHECK(mi_prof_stats_get(&stats) && stats.enabled, "profile: it runs and is not told of");
  MI_FUZZ_CHECK(mi_prof_visit(&mi_fuzz_on_stack, &sum), "profile: the visit did not end well");
  MI_FUZZ_CHECK(sum.objects == stats.live_samples && sum.bytes == stats.live_bytes, "profile: stacks have %zu blocks and %zu bytes, it is %zu and %zu",
                sum.objects, sum.bytes, stats.live_samples, stats.live_bytes);
  MI_FUZZ_CHECK(stats.live_samples <= mi_fuzz_model.live_blocks, "profile: %zu blocks were sampled of %zu", stats.live_samples,
                mi_fuzz_model.live_blocks);
}

void mi_fuzz_profile(const mi_fuzz_op_t* op) {
  static const size_t rates[] = {1, 100, 5000, 100000};
  mi_fuzz_model.doing = "profile";
  size_t length = 0;
  if (!mi_prof_is_enabled()) {
    MI_FUZZ_CHECK(!mi_prof_visit(&mi_fuzz_on_stack, &length) && mi_prof_snapshot_new() == NULL, "profile: there is one that does not run");
    MI_FUZZ_CHECK(mi_prof_start_seeded(rates[op->more % 4], op->n), "profile: it does not start");
    return;
  }
  switch (op->form % 8) {
    case 0: mi_prof_stop(); break;
    case 1: mi_prof_reset(); break;
    case 2: MI_FUZZ_CHECK(mi_prof_dump_writer(&mi_fuzz_on_dump, &length) && length > 0, "profile: no text is written"); break;
    case 3: MI_FUZZ_CHECK(mi_prof_dump_proto_writer(&mi_fuzz_on_dump, &length) && length > 0, "profile: no dump is written"); break;
    default: mi_fuzz_profile_read(); break;
  }
}

// Switches

static void mi_fuzz_on_event(const mi_memory_change_t* change, void* arg) {
  (void)arg;
  MI_FUZZ_CHECK(change->kind < MI_MEMORY_CHANGE_COUNT, "event: it is of no kind");
  MI_FUZZ_CHECK(change->kind != MI_MEMORY_ALLOCATE || change->delta_bytes >= (int64_t)change->request_size,
                "event: %lld bytes were allocated for a request of %llu", (long long)change->delta_bytes, (unsigned long long)change->request_size);
  MI_FUZZ_CHECK(change->kind != MI_MEMORY_FREE || change->delta_bytes <= 0, "event: a free added %lld bytes", (long long)change->delta_bytes);
}

void mi_fuzz_switch(const mi_fuzz_op_t* op) {
  const uint8_t index = mi_fuzz_pick_heap(op->slot);
  mi_heap_t* const heap = mi_fuzz_heap(index);
  const bool late = mi_fuzz_model.late[mi_fuzz_model.actor];
  mi_fuzz_model.doing = "switch";
  switch (op->form % 8) {
    case 0: {
      const mi_memory_callbacks_t callbacks = {.handlers = {&mi_fuzz_on_event, &mi_fuzz_on_event, &mi_fuzz_on_event}};
      MI_FUZZ_CHECK(mi_memory_set_callbacks((op->more & 1) != 0 ? &callbacks : NULL), "events: no function is taken");
      const bool on = (op->more & 2) != 0;
      MI_FUZZ_CHECK(mi_memory_tracking_set_enabled(on) && mi_memory_tracking_is_enabled() == on, "events: on is not %d", on);
      break;
    }
    case 1: mi_heap_guarded_set_sample_rate(heap, op->n % 5, op->more); break;
    case 2: mi_heap_guarded_set_size_bound(heap, op->more, op->n % 100000); break;
    case 3:
      if (!late) {
        mi_theap_guarded_set_sample_rate(mi_fuzz_theap(index), op->n % 5, op->more);
      }
      break;
    case 4: mi_heap_set_numa_affinity(heap, op->n % 3 == 0 ? -1 : 0); break;
    case 5: mi_arenas_purge(); break;
    case 6:
      if (!late) {
        mi_theap_stats_merge_to_heap(mi_fuzz_theap(index));
      }
      break;
    default: mi_thread_set_in_threadpool(); break;
  }
}

void mi_fuzz_modes_end(void) {
  mi_prof_stop();
  (void)mi_memory_tracking_set_enabled(false);
  (void)mi_memory_set_callbacks(NULL);
  mi_heap_guarded_set_sample_rate(NULL, (size_t)mi_option_get(mi_option_guarded_sample_rate), 0);
  mi_heap_guarded_set_size_bound(NULL, 0, (size_t)mi_option_get(mi_option_guarded_max));
}

// Sub-processes

enum { MI_FUZZ_SUBPROCESS_BLOCKS = 24 };

void mi_fuzz_subprocess(const mi_fuzz_op_t* op) {
  // The first thread is of the main one for good, and a thread with another default heap would lose it.
  if (mi_fuzz_model.actor == 0 || mi_fuzz_model.late[mi_fuzz_model.actor] || mi_fuzz_default_heap() != 0) {
    return;
  }
  mi_fuzz_model.doing = "sub-process";
  const mi_subproc_id_t before = mi_subproc_current();
  const mi_subproc_id_t own = mi_subproc_new();
  mi_subproc_add_current_thread(own);
  MI_FUZZ_CHECK(mi_heap_main() != mi_fuzz_heap(0) && mi_heap_get_default() == mi_heap_main(), "sub-process: its main heap is another's");
  const size_t count = 1 + op->more % MI_FUZZ_SUBPROCESS_BLOCKS;
  uint8_t* made[MI_FUZZ_SUBPROCESS_BLOCKS];
  size_t sizes[MI_FUZZ_SUBPROCESS_BLOCKS];
  uint64_t state = op->n;
  for (size_t i = 0; i < count; i++) {
    sizes[i] = 1 + mi_fuzz_random(&state) % ((op->form & 1) != 0 ? 200000 : 600);
    made[i] = mi_zalloc(sizes[i]);
    MI_FUZZ_CHECK(made[i] != NULL && mi_heap_of(made[i]) == mi_heap_main(), "sub-process: a block is not of its main heap");
    MI_FUZZ_CHECK(mi_fuzz_block_at(made[i], sizes[i]) == NULL, "sub-process: a block meets one of another");
    for (size_t j = 0; j < sizes[i]; j += 61) {
      MI_FUZZ_CHECK(made[i][j] == 0, "sub-process: zero: byte %zu of %zu is 0x%02x", j, sizes[i], made[i][j]);
    }
    memset(made[i], (int)(i + 1), sizes[i]);
  }
  for (size_t i = 0; i < count; i++) {
    MI_FUZZ_CHECK(made[i][0] == (uint8_t)(i + 1) && made[i][sizes[i] - 1] == (uint8_t)(i + 1), "sub-process: content: block %zu has changed", i);
    if ((op->form & 2) == 0 || i % 2 == 0) {
      mi_free(made[i]);
    }
  }
  mi_subproc_add_current_thread(before);
  MI_FUZZ_CHECK(mi_heap_main() == mi_fuzz_heap(0), "sub-process: the main heap is not the one before");
  // Blocks that it still has end with it.
  mi_subproc_destroy(own);
}
