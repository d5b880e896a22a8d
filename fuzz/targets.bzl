"""The fuzz targets: the build makes its own of this table, and fuzz/targets.py reads it for what does without Bazel.

    variants    the first is what the name alone runs. Streams of right calls run under each shipped variant, streams with misuse where each
                deterministic violation is reported, and what looks at one part under one
    layers      of the allocator, where a few do; [] all of them
    streams     whether inputs are streams of operations: those share more sources, and draw random numbers and the clock from the input
    sanitizer   `address` where it has something to see: the allocator's blocks are its own memory
    wraps       functions of the allocator in whose place the target has its own
    max_len     bytes of the longest input
    dictionary  whether there is one, dict/<name>.dict
"""

FUZZ_TARGETS = {
    "fuzz_bitmap": {
        "variants": ["secure"],
        "layers": ["base"],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 1024,
        "dictionary": False,
    },
    "fuzz_fmt": {
        "variants": ["secure"],
        "layers": ["base"],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 512,
        "dictionary": False,
    },
    "fuzz_freelist": {
        "variants": ["secure"],
        "layers": ["base"],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 1024,
        "dictionary": False,
    },
    "fuzz_misuse": {
        "variants": ["secure", "strict"],
        "layers": [],
        "streams": True,
        "sanitizer": "undefined",
        "wraps": ["_mi_random_next", "_mi_random_below", "_mi_prim_clock_ms"],
        "max_len": 6408,
        "dictionary": False,
    },
    "fuzz_ops": {
        "variants": ["secure", "release", "strict", "guarded", "debug"],
        "layers": [],
        "streams": True,
        "sanitizer": "undefined",
        "wraps": ["_mi_random_next", "_mi_random_below", "_mi_prim_clock_ms"],
        "max_len": 6408,
        "dictionary": False,
    },
    "fuzz_options": {
        "variants": ["secure"],
        "layers": [],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 400,
        "dictionary": True,
    },
    "fuzz_padding": {
        "variants": ["secure"],
        "layers": ["base"],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 64,
        "dictionary": False,
    },
    "fuzz_page_map": {
        "variants": ["secure"],
        "layers": [],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 512,
        "dictionary": False,
    },
    "fuzz_policy": {
        "variants": ["secure", "release", "debug"],
        "layers": [],
        "streams": False,
        "sanitizer": "undefined",
        "wraps": ["_mi_prim_write_stderr", "_mi_prim_abort", "_mi_lock_acquire_bounded"],
        "max_len": 1024,
        "dictionary": True,
    },
    "fuzz_pprof": {
        "variants": ["secure"],
        "layers": [],
        "streams": False,
        "sanitizer": "address",
        "wraps": ["_mi_prim_modules_visit", "_mi_prim_maps_copy"],
        "max_len": 2048,
        "dictionary": True,
    },
    "fuzz_sizeclass": {
        "variants": ["secure"],
        "layers": ["base"],
        "streams": False,
        "sanitizer": "address",
        "wraps": [],
        "max_len": 256,
        "dictionary": False,
    },
}
