"""mi_clang_library: the shared library of a variant, compiled by clang whatever the toolchain's compiler is."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//policy:variants.bzl", "SOVERSION")
load("//policy/build:copts.bzl", "SHARED_LINKOPTS", "SHARED_STRICT_LINKOPTS")
load("//policy/build:layer.bzl", "layer_target")
load("//policy/build:variant.bzl", "PARTS")

_UnitsInfo = provider(
    doc = "The units of a library and of all that it depends on.",
    fields = {"units": "depset of structs: source, copts, search (folders), headers (depset)"},
)

def _units_impl(target, ctx):
    below = [dep[_UnitsInfo].units for dep in getattr(ctx.rule.attr, "deps", []) if _UnitsInfo in dep]
    units = []
    if ctx.rule.kind == "cc_library":
        compilation = target[CcInfo].compilation_context
        search = ["-iquote" + d for d in compilation.quote_includes.to_list()] + ["-I" + d for d in compilation.includes.to_list()]
        units = [
            struct(source = f, copts = tuple(ctx.rule.attr.copts), search = tuple(search), headers = compilation.headers)
            for src in ctx.rule.attr.srcs
            for f in src.files.to_list()
            if f.extension == "c"
        ]
    return [_UnitsInfo(units = depset(units, transitive = below))]

_units = aspect(
    implementation = _units_impl,
    attr_aspects = ["deps"],
    doc = "Collects what the C rules compile, with the flags that the project gives; those of the toolchain are gcc's business.",
)

def _clang(ctx, arguments, inputs, output, mnemonic, message):
    # The one of Debian's package clang, not the newest: what the oldest compiler that is promised makes is to hold.
    ctx.actions.run_shell(
        command = 'exec clang "$@"',
        arguments = [arguments],
        inputs = inputs,
        outputs = [output],
        use_default_shell_env = True,
        mnemonic = mnemonic,
        progress_message = message,
    )

def _clang_library_impl(ctx):
    objects = []
    units = depset(transitive = [dep[_UnitsInfo].units for dep in ctx.attr.deps])
    for unit in units.to_list():
        object = ctx.actions.declare_file("_clang/%s/%s.o" % (ctx.label.name, unit.source.path))
        compile = ctx.actions.args()
        compile.add_all(unit.copts)
        compile.add_all(unit.search)
        compile.add("-c", unit.source)
        compile.add("-o", object)
        _clang(ctx, compile, depset([unit.source], transitive = [unit.headers]), object, "MiClangCompile", "Compiling %s by clang" % unit.source.path)
        objects.append(object)

    library = ctx.actions.declare_file("_clang/%s/lib%s.so.%s" % (ctx.label.name, ctx.attr.stem, SOVERSION))
    link = ctx.actions.args()
    link.add("-shared")
    link.add("-o", library)
    link.add("-Wl,-soname," + library.basename)
    link.add(ctx.file.exports, format = "-Wl,--version-script=%s")
    link.add_all(objects)
    link.add_all(ctx.attr.wrap, format_each = "-Wl,--wrap=%s")
    link.add_all(SHARED_LINKOPTS + SHARED_STRICT_LINKOPTS)
    _clang(ctx, link, objects + [ctx.file.exports], library, "MiClangLink", "Linking %s by clang" % library.basename)
    return [DefaultInfo(files = depset([library]), runfiles = ctx.runfiles(files = [library]))]

_clang_library = rule(
    implementation = _clang_library_impl,
    attrs = {
        "deps": attr.label_list(aspects = [_units], providers = [CcInfo]),
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
