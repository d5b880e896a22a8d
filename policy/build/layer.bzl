"""mi_layer: one folder of the allocator as a library of each variant."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//policy:variants.bzl", "ALL", "variant")
load("//policy/build:copts.bzl", "CALLED_COPTS", "CALLED_LAYERS", "LIBRARY_COPTS", "PROFILE_COPTS")
load("//policy/build:layers.bzl", "layer_folder", "layer_rank")

def layer_target(layer, short):
    """The label of a layer in one variant, named by the variant's short name."""
    return "//%s:%s_%s" % (layer_folder(layer), layer, short)

def _checked(layer, deps):
    for dep in deps:
        if layer_rank(dep) >= layer_rank(layer):
            fail("%s may not use %s: the layer order of policy/build/layers.bzl lets a layer use only those before it" % (layer, dep))
    return deps

def _library(name, v, layer, srcs, hdrs, deps, extra_deps, copts, textual_hdrs):
    cc_library(
        name = "%s_%s" % (name, v.short),
        srcs = srcs,
        hdrs = hdrs,
        textual_hdrs = textual_hdrs,
        copts = LIBRARY_COPTS + PROFILE_COPTS.get(v.profile, []) + (CALLED_COPTS.get(v.profile, []) if layer in CALLED_LAYERS else []) + copts + v.copts,
        linkstatic = True,
        tags = v.tags,
        visibility = ["//visibility:public"],
        deps = [layer_target(d, v.short) for d in deps] + extra_deps + [
            "//include:headers",
            "//policy:defs",
            "//policy:profile_" + v.profile,
        ],
    )

def mi_layer(name, srcs = None, hdrs = None, deps = [], exclude = [], copts = []):
    """One library of each variant: `:<name>_<variant>`.

    Args:
      name: the layer, a name of policy/build/layers.bzl; its package must be the layer's folder
      srcs: its units; all .c files of the package where not said
      hdrs: its headers; all .h files of the package where not said
      deps: names of layers before it
      exclude: patterns left out of the default srcs
      copts: more flags, for what cannot be said in the code
    """
    if native.package_name() != layer_folder(name):
        fail("layer %s belongs in %s, not in %s" % (name, layer_folder(name), native.package_name()))
    _checked(name, deps)
    units = native.glob(["**/*.c"], exclude = exclude, allow_empty = True) if srcs == None else srcs
    headers = native.glob(["**/*.h"], allow_empty = True) if hdrs == None else hdrs
    textual = native.glob(["**/*.def", "**/*.inc"], allow_empty = True)
    for v in ALL:
        _library(name, v, name, units, headers, deps, [], copts, textual)

    # For fuzz/, which compiles them with flags of its own.
    native.filegroup(
        name = name + "_headers",
        srcs = headers + textual,
        visibility = ["//fuzz:__subpackages__"],
    )
    native.filegroup(
        name = name + "_sources",
        srcs = units + headers + textual,
        visibility = ["//fuzz:__subpackages__"],
    )

def mi_layer_part(name, layer, srcs, deps = [], copts = [], hdrs = [], variants = ALL):
    """Units of a layer's folder that not every user of the layer wants linked: `:<name>_<variant>`, on top of the layer itself.

    Args:
      name: the part
      layer: the layer it belongs to
      srcs: its units
      deps: names of layers before the layer
      copts: more flags
      hdrs: what its units include of their own
      variants: rows of policy/variants.bzl
    """
    _checked(layer, deps)
    for v in variants:
        _library(name, v, layer, srcs, [], deps, [":%s_%s" % (layer, v.short)], copts, hdrs)
