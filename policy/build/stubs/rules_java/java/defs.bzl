"""The Java rules that Bazel before version 7 has built in; only Bazel's own packages load them."""

java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
