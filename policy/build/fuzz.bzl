"""Macros for fuzz targets: the campaign, the smoke run and the replay of each, and the allocator as libFuzzer needs it.

The fuzzers are compiled by clang whatever the compiler of the build is. Where no clang with libFuzzer is installed they are scripts that say
so and end with 77, which counts as skipped; replays do without.
"""

load("@rules_shell//shell:sh_binary.bzl", "sh_binary")
load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//policy:variants.bzl", "variant")
load("//policy/build:test.bzl", "mi_unit_test")

_LAYERS = ["base", "prim", "track", "sys", "region", "guarded", "profile", "heap", "alloc", "api"]

_ALLOCATOR = ["//src/%s:%s_sources" % (layer, layer) for layer in _LAYERS] + [
    "//hardening:hardening_sources",
    "//include:header_files",
    "//policy:policy_files",
]

# What is compared in the allocator tells nothing about a stream of operations, and takes most of the time.
_UNTRACED = "-fno-sanitize-coverage=trace-cmp"

# Sanitizers of the fuzzers. With `address` where it has something to see: the allocator's blocks are its own memory.
_SANITIZERS = {
    "address": "address,undefined",
    "undefined": "undefined",
}

def mi_fuzz_allocator(name, short, sanitizer = "undefined", flags = "", tags = []):
    """The allocator of a variant, without the names of the C library, compiled for libFuzzer: an archive.

    Args:
      name: of the archive
      short: the variant
      sanitizer: a key of _SANITIZERS
      flags: more for the compiler
      tags: of the target
    """
    native.genrule(
        name = name,
        srcs = _ALLOCATOR,
        outs = [name + ".a"],
        cmd = "$(location //fuzz:build.sh) allocator $@ %s %s '%s' $(SRCS)" % (variant(short).profile, _SANITIZERS[sanitizer], ((_UNTRACED + " ") if sanitizer == "undefined" else "") + flags),
        tools = ["//fuzz:build.sh"],
        message = "Compiling the allocator for libFuzzer:",
        tags = tags,
    )

def mi_fuzz_program(name, srcs, short, allocator, sanitizer = "undefined", wraps = [], planted = None, flags = "", tags = []):
    """A fuzzer: a source of fuzz/, what it shares, and an archive of mi_fuzz_allocator.

    Args:
      name: of the program
      srcs: its sources
      short: the variant
      allocator: the archive
      sanitizer: as the archive's
      wraps: functions that the sources have in the place of the allocator's
      planted: name of a fault of fuzz/planted_bug that it has
      flags: more for the compiler
      tags: of the target
    """
    headers = ["//src/%s:%s_headers" % (layer, layer) for layer in _LAYERS] + [
        "//hardening:hardening_headers",
        "//include:header_files",
        "//policy:policy_files",
    ]
    more = ([flags] if flags else []) + ([_UNTRACED] if sanitizer == "undefined" else []) + ["-Wl,--wrap=" + w for w in wraps] + ["-lm"]
    faulty = []
    plant = ""
    if planted:
        # Found before the right one, as a header and as a unit.
        faulty = _ALLOCATOR + ["//fuzz/planted_bug:faults.txt"]
        plant = "planted=$$($(location //fuzz/planted_bug:plant.py) %s $(location //fuzz/planted_bug:faults.txt) $@.planted); " % planted
        more = ["-I$@.planted"] + more
    native.genrule(
        name = name,
        srcs = depset(srcs + [allocator] + headers + faulty).to_list(),
        outs = [name + ".fuzzer"],
        cmd = plant + '$(location //fuzz:build.sh) fuzzer $@ %s %s "%s" $(location %s) %s %s' % (
            variant(short).profile,
            _SANITIZERS[sanitizer],
            " ".join(more),
            allocator,
            "$$planted" if planted else "",
            " ".join(["$(locations %s)" % s for s in srcs]),
        ),
        executable = True,
        tools = ["//fuzz:build.sh"] + (["//fuzz/planted_bug:plant.py"] if planted else []),
        message = "Linking a fuzzer:",
        tags = tags,
    )

def mi_planted_bug(name, target, short, srcs, runs, wraps = [], sanitizer = "undefined", max_len = 4096):
    """A test that a campaign finds a fault that was put into the allocator: `<name>_is_found`.

    Args:
      name: of the fault, in fuzz/planted_bug/faults.txt
      target: the fuzz target that finds it
      short: the variant
      srcs: of the target
      runs: so many inputs at most
      wraps: as of the target
      sanitizer: as of the target
      max_len: as of the target
    """
    mi_fuzz_program(
        name = name + "_program",
        srcs = srcs,
        short = short,
        allocator = "//fuzz:allocator_%s_%s" % (short, sanitizer),
        sanitizer = sanitizer,
        wraps = wraps,
        planted = name,
    )
    sh_test(
        name = name + "_is_found",
        size = "medium",
        srcs = ["//fuzz/planted_bug:is_found.sh"],
        args = ["$(rootpath :%s_program)" % name, str(runs), str(max_len), "fuzz/corpus/" + target],
        data = [":%s_program" % name, "//fuzz:corpus"],
        tags = ["no_sanitizer", "fuzz"],
    )

def mi_fuzz_target(name, variants, lib, dictionary = None, wraps = [], sanitizer = "undefined", max_len = 4096, extra = []):
    """A target under some variants, `<name>_<variant>` to run, `<name>_smoke_<variant>` and `<name>_replay_<variant>` to test.

    Args:
      name: also its source, `<name>.c`, and the folders of its inputs below corpus/ and crashes/
      variants: short names; the first is what `<name>` alone runs
      lib: labels of the sources that targets share
      dictionary: a file of libFuzzer's
      wraps: functions that it has in the place of the allocator's
      sanitizer: of the fuzzer
      max_len: bytes of the longest input
      extra: more arguments of the fuzzer
    """
    sources = [name + ".c"] + lib
    inputs = native.glob(["corpus/%s/**" % name, "crashes/%s/**" % name])
    for short in variants:
        program = "%s_%s_program" % (name, short)
        mi_fuzz_program(
            name = program,
            srcs = sources,
            short = short,
            allocator = ":allocator_%s_%s" % (short, sanitizer),
            sanitizer = sanitizer,
            wraps = wraps,
        )
        data = [program] + inputs + ([dictionary] if dictionary else [])
        args = ["$(rootpath %s)" % program, name, str(max_len)] + (["-dict=$(rootpath %s)" % dictionary] if dictionary else []) + extra
        sh_binary(
            name = "%s_%s" % (name, short),
            srcs = ["//fuzz:run.sh"],
            args = args,
            data = data,
        )
        sh_test(
            name = "%s_smoke_%s" % (name, short),
            size = "small",
            srcs = ["//fuzz:run.sh"],
            args = args + ["--smoke"],
            data = data,
            # The fuzzers bring their own sanitizer.
            tags = ["no_sanitizer", "fuzz"],
        )
    native.alias(
        name = name,
        actual = ":%s_%s" % (name, variants[0]),
    )
    mi_unit_test(
        name = name + "_replay",
        srcs = sources + ["lib/replay.c"],
        args = ["--runs", "100"] + ["fuzz/%s/%s" % (f, name) for f in ["corpus", "crashes"] if native.glob(["%s/%s/**" % (f, name)])],
        data = inputs,
        deps = ["alloc", "api", "base", "guarded", "hardening", "heap", "prim", "profile", "region", "sys"],
        linkopts = ["-Wl,--wrap=" + w for w in wraps] + ["-lm"],
        variants = variants,
    )
