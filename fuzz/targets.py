#!/usr/bin/env python3
# Owns: the table of fuzz targets, for programs that do without Bazel.
# May include: nothing but Python's own library.
# Called by: fuzz/campaign, fuzz/make, fuzz/coverage.py.
# Invariants: the table stands once, in targets.bzl, as a literal.
import ast
import pathlib


def read(folder=pathlib.Path(__file__).resolve().parent):
    """name -> row of targets.bzl"""
    for statement in ast.parse((folder / "targets.bzl").read_text()).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "FUZZ_TARGETS":
            return ast.literal_eval(statement.value)
    raise SystemExit("targets: targets.bzl has no FUZZ_TARGETS")


def options(folder, name):
    """What libFuzzer is told of a target; its own status for a crash is 77, which says that there is no engine."""
    row = read(folder)[name]
    dictionary = folder / "dict" / (name + ".dict")
    return ["-error_exitcode=1", "-max_len=%d" % row["max_len"], "-timeout=25", "-rss_limit_mb=4096", "-report_slow_units=60"] + (
        ["-dict=%s" % dictionary] if row["dictionary"] else [])


LAYERS = ("base", "prim", "sys", "region", "guarded", "profile", "heap", "alloc", "api")
# What defines names of the C library, and what is for other systems.
SKIPPED = ("src/api/override", "src/api/shared/", "src/prim/windows/", "src/prim/macos/", "src/prim/wasi/")


def allocator(root, row):
    """The units of the allocator that a target is linked with, without those of SKIPPED."""
    found = [str(p.relative_to(root)) for layer in row["layers"] or LAYERS for p in sorted((root / "src" / layer).rglob("*.c"))]
    return [s for s in found if not s.startswith(SKIPPED)]


def units(root, name):
    """The units of a target, without what runs it."""
    shared = sorted((root / "fuzz" / "lib").glob("*.c")) if read(root / "fuzz")[name]["streams"] else [root / "fuzz" / "lib" / "fail.c"]
    return ["fuzz/%s.c" % name] + [str(p.relative_to(root)) for p in shared if p.name not in ("replay.c", "afl.c")]


def link_flags(row):
    return ["-Wl,--wrap=" + w for w in row["wraps"]] + ["-lm"]
