"""`sh_test`, loaded by name as later versions of Bazel require."""

sh_test = native.sh_test
