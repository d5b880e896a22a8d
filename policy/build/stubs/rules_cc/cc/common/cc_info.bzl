"""`CcInfo`, loaded by name as later versions of Bazel require."""

load(":natives.bzl", "NATIVE_CC_INFO")

CcInfo = NATIVE_CC_INFO
