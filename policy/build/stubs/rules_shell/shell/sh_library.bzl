"""`sh_library`, loaded by name as later versions of Bazel require."""

sh_library = native.sh_library
