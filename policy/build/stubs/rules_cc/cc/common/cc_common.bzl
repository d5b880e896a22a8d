"""`cc_common`, loaded by name as later versions of Bazel require."""

load(":natives.bzl", "NATIVE_CC_COMMON")

cc_common = NATIVE_CC_COMMON
