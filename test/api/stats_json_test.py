# Owns: that the statistics are JSON with the members that programs look for, and agree with what this program did.
# May include: the Python library.
# Called by: the test stats_json of each variant: stats_json_test.py <library.so>
# Invariants: the library serves only the calls that are made here; Python's own memory is the C library's.
import ctypes
import json
import os
import sys

# A guarded block is one by itself, whatever its size.
os.environ["MIMALLOC_GUARDED_SAMPLE_RATE"] = "0"

COUNTS = ("pages reserved committed page_committed pages_abandoned threads malloc_normal malloc_huge malloc_requested segments "
          "segments_abandoned segments_cache heaps theaps").split()
COUNTERS = ("reset purged mmap_calls commit_calls reset_calls purge_calls arena_count malloc_normal_count malloc_huge_count "
            "malloc_guarded_count arena_rollback_count arena_purges pages_extended pages_retire page_searches page_searches_count "
            "pages_reclaim_on_alloc pages_reclaim_on_free pages_reabandon_full pages_unabandon_busy_wait heaps_delete_wait").split()
PROCESS = "elapsed_msecs user_msecs system_msecs page_faults rss_current rss_peak commit_current commit_peak".split()
COUNT = ["total", "peak", "current"]
BINS = 74
failures = []


def check(ok, text):
    if not ok:
        failures.append(text)


def whole(name, value):
    check(type(value) is int and value >= 0, "%s is %r" % (name, value))


def count(name, value, more=()):
    check(list(value) == COUNT + list(more), "%s has %s" % (name, list(value)))
    for member in COUNT:
        whole("%s.%s" % (name, member), value[member])
    check(value["current"] <= value["peak"] <= value["total"], "%s is %s" % (name, value))


def strict_object(pairs):
    names = [name for name, _ in pairs]
    check(len(names) == len(set(names)), "a member twice: %s" % names)
    return dict(pairs)


def parse(text):
    stats = json.loads(text, object_pairs_hook=strict_object)
    expected = ["stat_version", "mimalloc_version", "process"] + COUNTS + COUNTERS + ["malloc_bins", "page_bins", "chunk_bins"]
    check(sorted(stats) == sorted(expected), "members that differ: %s" % sorted(set(stats) ^ set(expected)))
    check(list(stats)[:3] == expected[:3] and list(stats)[-3:] == expected[-3:], "the order of members")
    check(stats["stat_version"] == 5 and stats["mimalloc_version"] >= 30403, "versions %(stat_version)s %(mimalloc_version)s" % stats)
    check(list(stats["process"]) == PROCESS, "process has %s" % list(stats["process"]))
    for name, value in stats["process"].items():
        whole("process." + name, value)
    for name in COUNTS:
        count(name, stats[name])
    for name in COUNTERS:
        whole(name, stats[name])
    sizes = []
    for name in ("malloc_bins", "page_bins"):
        check(len(stats[name]) == BINS, "%s has %d elements" % (name, len(stats[name])))
        for i, value in enumerate(stats[name]):
            count("%s[%d]" % (name, i), value, ["block_size", "page_size"])
        sizes.append([(b["block_size"], b["page_size"]) for b in stats[name]])
    check(sizes[0] == sizes[1], "bins of blocks and of pages differ in their sizes")
    check([c["bin"] for c in stats["chunk_bins"]] == ["S", "X", "M", "L", "H", " "], "chunk_bins: %s" % stats["chunk_bins"])
    for value in stats["chunk_bins"]:
        count("chunk_bins", value, ["bin"])
    return stats


def main():
    lib = ctypes.CDLL(sys.argv[1])
    for name in ("mi_malloc", "mi_heap_new", "mi_heap_malloc"):
        getattr(lib, name).restype = ctypes.c_void_p
    for name in ("mi_stats_get_json", "mi_heap_stats_get_json"):
        getattr(lib, name).restype = ctypes.c_void_p
    lib.mi_stats_get_bin_size.restype = ctypes.c_size_t

    def read(heap=None):
        p = lib.mi_heap_stats_get_json(ctypes.c_void_p(heap), ctypes.c_size_t(0), None) if heap else lib.mi_stats_get_json(ctypes.c_size_t(0), None)
        text = ctypes.string_at(p).decode("ascii")
        lib.mi_free(ctypes.c_void_p(p))
        return parse(text), text

    before, _ = read()
    blocks = [lib.mi_malloc(ctypes.c_size_t(size)) for size in [100] * 1000 + [30000] * 20 + [3 << 20]]
    after, text = read()
    bin_of = next(i for i in range(1, BINS) if lib.mi_stats_get_bin_size(ctypes.c_size_t(i)) >= 116)
    grown = sum(after["malloc_bins"][i]["current"] - before["malloc_bins"][i]["current"] for i in range(bin_of + 1))
    check(grown >= 1000, "%d blocks more, not 1000" % grown)
    check(after["malloc_bins"][73]["current"] == before["malloc_bins"][73]["current"] + 1, "the large block")
    check(after["malloc_huge"]["current"] >= 3 << 20, "its size: %s" % after["malloc_huge"])
    check([b["block_size"] for b in after["malloc_bins"]] == [lib.mi_stats_get_bin_size(ctypes.c_size_t(i)) for i in range(BINS)], "block sizes")
    for block in blocks:
        lib.mi_free(ctypes.c_void_p(block))
    end, _ = read()
    check(end["malloc_huge"]["current"] == before["malloc_huge"]["current"], "large blocks after the frees")

    heap = lib.mi_heap_new()
    lib.mi_heap_malloc(ctypes.c_void_p(heap), ctypes.c_size_t(50))
    of_heap, _ = read(heap)
    check(of_heap["malloc_normal_count"] == 1 and of_heap["reserved"]["total"] == 0, "of a heap: %s" % of_heap["malloc_normal_count"])
    lib.mi_heap_destroy(ctypes.c_void_p(heap))

    # Buffers: what fits is whole, what does not is nothing.
    buf = ctypes.create_string_buffer(1 << 16)
    check(lib.mi_stats_get_json(ctypes.c_size_t(len(buf)), buf) == ctypes.addressof(buf), "a large buffer")
    parse(buf.value.decode("ascii"))
    for size in (0, 1, 2, 100, len(text) // 2):
        check(lib.mi_stats_get_json(ctypes.c_size_t(size), buf) is None, "a buffer of %d bytes" % size)

    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
