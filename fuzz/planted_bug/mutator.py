#!/usr/bin/env python3
# Owns: mutator.py LIBRARY...: calls the changes of streams as AFL++ does, and looks at what they make.
# May include: nothing but Python's own library.
# Called by: mutator_test.sh.
# Invariants: an input is a head of 8 bytes and operations of 8 bytes each; of the targets fuzz_ops and fuzz_misuse.
import ctypes
import re
import pathlib
import sys

HEAD = OP = 8
ROUNDS = 4000
MAX = 1600
FUZZ = pathlib.Path(__file__).resolve().parent.parent


def codes_of(target):
    """How many operations a target has, by its source."""
    text = (FUZZ / (target + ".c")).read_text()
    body = re.sub(r"//.*", "", re.search(r"enum \{ (OP_.*?)OP_CODES", text, re.S).group(1))
    return len(re.findall(r"\bOP_\w+", body))


def run(path, seed):
    library = ctypes.CDLL(path)
    library.afl_custom_init.restype = ctypes.c_void_p
    library.afl_custom_fuzz.restype = ctypes.c_size_t
    bytes_at = ctypes.POINTER(ctypes.c_uint8)
    library.afl_custom_fuzz.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(bytes_at), ctypes.c_char_p,
                                        ctypes.c_size_t, ctypes.c_size_t]
    library.afl_custom_deinit.argtypes = [ctypes.c_void_p]
    state = library.afl_custom_init(None, seed)
    out, made, before = bytes_at(), [], b""
    for _ in range(ROUNDS):
        other = made[len(made) // 2] if made else None
        size = library.afl_custom_fuzz(state, before, len(before), ctypes.byref(out), other, len(other or b""), MAX)
        before = ctypes.string_at(out, size)
        made.append(before)
    library.afl_custom_deinit(state)
    return made


def main():
    for path in sys.argv[1:]:
        target = pathlib.Path(path).name[:-len("_mutator.so")]
        codes, made = codes_of(target), run(path, 1)
        bad = [m for m in made if len(m) < HEAD or (len(m) - HEAD) % OP != 0 or len(m) > MAX]
        if bad:
            sys.exit("%s: %d of %d inputs are no whole streams, the first has %d bytes" % (target, len(bad), ROUNDS, len(bad[0])))
        seen = {m[i] for m in made for i in range(HEAD, len(m), OP)}
        if seen != set(range(codes)):
            sys.exit("%s: operations %s, of %d" % (target, sorted(seen), codes))
        if max(map(len, made)) < MAX // 2 or len(set(made)) < ROUNDS // 2:
            sys.exit("%s: streams do not grow, or are not changed" % target)
        if run(path, 1) != made or run(path, 2) == made:
            sys.exit("%s: the seed does not decide what is made" % target)


main()
