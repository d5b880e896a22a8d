"""Macros for tests. Each makes one test a variant, `<name>_<variant>`, and a suite `<name>` of them."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_test")
load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//policy:variants.bzl", "ALL", "SHIPPED", "variant")
load("//policy/build:clang.bzl", "mi_clang_test")
load("//policy/build:copts.bzl", "CXX_LINKOPTS", "CXX_TEST_COPTS", "TEST_COPTS")
load("//policy/build:layer.bzl", "layer_target")

# The short names of the shipped variants.
VARIANT_NAMES = [v.short for v in SHIPPED]

# What a unit test may include; what of it is linked is up to the test.
_INTERNALS = ["alloc", "base", "guarded", "hardening", "heap", "prim", "profile", "region", "sys"]

# For tests that call the mi_ names.
INTERNALS_WITH_API = _INTERNALS + ["api"]

def _is_cxx(srcs):
    return any([s.endswith(".cc") for s in srcs])

def _copts(srcs):
    return CXX_TEST_COPTS if _is_cxx(srcs) else TEST_COPTS

def _linkopts(srcs):
    return CXX_LINKOPTS if _is_cxx(srcs) else []

def _suite(name, tests, tags):
    native.test_suite(
        name = name,
        tests = [":" + t for t in tests],
        tags = [t for t in tags if t == "manual"],
    )

# Clang's sanitizers catch signals that tests wait for.
_SIGNALS = "handle_abort=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0"
_CLANG_ENV = {
    "MSAN_OPTIONS": _SIGNALS,
    "UBSAN_OPTIONS": _SIGNALS,
}

# What is sampled by chance would make tests of all else uncertain.
_UNSAMPLED = {"MIMALLOC_GUARDED_SAMPLE_RATE": "0"}

def mi_unit_test(name, srcs, deps = _INTERNALS, variants = VARIANT_NAMES, copts = [], linkopts = [], extra_deps = [], tags = [], size = "small", env = _UNSAMPLED, **kwargs):
    """A program that is linked with the internals of a variant, and not with its malloc.

    Args:
      name: of the suite
      srcs: .c or .cc files
      deps: names of the layers whose headers it includes; what those use comes along
      variants: short names of variants, instrumented ones too
      copts: more compiler flags
      linkopts: more linker flags
      extra_deps: labels of other libraries
      tags: of the tests
      size: of the tests
      env: environment of the tests
      **kwargs: handed on to the test rule
    """
    tests = []
    for short in variants:
        v = variant(short)
        test = "%s_%s" % (name, short)
        tests.append(test)
        common = dict(
            name = test,
            size = size,
            srcs = srcs,
            copts = _copts(srcs) + copts + v.copts + v.test_copts,
            env = dict(env, **_CLANG_ENV) if v.compiler else env,
            # A failed assertion of base is reported by sys, which the linker has passed by when it comes to base.
            linkopts = _linkopts(srcs) + ["-lpthread", "-Wl,-u,_mi_assert_fail"] + linkopts + v.linkopts,
            # A test of a check by the compiler is as much part of a plain run as any other.
            tags = tags + [t for t in v.tags if t != "manual"] + (["no_sanitizer"] if v.compiler else []),
            deps = ["//test/lib", "//include:headers", "//policy:defs", "//policy:profile_" + v.profile] +
                   [layer_target(d, short) for d in deps] + extra_deps,
        )
        common.update(kwargs)
        if v.compiler == "clang":
            mi_clang_test(**common)
        else:
            cc_test(linkstatic = True, **common)
    _suite(name, tests, tags)

def mi_unit_tests(special = {}, variants = VARIANT_NAMES, under = {}, not_under = {}, at_once = {}, **kwargs):
    """A unit test for each `*_test.c` and `*_test.cc` of the folder, and the suite `sanitized` of all that run under sanitizers.

    Args:
      special: arguments of mi_unit_test for files that need others, by file name without `.c`
      variants: short names, of files for which `special` has none
      under: short names of instrumented variants, by kind of sanitizer: every file is a test of them too
      not_under: the files that are none, with a reason, by kind
      at_once: the files that are in a plain run, by kind; others are <name>_more_<variant>, by hand
      **kwargs: arguments of all
    """
    found = native.glob(["*_test.c", "*_test.cc"], allow_empty = True)
    names = [f[:f.rindex(".")] for f in found]
    for table in [special] + not_under.values() + [{name: "" for name in kind} for kind in at_once.values()]:
        for name in table:
            if name not in names:
                fail("no file of the test " + name)
    sanitized = []
    for f, name in zip(found, names):
        args = dict(kwargs, variants = variants)
        args.update(special.get(name, {}))
        shorts = {
            now: [
                short
                for kind, instrumented in under.items()
                for short in instrumented
                if name not in not_under[kind] and (name in at_once[kind]) == now
            ]
            for now in [True, False]
        }
        sanitized += [":%s_%s" % (name, short) for short in shorts[True]] + [":%s_more_%s" % (name, short) for short in shorts[False]]
        mi_unit_test(name = name, srcs = [f], **dict(args, variants = args["variants"] + shorts[True]))
        if shorts[False]:
            mi_unit_test(name = name + "_more", srcs = [f], **dict(args, size = "large", variants = shorts[False], tags = args.get("tags", []) + ["manual"]))
    if sanitized:
        native.test_suite(name = "sanitized", tests = sanitized, tags = ["manual"])

def mi_api_test(name, srcs, variants = VARIANT_NAMES, copts = [], linkopts = [], deps = [], tags = [], size = "small", env = _UNSAMPLED, **kwargs):
    """A program that is linked with a variant, malloc included, as a user's program would be."""
    tests = []
    for short in variants:
        v = variant(short)
        test = "%s_%s" % (name, short)
        tests.append(test)
        cc_test(
            name = test,
            size = size,
            srcs = srcs,
            copts = _copts(srcs) + copts,
            env = env,
            linkopts = _linkopts(srcs) + linkopts,
            # A sanitizer brings a malloc of its own.
            tags = tags + ["no_sanitizer"],
            deps = ["//test/lib", "//:" + v.name] + deps,
            **kwargs
        )
    _suite(name, tests, tags)

def mi_api_tests(special = {}, **kwargs):
    """An API test for each `*_test.c` and `*_test.cc` of the folder; arguments as of mi_unit_tests."""
    found = native.glob(["*_test.c", "*_test.cc"], allow_empty = True)
    for f in found:
        name = f[:f.rindex(".")]
        args = dict(kwargs)
        args.update(special.get(name, {}))
        mi_api_test(name = name, srcs = [f], **args)

def mi_program(name, srcs, copts = [], linkopts = [], deps = [], tags = [], **kwargs):
    """A program that knows nothing of this allocator, for tests that preload it."""
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        copts = _copts(srcs) + copts,
        linkopts = _linkopts(srcs) + ["-lpthread", "-ldl"] + linkopts,
        tags = tags,
        deps = ["//test/lib"] + deps,
        **kwargs
    )

def mi_preload_test(name, srcs = [], program = None, args = [], variants = VARIANT_NAMES, data = [], tags = [], size = "small", copts = [], linkopts = [], deps = [], env = {}, **kwargs):
    """A program that is run with the shared library of each variant preloaded.

    Args:
      name: of the suite
      srcs: the program's files, where it is to be built
      program: label of a program that is there already
      args: its arguments
      variants: short names
      data: files it reads
      tags: of the tests
      size: of the tests
      copts: of the program
      linkopts: of the program
      deps: of the program
      env: environment of the test, seen by the program
      **kwargs: handed on to the test rule
    """
    if program == None:
        program = name + "_program"
        mi_program(name = program, srcs = srcs, copts = copts, linkopts = linkopts, deps = deps)
    tests = []
    for short in variants:
        library = "//:%s_soname" % variant(short).name
        test = "%s_%s" % (name, short)
        tests.append(test)
        sh_test(
            name = test,
            size = size,
            srcs = ["//policy/build:preload_test.sh"],
            args = ["$(rootpath %s)" % library, "$(rootpath %s)" % program] + args,
            data = [library, program, "//:" + variant(short).name] + data,
            env = env,
            tags = tags + ["preload"],
            **kwargs
        )
    _suite(name, tests, tags)

def mi_python_test(name, main, args = [], data = [], size = "small", **kwargs):
    """A test written in Python, run by the machine's python3."""
    sh_test(
        name = name,
        size = size,
        srcs = ["//policy/build:python_test.sh"],
        args = ["$(rootpath %s)" % main] + args,
        data = [main] + data,
        **kwargs
    )

# Rows have a time each; a machine may be so many times slower than one on which that is plenty.
_SLOW = "3"

def mi_rows_test(name, rows, programs, folder = None, library = "//:%s_soname", plugin = None, args = [], data = [], variants = VARIANT_NAMES + ["glibc"], tags = [], size = "medium", timeout = "long", **kwargs):
    """A table of rows for test/lib/run_rows.py, one test a variant.

    Args:
      name: of the suite
      rows: the table
      programs: labels of the programs that the rows name, all of one package
      folder: of the programs, relative to the repository; this package where not said
      library: label of the library under test, with %s for the name of the variant's target
      plugin: label of a shared object that holds the allocator (`{plugin}` of a row), with %s for the variant
      args: more arguments of the runner
      data: files that they name
      variants: short names, and `glibc` for the rows that run without a preload
      tags: of the tests
      size: of the tests
      timeout: of the tests
      **kwargs: handed on to the test rule
    """
    tests = []
    for short in variants:
        ours = short != "glibc"
        files = [rows, "//test/lib:exceptions.py"] + programs + data
        options = ["--rows", "$(rootpath %s)" % rows, "--bin", folder or native.package_name(), "--variant", short, "--slow", _SLOW] + args
        if ours:
            preloaded = library % variant(short).name
            files += [preloaded, "//:" + variant(short).name]
            options += ["--preload", "$(rootpath %s)" % preloaded]
            if plugin:
                holder = plugin % short
                files.append(holder)
                options += ["--plugin", "$(rootpath %s)" % holder]
        test = "%s_%s" % (name, short)
        tests.append(test)
        mi_python_test(
            name = test,
            size = size,
            timeout = timeout,
            main = "//test/lib:run_rows.py",
            args = options,
            data = files,
            tags = tags + ["preload"],
            **kwargs
        )
    _suite(name, tests, tags)

def mi_sampled_cases(name, programs, exceptions, rate, variants, args = [], tags = [], size = "medium", timeout = "long", **kwargs):
    """Test programs with one in `rate` allocations guarded, but for the cases of a table; one test a variant.

    Args:
      name: of the suite
      programs: names of the programs' targets in this package, without the variant
      exceptions: the table, for test/lib/exceptions.py
      rate: as text
      variants: short names
      args: more arguments of the runner
      tags: of the tests
      size: of the tests
      timeout: of the tests
      **kwargs: handed on to the test rule
    """
    for short in variants:
        files = [":%s_%s" % (program, short) for program in programs]
        mi_python_test(
            name = "%s_%s" % (name, short),
            size = size,
            timeout = timeout,
            main = "//test/lib:run_cases.py",
            args = ["--rate", rate, "--variant", short, "--exceptions", "$(rootpath %s)" % exceptions] + args + ["$(rootpath %s)" % f for f in files],
            data = [exceptions, "//test/lib:exceptions.py"] + files,
            tags = tags + ["no_sanitizer"],
            **kwargs
        )
    _suite(name, ["%s_%s" % (name, short) for short in variants], tags)
