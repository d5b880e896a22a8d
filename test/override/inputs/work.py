# Owns: the work of the first Python row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
import collections
import concurrent.futures
import ctypes
import hashlib
import json
import multiprocessing
import os
import random
import sqlite3
import subprocess
import threading
import zlib

random.seed(4711)


def digest(value):
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def work(seed):
    source = random.Random(seed)
    kept, total = [], 0
    for _ in range(8000):
        kept.append(bytes(source.randrange(1, 600)))
        if len(kept) > 500:
            total += len(kept.pop(source.randrange(500)))
    return total


def documents():
    tree = {"k%d" % i: [{"n": j, "t": "x" * (j % 50), "f": j / 7} for j in range(40)] for i in range(400)}
    text = json.dumps(tree)
    assert json.loads(text) == tree
    print("json", len(text), digest(text))


def threads():
    results = [None] * 8

    def run(i):
        results[i] = work(i)

    pool = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    print("threads", results)
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        print("executor", sum(executor.map(lambda n: len(zlib.compress(bytes(n % 256 for n in range(n)) * 20)), range(500, 900))))


def native():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free.restype = None
    libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
    libc.malloc_usable_size.restype = ctypes.c_size_t
    blocks = []
    for i in range(5000):
        size = random.randrange(1, 1 << random.randrange(1, 18))
        block = libc.malloc(size) if i % 2 else libc.calloc(1, size)
        assert block and block % 16 == 0 or size < 16
        assert libc.malloc_usable_size(block) >= size
        if i % 2 == 0:
            assert ctypes.string_at(block, size) == bytes(size)
        ctypes.memset(block, i % 251, size)
        if i % 5 == 0:
            block = libc.realloc(block, size * 2)
        assert ctypes.string_at(block, size) == bytes([i % 251]) * size
        blocks.append(block)
        if len(blocks) > 300:
            libc.free(blocks.pop(random.randrange(len(blocks))))
    for block in blocks:
        libc.free(block)
    print("ctypes", len(blocks))


def processes():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        print("pool", pool.map(work, range(12)))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print("spawned", pool.map(len, ["a" * n for n in range(20)]))


def fork_with_threads():
    """Children of a process whose other threads allocate all the time."""
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            collections.deque((bytes(n) for n in range(1, 400, 7)), maxlen=20)

    pool = [threading.Thread(target=churn) for _ in range(3)]
    for thread in pool:
        thread.start()
    codes = []
    for n in range(40):
        pid = os.fork()
        if pid == 0:
            os._exit(3 if sum(len(bytes(i)) for i in range(2000)) == 1999000 else 4)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stop.set()
    for thread in pool:
        thread.join()
    print("forks", set(codes))


def database():
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a integer primary key, b text)")
    db.executemany("insert into t values(?, ?)", ((i, "v%d" % (i % 97)) for i in range(30000)))
    print("sql", db.execute("select count(*), count(distinct b), sum(a) from t").fetchone())


if __name__ == "__main__":
    documents()
    threads()
    native()
    processes()
    fork_with_threads()
    database()
    print("child", subprocess.run(["echo", "hello"], capture_output=True, text=True).stdout.strip())
    print("python done", flush=True)
