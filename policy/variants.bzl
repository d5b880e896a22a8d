"""The variants. A variant is a folder of policy/profiles with a row here; every macro of policy/build makes its targets from this table.

    name      the target in the root package, and what `mi_*` macros call the variant
    short     suffix of the per-variant targets of layers and tests (`//src/base:base_secure`), and the word that test tables use
    stem      of the artifacts: lib<stem>.so.3, lib<stem>.a, <stem>.o
    profile   folder under policy/profiles
    shipped   whether it is built by `//...` and tested by every test; others are tagged manual
    copts, linkopts
              instrumentation only. What a variant does is never said here, but in its profile
    test_copts, compiler
              of instrumentation too: more for the programs of tests alone; and `clang` for what only that has, whatever the
              toolchain's compiler is
    tags      of all its targets
    parts     units that not every variant has, names of PARTS in policy/build/variant.bzl. They follow from the profile's
              constants, which the units assert and test/lint/profiles.py compares
"""

def _variant(name, short, stem, profile, shipped = True, copts = [], linkopts = [], test_copts = [], compiler = None, tags = [], parts = []):
    return struct(
        name = name,
        short = short,
        stem = stem,
        profile = profile,
        shipped = shipped,
        copts = copts,
        linkopts = linkopts,
        test_copts = test_copts,
        compiler = compiler,
        tags = tags if shipped else tags + ["manual"],
        parts = parts,
    )

# The interface version that the SONAME carries, and the file name's suffix below it.
SOVERSION = "3"
SOMINOR = "0"

VARIANTS = [
    _variant("mimalloc", "release", "mimalloc", "release"),
    _variant("mimalloc_secure", "secure", "mimalloc-secure", "secure", parts = ["copies", "signals"]),
    _variant("mimalloc_strict", "strict", "mimalloc-strict", "strict", parts = ["copies", "signals"]),
    _variant("mimalloc_guarded", "guarded", "mimalloc-guarded", "guarded", parts = ["signals"]),
    _variant("mimalloc_debug", "debug", "mimalloc-debug", "debug", parts = ["copies", "signals"]),
    # Tracked builds: a tool is told of every block (src/track). They are tested by test/track alone.
    _variant("mimalloc_asan", "asan", "mimalloc-asan", "asan", shipped = False, parts = ["order"]),
    # The gate of src/track/valgrind keeps Memcheck from reporting what the allocator's own functions do.
    _variant("mimalloc_valgrind", "valgrind", "mimalloc-valgrind", "valgrind", shipped = False, copts = ["-finstrument-functions"]),
    _variant("mimalloc_only_live_bits", "only_live_bits", "mimalloc-only-live-bits", "only_live_bits", shipped = False),
    _variant("mimalloc_only_encoded_lists", "only_encoded_lists", "mimalloc-only-encoded-lists", "only_encoded_lists", shipped = False),
    _variant("mimalloc_only_outline_lists", "only_outline_lists", "mimalloc-only-outline-lists", "only_outline_lists", shipped = False),
    _variant("mimalloc_only_random_order", "only_random_order", "mimalloc-only-random-order", "only_random_order", shipped = False),
    _variant("mimalloc_only_random_place", "only_random_place", "mimalloc-only-random-place", "only_random_place", shipped = False),
    _variant("mimalloc_only_sized_free", "only_sized_free", "mimalloc-only-sized-free", "only_sized_free", shipped = False),
    _variant("mimalloc_only_family", "only_family", "mimalloc-only-family", "only_family", shipped = False),
    _variant("mimalloc_only_checked_copies", "only_checked_copies", "mimalloc-only-checked-copies", "only_checked_copies", shipped = False, parts = ["copies"]),
    _variant("mimalloc_only_guard_pages", "only_guard_pages", "mimalloc-only-guard-pages", "only_guard_pages", shipped = False),
    _variant("mimalloc_only_random_large", "only_random_large", "mimalloc-only-random-large", "only_random_large", shipped = False),
    _variant("mimalloc_only_large_quarantine", "only_large_quarantine", "mimalloc-only-large-quarantine", "only_large_quarantine", shipped = False),
    _variant("mimalloc_only_padding", "only_padding", "mimalloc-only-padding", "only_padding", shipped = False),
    _variant("mimalloc_only_zero_on_free", "only_zero_on_free", "mimalloc-only-zero-on-free", "only_zero_on_free", shipped = False),
    _variant("mimalloc_only_fill", "only_fill", "mimalloc-only-fill", "only_fill", shipped = False),
    _variant("mimalloc_only_quarantine", "only_quarantine", "mimalloc-only-quarantine", "only_quarantine", shipped = False),
    _variant("mimalloc_only_guarded", "only_guarded", "mimalloc-only-guarded", "only_guarded", shipped = False, parts = ["signals"]),
    _variant("mimalloc_only_zero_size", "only_zero_size", "mimalloc-only-zero-size", "only_zero_size", shipped = False),
]

def _by_clang(profile, what, copts, test_copts = []):
    return _variant(
        "mimalloc_%s_clang_%s_check" % (profile, what),
        "%s_clang_%s" % (profile, what),
        "mimalloc-" + profile,
        profile,
        shipped = False,
        copts = copts + ["-O1"],
        linkopts = copts,
        test_copts = test_copts,
        compiler = "clang",
        tags = ["sanitized"],
    )

# Internals of a variant compiled with a sanitizer of the compiler. There is no library of these, only tests that are linked with them.
INSTRUMENTED = [
    _variant(
        "mimalloc_secure_tsan_check",
        "secure_tsan",
        "mimalloc-secure",
        "secure",
        shipped = False,
        # The warning says that fences are not modelled; a fence that matters shows as a report of the test.
        copts = ["-fsanitize=thread", "-Wno-unknown-warning-option", "-Wno-tsan", "-O1"],
        linkopts = ["-fsanitize=thread"],
        tags = ["sanitized"],
    ),
    _variant(
        "mimalloc_strict_tsan_check",
        "strict_tsan",
        "mimalloc-strict",
        "strict",
        shipped = False,
        copts = ["-fsanitize=thread", "-Wno-unknown-warning-option", "-Wno-tsan", "-O1"],
        linkopts = ["-fsanitize=thread"],
        tags = ["sanitized"],
    ),
    _variant(
        "mimalloc_secure_ubsan_check",
        "secure_ubsan",
        "mimalloc-secure",
        "secure",
        shipped = False,
        copts = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-O1"],
        linkopts = ["-fsanitize=undefined"],
        tags = ["sanitized"],
    ),
    _by_clang("secure", "tsan", ["-fsanitize=thread"]),
    # Unsigned numbers too: what wraps around on purpose is marked `mi_wraps` in the allocator. Tests wrap as they like.
    _by_clang("secure", "integer", ["-fsanitize=undefined,integer", "-fno-sanitize-recover=undefined,integer"], test_copts = ["-fno-sanitize=integer"]),
    _by_clang("strict", "integer", ["-fsanitize=undefined,integer", "-fno-sanitize-recover=undefined,integer"], test_copts = ["-fno-sanitize=integer"]),
    _by_clang("strict", "msan", ["-fsanitize=memory"]),
]

SHIPPED = [v for v in VARIANTS if v.shipped]

ALL = VARIANTS + INSTRUMENTED

def variant(short):
    """The row with this short name."""
    for v in ALL:
        if v.short == short:
            return v
    fail("no variant is called " + short)
