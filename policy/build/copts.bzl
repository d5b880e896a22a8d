"""The compiler and linker flags of the project, once."""

# Shared by everything of ours in C and C++.
_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wundef",
    "-Wshadow",
    "-Wconversion",
    "-Wcast-qual",
    "-Werror",
]

C_WARNINGS = _WARNINGS + ["-Wstrict-prototypes"]

CXX_WARNINGS = _WARNINGS

# The allocator itself. Said in full, so that a build as part of another workspace compiles the same code.
LIBRARY_COPTS = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-semantic-interposition",
    "-fno-builtin-malloc",
    "-fno-plt",
    # An exception of a new handler passes through our frames.
    "-fexceptions",
] + C_WARNINGS

# More for a profile: those whose reports carry a backtrace keep frame pointers.
PROFILE_COPTS = {
    "release": ["-fomit-frame-pointer"],
    "guarded": ["-fno-omit-frame-pointer"],
    "secure": ["-fno-omit-frame-pointer"],
    "strict": ["-fno-omit-frame-pointer"],
    "debug": ["-fno-omit-frame-pointer"],
    "asan": ["-fno-omit-frame-pointer"],
    "valgrind": ["-fno-omit-frame-pointer"],
}

# More for the layers that a program's calls pass through, where a profile keeps no frame pointers: a function that calls another
# keeps its own, so that the heap profiler finds who called it. One that calls none, or only in its place, has nothing to keep.
CALLED_LAYERS = ["alloc", "api"]

CALLED_COPTS = {
    "release": ["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"],
}

# The shared library. Undefined symbols are an error unless a sanitizer's run time is to come with the program.
SHARED_LINKOPTS = [
    "-Wl,-z,now",
    "-Wl,-z,relro",
    "-Wl,-z,nodelete",
    "-Wl,-z,noexecstack",
    # What is named .bss.zz_far lies behind all other .bss.
    "-Wl,--sort-section=name",
    "-Wl,--as-needed",
    "-lpthread",
]

SHARED_STRICT_LINKOPTS = [
    "-Wl,-z,defs",
]

# Test programs: a call of malloc that the compiler removes or replaces tests nothing.
TEST_COPTS = [
    "-std=gnu11",
    "-g",
    "-fno-builtin",
] + C_WARNINGS

CXX_TEST_COPTS = [
    "-std=gnu++17",
    "-g",
    "-fno-builtin",
] + CXX_WARNINGS

# The toolchain adds no C++ library (.bazelrc), so that a C program here holds only what a C program holds.
CXX_LINKOPTS = ["-lstdc++"]
