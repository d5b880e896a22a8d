# Owns: the table of what is measured: the workloads of the bench program and the real programs with their inputs.
# May include: harness.py.
# Called by: run.py.
# Invariants: every input is generated or stored, fixed, and gives the same output under every allocator.
import glob
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

from harness import HERE, Launch, RunFailed, Sample, clean_environment

PROGRAMS = os.path.join(HERE, "programs")
STARTS = 150  # of `true` in one run of the start-up row


@dataclass
class Workload:
    name: str
    kind: str  # micro: counted in the geometric means of the bench program; real: in those of programs; memory, latency, startup: shown apart
    what: str
    run: Callable  # (context, allocator) -> Sample
    needs: str = ""  # the program that has to be there


@dataclass
class Context:
    bench: str
    directory: str
    scale: int


def _bench_workload(name, kind, what):
    def run(context, allocator):
        command = [allocator.program or context.bench, name, str(context.scale)]
        if kind in ("memory", "latency"):
            command.append("--rss")
        return Launch(context.bench, command, allocator.environment(), context.directory).wait()

    return Workload(name, kind, what, run)


# What stands in no mean: most of it is waiting, or the clock.
_WATCHED = {"rise-and-fall": "memory", "day": "memory", "long-run": "memory", "latency": "latency"}


def bench_workloads(bench):
    rows = [line.split("\t") for line in subprocess.run([bench, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
    return [_bench_workload(name, _WATCHED.get(name, "micro"), what) for name, what in rows]


def _program(name, what, needs, command, stdin=None, result=None, environment=None):
    def run(context, allocator):
        def fill(text):
            return text.replace("@DIR@", context.directory).replace("@SRC@", PROGRAMS)

        path = fill(result) if result else None
        if path and os.path.exists(path):
            os.unlink(path)
        env = dict(environment or {}, **allocator.environment())
        sample = Launch(context.bench, [fill(c) for c in command], env, context.directory, fill(stdin) if stdin else None).wait()
        if path:
            with open(path, "rb") as f:
                sample.output += hashlib.sha256(f.read()).hexdigest().encode()
        return sample

    return Workload(name, "real", what, run, needs)


# ---- redis: the server is measured, the client is not ----
def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _ask(port, line):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(line.encode() + b"\r\n")
        s.settimeout(5)
        answer = b""
        while not answer.endswith(b"\r\n"):
            piece = s.recv(65536)
            if not piece:
                break
            answer += piece
        return answer.decode(errors="replace")


def _run_redis(context, allocator):
    port = _free_port()
    env = allocator.environment()
    if "LD_PRELOAD" not in env:  # Debian links the server with jemalloc: the C library has to be put before it
        env["LD_PRELOAD"] = sorted(glob.glob("/lib/*-linux-gnu/libc.so.6"))[0]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", context.directory, "--loglevel", "warning"]
    server = Launch(context.bench, command, env, context.directory)
    try:
        for _ in range(200):
            try:
                if "PONG" in _ask(port, "PING"):
                    break
            except OSError:
                time.sleep(0.01)
        else:
            raise RunFailed("the server does not answer")
        info = dict(line.split(":", 1) for line in _ask(port, "INFO server").splitlines() if ":" in line)
        start = time.monotonic()
        requests = str(max(2000, 35000 * context.scale // 100))
        client = ["redis-benchmark", "-p", str(port), "-q", "-P", "8", "-c", "20", "-n", requests, "-r", "20000", "-d", "100", "-t", "set,get,lpush,lpop,sadd,hset,zadd"]
        done = subprocess.run(client, env=clean_environment(), capture_output=True, timeout=60)
        wall = time.monotonic() - start
        if done.returncode != 0:
            raise RunFailed("redis-benchmark: " + done.stderr.decode(errors="replace")[:200])
        with open("/proc/%d/status" % int(info["process_id"])) as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))
        try:
            _ask(port, "SHUTDOWN NOSAVE")
        except OSError:
            pass  # the connection ends with the server
        sample = server.wait(20)
        return Sample(wall, sample.cpu, peak, b"")  # the rates it prints differ by nature
    finally:
        server.kill()


# ---- generated inputs ----
_C_FUNCTION = """
static int step_%(n)d(struct item* list, int limit, const unsigned char* text, size_t length) {
  int sum = %(n)d;
  unsigned table[%(width)d];
  memset(table, 0, sizeof(table));
  for (size_t i = 0; i < length; i++) table[text[i] %% %(width)d]++;
  for (struct item* it = list; it != NULL; it = it->next) {
    if (it->key %% %(odd)d == 0) sum += (int)it->weight * it->key;
    else if (it->size > %(n)du) sum ^= it->key << (%(n)d %% 11);
    else switch (it->key & 7) {
      case 0: sum -= limit; break;
      case 1: sum += (int)table[it->size %% %(width)d]; break;
      case 2: it->weight *= 1.%(n)d; break;
      case 5: it->key += sum > limit ? %(n)d : -%(odd)d; break;
      default: sum = sum * %(odd)d + 1;
    }
  }
  for (int i = 0; i < limit; i++) for (int j = i; j < %(odd)d; j++) sum += (i * j) ^ (int)table[(i + j) %% %(width)d];
  return sum;
}"""


def _c_source(functions):
    text = "#include <stdlib.h>\n#include <string.h>\nstruct item { int key; unsigned size; double weight; struct item* next; };"
    text += "".join(_C_FUNCTION % {"n": n, "width": 16 + n % 48, "odd": 2 * n + 3} for n in range(functions))
    text += "\nint run_all(struct item* list, int limit, const unsigned char* text, size_t length) {\n  int sum = 0;\n"
    text += "".join("  sum += step_%d(list, limit + sum, text, length);\n" % n for n in range(functions))
    return text + "  return sum;\n}\n"


def _solver_input(vectors, holes):
    """Bit-vector relations that have a solution, then more pigeons than holes, which has none."""
    out = ["(push)"] + ["(declare-const x%d (_ BitVec 16))" % i for i in range(vectors)]
    for i in range(vectors):
        a, b, c = (i * 7 + 1) % vectors, (i * 11 + 3) % vectors, (i * 5 + 2) % vectors
        if i % 4 == 0:
            out.append("(assert (= (bvadd (bvmul x%d x%d) x%d) (bvxor x%d #x%04x)))" % (i, a, b, c, (i * 40503 + 12345) & 0xFFFF))
        else:
            out.append("(assert (bvult (bvadd x%d x%d) (bvor x%d #x%04x)))" % (a, b, c, (i * 7 + 4096) & 0xFFFF))
    out += ["(check-sat)", "(pop)"]
    pigeons = range(holes + 1)
    for p in pigeons:
        out += ["(declare-const p%d_%d Bool)" % (p, h) for h in range(holes)]
        out.append("(assert (or %s))" % " ".join("p%d_%d" % (p, h) for h in range(holes)))
    out += ["(assert (or (not p%d_%d) (not p%d_%d)))" % (p, h, q, h) for h in range(holes) for p in pigeons for q in range(p)]
    return "\n".join(out + ["(check-sat)"]) + "\n"


def write_inputs(directory):
    with open(os.path.join(directory, "generated.c"), "w") as f:
        f.write(_c_source(26))
    with open(os.path.join(directory, "solver.smt2"), "w") as f:
        f.write(_solver_input(120, 7))


def _run_startup(context, allocator):
    command = [context.bench, "@spawn", str(max(10, STARTS * context.scale // 100)), shutil.which("true")]
    return Launch(context.bench, command, allocator.environment(), context.directory).wait()


def real_workloads():
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else os.path.realpath(sys.executable)
    return [
        _program("sqlite3", "inserts, indexes, joins and text in memory", "sqlite3", ["sqlite3", ":memory:"], stdin="@SRC@/query.sql"),
        _program("python3", "json, dictionaries, lists, strings, objects", python, [python, "@SRC@/objects.py"]),
        _program("python3-malloc", "the same with every object from malloc", python, [python, "@SRC@/objects.py"], environment={"PYTHONMALLOC": "malloc"}),
        _program("gcc", "gcc -O2 of a generated C file", "gcc", ["gcc", "-O2", "-c", "generated.c", "-o", "generated.o"], result="@DIR@/generated.o"),
        _program("g++", "g++ of a file full of containers", "g++", ["g++", "-std=c++17", "-c", "@SRC@/containers.cpp", "-o", "containers.o"], result="@DIR@/containers.o"),
        Workload("redis", "real", "redis-server under redis-benchmark; time of the client, CPU and memory of the server", _run_redis, "redis-server"),
        _program("z3", "bit-vectors with and pigeons without a solution", "z3", ["z3", "solver.smt2"]),
        _program("ghostscript", "four pages of text, curves and clips to a bitmap", "gs",
                 ["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", "-r50", "-sOutputFile=/dev/null", "--permit-file-read=@SRC@/", "@SRC@/page.ps"]),
        Workload("start-up", "startup", "`true` started %d times in turn" % STARTS, _run_startup),
    ]
