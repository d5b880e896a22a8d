"""A folder of headers that is searched by `-I`, so that its headers get the same warnings as the rest."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _impl(ctx):
    parts = [p for p in [ctx.label.workspace_root, ctx.label.package, ctx.attr.dir] if p]
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        includes = depset(["/".join(parts)]),
    ))]

_search_path = rule(
    implementation = _impl,
    attrs = {"dir": attr.string()},
    provides = [CcInfo],
    doc = "A folder for `-I`. The attribute of that name of the C rules would make it a system folder, where the compiler does not warn.",
)

def mi_include_dir(name, hdrs, dir = "", **kwargs):
    """Headers that are included by their name alone.

    Args:
      name: the library
      hdrs: the headers
      dir: their folder, below the package
      **kwargs: handed on to the library
    """
    _search_path(
        name = name + "_path",
        dir = dir,
    )
    cc_library(
        name = name,
        hdrs = hdrs,
        deps = [":%s_path" % name],
        **kwargs
    )
