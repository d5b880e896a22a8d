"""`sh_binary`, loaded by name as later versions of Bazel require."""

sh_binary = native.sh_binary
