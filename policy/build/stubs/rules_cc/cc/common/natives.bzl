"""Bazel's built-in names under others, because a file cannot export a built-in name that it also reads."""

NATIVE_CC_COMMON = cc_common
NATIVE_CC_INFO = CcInfo
