"""How a rule finds the C toolchain: the entry points of the published rules_cc, over what Bazel before version 7 has."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", _find_cpp_toolchain = "find_cpp_toolchain")

CC_TOOLCHAIN_TYPE = "@bazel_tools//tools/cpp:toolchain_type"

def find_cc_toolchain(ctx):
    return _find_cpp_toolchain(ctx)

def find_cpp_toolchain(ctx):
    return _find_cpp_toolchain(ctx)

def use_cc_toolchain():
    return [CC_TOOLCHAIN_TYPE]
