"""A folder of headers that is searched by `-I`, so that its headers get the same warnings as the rest."""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _impl(ctx):
    parts = [p for p in [ctx.label.workspace_root, ctx.label.package, ctx.attr.dir] if p]
    return [
        DefaultInfo(files = depset(ctx.files.hdrs)),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset(ctx.files.hdrs),
            includes = depset(["/".join(parts)]),
        )),
    ]

mi_include_dir = rule(
    implementation = _impl,
    attrs = {
        "dir": attr.string(doc = "the folder, below the package"),
        "hdrs": attr.label_list(allow_files = [".h"]),
    },
    provides = [CcInfo],
    doc = "Headers that are included by their name alone.",
)
