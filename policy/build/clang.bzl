"""What clang compiles whatever the toolchain's compiler is: the shared library of a variant, and tests of what only clang checks."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//policy:variants.bzl", "SOVERSION")
load("//policy/build:copts.bzl", "SHARED_LINKOPTS", "SHARED_STRICT_LINKOPTS")
load("//policy/build:layer.bzl", "layer_target")
load("//policy/build:variant.bzl", "PARTS")

_ObjectsInfo = provider(
    doc = "What clang made of a library and of all that it depends on.",
    fields = {
        "objects": "depset of objects",
        "archives": "depset of archives, one a library",
    },
)

def _clang(ctx, arguments, inputs, output, mnemonic, message):
    # The one of Debian's package clang, not the newest: what the oldest compiler that is promised makes is to hold. Another one
    # is named by --action_env=MI_CLANG=clang-19.
    ctx.actions.run_shell(
        command = 'exec "${MI_CLANG:-clang}" "$@"',
        arguments = [arguments],
        inputs = inputs,
        outputs = [output],
        use_default_shell_env = True,
        mnemonic = mnemonic,
        progress_message = message,
    )

def _compile(ctx, source, copts, compilation, beside = []):
    """The object of a unit; `compilation`: the contexts of what it may include, `beside`: headers of its own."""
    object = ctx.actions.declare_file("_clang/%s/%s.o" % (ctx.label.name, source.path))
    compile = ctx.actions.args()
    compile.add_all(copts)
    for context in compilation:
        compile.add_all(context.quote_includes, before_each = "-iquote")
        compile.add_all(context.includes, before_each = "-I")
    compile.add("-c", source)
    compile.add("-o", object)
    headers = [context.headers for context in compilation]
    _clang(ctx, compile, depset([source] + beside, transitive = headers), object, "MiClangCompile", "Compiling %s by clang" % source.path)
    return object

def _objects_impl(target, ctx):
    below = [dep[_ObjectsInfo] for dep in getattr(ctx.rule.attr, "deps", []) if _ObjectsInfo in dep]
    objects = []
    archives = []
    if ctx.rule.kind == "cc_library":
        objects = [
            _compile(ctx, f, ctx.rule.attr.copts, [target[CcInfo].compilation_context])
            for src in ctx.rule.attr.srcs
            for f in src.files.to_list()
            if f.extension == "c"
        ]
    if objects:
        archive = ctx.actions.declare_file("_clang/%s/lib%s.a" % (ctx.label.name, ctx.label.name))
        words = ctx.actions.args()
        words.add("rcsD", archive)
        words.add_all(objects)
        ctx.actions.run_shell(
            command = 'exec ar "$@"',
            arguments = [words],
            inputs = objects,
            outputs = [archive],
            use_default_shell_env = True,
            mnemonic = "MiClangArchive",
        )
        archives = [archive]
    return [_ObjectsInfo(
        objects = depset(objects, transitive = [info.objects for info in below]),
        archives = depset(archives, transitive = [info.archives for info in below]),
    )]

_objects = aspect(
    implementation = _objects_impl,
    attr_aspects = ["deps"],
    doc = "Compiles what the C rules compile, with the flags that the project gives; those of the toolchain are gcc's business.",
)

def _clang_library_impl(ctx):
    objects = depset(transitive = [dep[_ObjectsInfo].objects for dep in ctx.attr.deps])

    library = ctx.actions.declare_file("_clang/%s/lib%s.so.%s" % (ctx.label.name, ctx.attr.stem, SOVERSION))
    link = ctx.actions.args()
    link.add("-shared")
    link.add("-o", library)
    link.add("-Wl,-soname," + library.basename)
    link.add(ctx.file.exports, format = "-Wl,--version-script=%s")
    link.add_all(objects)
    link.add_all(ctx.attr.wrap, format_each = "-Wl,--wrap=%s")
    link.add_all(SHARED_LINKOPTS + SHARED_STRICT_LINKOPTS)
    _clang(ctx, link, depset([ctx.file.exports], transitive = [objects]), library, "MiClangLink", "Linking %s by clang" % library.basename)
    return [DefaultInfo(files = depset([library]), runfiles = ctx.runfiles(files = [library]))]

_clang_library = rule(
    implementation = _clang_library_impl,
    attrs = {
        "deps": attr.label_list(aspects = [_objects], providers = [CcInfo]),
        "exports": attr.label(allow_single_file = True, mandatory = True),
        "stem": attr.string(mandatory = True),
        "wrap": attr.string_list(),
    },
)

def mi_clang_library(name, v, **kwargs):
    """The shared library of a variant, by its row in policy/variants.bzl, for tests that preload it.

    Args:
      name: the target; its one file has the variant's SONAME
      v: the row
      **kwargs: handed on to the rule
    """
    _clang_library(
        name = name,
        exports = "//:%s_exports" % v.name,
        stem = v.stem,
        wrap = [w for part in v.parts for w in PARTS[part].wrap],
        deps = [
            layer_target("api", v.short),
            "//src/api:override_" + v.short,
        ] + [PARTS[part].library % v.short for part in v.parts],
        **kwargs
    )

def _clang_test_impl(ctx):
    compilation = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    own = [f for f in ctx.files.srcs if f.extension == "h"]
    objects = [_compile(ctx, f, ctx.attr.copts, compilation, own) for f in ctx.files.srcs if f.extension == "c"]
    archives = depset(transitive = [dep[_ObjectsInfo].archives for dep in ctx.attr.deps])
    program = ctx.actions.declare_file(ctx.label.name)
    link = ctx.actions.args()
    link.add("-o", program)
    link.add_all(objects)
    link.add("-Wl,--start-group")
    link.add_all(archives)
    link.add("-Wl,--end-group")
    link.add_all(ctx.attr.linkopts)
    _clang(ctx, link, depset(objects, transitive = [archives]), program, "MiClangLink", "Linking %s by clang" % ctx.label.name)
    return [
        DefaultInfo(executable = program, runfiles = ctx.runfiles(files = ctx.files.data)),
        testing.TestEnvironment(ctx.attr.env),
    ]

mi_clang_test = rule(
    implementation = _clang_test_impl,
    attrs = {
        "copts": attr.string_list(),
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(aspects = [_objects], providers = [CcInfo]),
        "env": attr.string_dict(),
        "linkopts": attr.string_list(),
        "srcs": attr.label_list(allow_files = [".c", ".h"]),
    },
    test = True,
    doc = "A test program in C, with all that it is linked with, by clang.",
)
