#!/usr/bin/env python3
# Owns: running a table of rows (program, variants, how, expected) and judging signal, status and message of each.
# May include: Python 3.7 and its own library only; exceptions.py.
# Called by: the attack, contract, death and stress targets; by hand with --build.
# Invariants: quiet when all is well; what could not be run is named with its reason and counted, never passed over.
"""A row is a line of a table:

    name | program arguments | variants | how | expected

variants  names from `release secure strict debug glibc mimalloc2`, or `ours` (the first four), `hard` (secure strict debug), `sampled` (these and guarded), `all`.
          `glibc` runs without a preload; rows for it that expect a failure are the controls which show that a test can fail.
how       NAME=value sets the environment; and
          as=64M data=64M stack=256K   resource limits             noproc     a mount namespace without /proc
          nobody                       run as uid 65534            setuid     a set-uid root copy run as uid 65534
          libc=2.36    only where the C library is of that version (rows of variant glibc: what it does is written for one)
          timeout=30                   seconds (default 30)        alone      not beside other rows
          nopreload                    the program opens {lib} by itself
          overcommit=2, thp=always, large-pages=40, huge-pages=1
                                       system settings, saved and restored; only with --system, otherwise named as not run
expected  `exit N`, optionally followed by a regular expression that a line of stderr must match (without one stderr must be empty);
          `SIGNAL regex` for a death; `any-failure` for a control. `not /regex/` as the last thing: no line may match.
          {name} is the variant's word in messages, {ptr} the address the program printed last as `pointer 0x...`.
          A program that is an attack says on stdout whether it reached its goal and ends accordingly; of it a row expects
          `caught SIGNAL regex`           that death, and not a word of success before it
          `stopped SIGNAL regex`          that death or an end as of `neutralised`, which of the two is chance
          `neutralised regex`             that it ran to its end, said `attack: failed` and ended with 10
          `succeeds regex`                that it said `attack: succeeded` and ended with 20
          `out-of-scope regex`            the same of an attack that the threat model excludes from its promises
          where the regex, a line of stderr, may be left out; without one the last three demand an empty stderr.
In arguments {name} is the word as well, {lib} the library under test, {plugin} a shared object that holds it statically, {bin} the programs' folder.
"""
import argparse
import ctypes
import fcntl
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
import exceptions  # noqa: E402

OURS = ["release", "guarded", "secure", "strict", "debug"]
GROUPS = {"ours": OURS, "hard": ["secure", "strict", "debug"], "sampled": ["secure", "strict", "debug", "guarded"], "all": OURS + ["glibc", "mimalloc2"]}
WORD = {"release": "mimalloc", "secure": "mimalloc-secure", "strict": "mimalloc-strict", "debug": "mimalloc-debug", "guarded": "mimalloc-guarded", "mimalloc2": "mimalloc", "glibc": "glibc"}


def word_of(variant):
    return WORD.get(variant, "mimalloc-" + variant.replace("_", "-"))


LIMITS = {"as": resource.RLIMIT_AS, "data": resource.RLIMIT_DATA, "stack": resource.RLIMIT_STACK}
SETTINGS = {
    "overcommit": "/proc/sys/vm/overcommit_memory",
    "thp": "/sys/kernel/mm/transparent_hugepage/enabled",
    "large-pages": "/proc/sys/vm/nr_hugepages",
    "huge-pages": "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
}
# How an attack ends: the status, and what it says then. Known to test/attack/attack.h as well.
REACHED = {"neutralised": (10, "attack: failed"), "succeeds": (20, "attack: succeeded"), "out-of-scope": (20, "attack: succeeded")}
NOBODY = 65534
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE, MNT_DETACH = 16384, 1 << 18, 2

libc = ctypes.CDLL(None, use_errno=True)


class Skip(Exception):
    pass


class Row:
    def __init__(self, path, number, line):
        fields = [f.strip() for f in line.split("|", 4)]
        if len(fields) != 5:
            sys.exit("%s:%d: a row has five fields" % (path, number))
        self.where = "%s:%d" % (path, number)
        self.name, command, variants, how, self.expected = fields
        self.command = shlex.split(command)
        self.variants = []
        for word in variants.split():
            self.variants += GROUPS.get(word, [word])
        for v in self.variants:
            if v not in WORD:
                sys.exit("%s: unknown variant %s" % (self.where, v))
        self.env, self.how = {}, {}
        for word in shlex.split(how):
            key, _, value = word.partition("=")
            if key.isupper() or "_" in key:
                self.env[key] = value
            elif key in LIMITS or key in SETTINGS or key in ("noproc", "nobody", "setuid", "timeout", "alone", "nopreload", "libc"):
                self.how[key] = value
            else:
                sys.exit("%s: unknown word %s" % (self.where, word))


def read_rows(path):
    rows, names = [], set()
    with open(path) as f:
        for number, line in enumerate(f, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            row = Row(path, number, line)
            key = (row.name, tuple(row.variants))
            if key in names:
                sys.exit("%s: second row of the name %s" % (row.where, row.name))
            names.add(key)
            rows.append(row)
    return rows


def sampled_rows(args, rows):
    """Those that a table of exceptions leaves, with what it expects of them."""
    table = exceptions.read(args.exceptions, [r.name for r in rows])
    kept = []
    for row in rows:
        exception = exceptions.of(table, row.name, args.sampled, args.variant)
        if exception and exception.expected:
            row.expected = exception.expected
        if not exception or exception.expected:
            kept.append(row)
    return kept


def size(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def without_proc():
    if libc.unshare(CLONE_NEWNS) != 0 and libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        os._exit(126)
    libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    # Mounts below /proc keep it busy, hence the lazy form; what is left is the empty folder.
    while libc.umount2(b"/proc", MNT_DETACH) == 0:
        pass
    if os.path.exists("/proc/self/maps"):
        os._exit(126)


def prepare(row):
    """What happens in the child between fork and exec."""
    def setup():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if "noproc" in row.how:
            without_proc()
        for key, kind in LIMITS.items():
            if key in row.how:
                n = size(row.how[key])
                resource.setrlimit(kind, (n, n))
        if "nobody" in row.how or "setuid" in row.how:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    return setup


class Settings:
    """Changes system settings around a row and puts them back, also when the run is interrupted."""

    def __init__(self, row, allowed):
        self.wanted = {k: v for k, v in row.how.items() if k in SETTINGS}
        self.allowed = allowed
        self.saved = {}

    def __enter__(self):
        if not self.wanted:
            return self
        if not self.allowed:
            raise Skip("changes a system setting; run with --system")
        self.lock = open("/tmp/.mi-test-settings.lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            for key, value in self.wanted.items():
                path = SETTINGS[key]
                if key == "overcommit":
                    # Other processes of the machine must keep room to allocate while this lasts.
                    self.put("/proc/sys/vm/overcommit_ratio", "95")
                    info = dict(re.findall(r"(\w+):\s+(\d+) kB", open("/proc/meminfo").read()))
                    room = int(info["CommitLimit"]) - int(info["Committed_AS"])
                    if room < 3 << 20:
                        raise Skip("too little room below CommitLimit (%d MiB) to set overcommit_memory" % (room >> 10))
                self.put(path, value)
        except OSError as e:
            self.restore()
            raise Skip("%s cannot be written (%s)" % (e.filename, e.strerror))
        except Skip:
            self.restore()
            raise
        return self

    def put(self, path, value):
        old = open(path).read().strip()
        chosen = re.search(r"\[(\w+)\]", old)
        with open(path, "w") as f:
            f.write(value)
        self.saved[path] = chosen.group(1) if chosen else old

    def restore(self):
        for path, value in reversed(list(self.saved.items())):
            with open(path, "w") as f:
                f.write(value)
        self.saved = {}

    def __exit__(self, *unused):
        self.restore()


def find_program(args, name):
    for folder in args.bin:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return os.path.abspath(path)
    sys.exit("program %s is not in %s" % (name, " ".join(args.bin)))


def run(args, row):
    program = find_program(args, row.command[0])
    library = os.path.abspath(args.preload) if args.preload else None
    words = row.command[1:]
    if any("{plugin}" in w for w in words) and not args.plugin:
        raise Skip("no --plugin (a shared object that holds the allocator) was given")
    if any("{lib}" in w for w in words) and not library:
        raise Skip("no --preload library was given")
    if "libc" in row.how and os.confstr("CS_GNU_LIBC_VERSION") != "glibc " + row.how["libc"]:
        raise Skip("is written for version %s of the C library" % row.how["libc"])
    scratch = None
    env = {k: v for k, v in os.environ.items() if not k.upper().startswith(("MIMALLOC_", "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_"))}
    try:
        if "nobody" in row.how or "setuid" in row.how:
            if os.geteuid() != 0:
                raise Skip("needs root")
            scratch = tempfile.mkdtemp(prefix="mi-rows-")
            os.chmod(scratch, 0o755)
            if os.statvfs(scratch).f_flag & os.ST_NOSUID:
                raise Skip("%s is mounted nosuid" % scratch)
            program = shutil.copy(program, scratch)
            os.chown(program, 0, 0)
            os.chmod(program, 0o4755 if "setuid" in row.how else 0o755)
            if library:
                library = shutil.copy(os.path.realpath(library), scratch)
                os.chmod(library, 0o755)
        if "noproc" in row.how and os.geteuid() != 0:
            raise Skip("needs root to take /proc away")
        words = [w.replace("{name}", word_of(args.variant)).replace("{lib}", library or "").replace("{plugin}", args.plugin or "").replace("{bin}", os.path.dirname(program)) for w in words]
        # A set-uid program does not honour LD_PRELOAD; it opens the library by itself.
        if library and "setuid" not in row.how and "nopreload" not in row.how:
            env["LD_PRELOAD"] = library
        # The debug variant says by default when there is no memory, which is what many rows are about.
        env["MIMALLOC_SHOW_ERRORS"] = "0"
        if args.variant in OURS:
            env["MIMALLOC_GUARDED_SAMPLE_RATE"] = args.sampled
        env.update(row.env)
        timeout = float(row.how.get("timeout", 30)) * args.slow
        with Settings(row, args.system):
            # The environment is given through `env` semantics of exec only: the runner itself is never preloaded.
            p = subprocess.Popen(shlex.split(args.under) + [program] + words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 preexec_fn=prepare(row), start_new_session=True, cwd=scratch or None)
            hung = False
            try:
                out, err = p.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                hung = True
                os.killpg(p.pid, signal.SIGKILL)
                out, err = p.communicate()
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    return p.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), hung


CALL = re.compile(r"    #(\d+) 0x[0-9a-f]+( [^ ].*\+0x[0-9a-f]+)?")
KINDS = ("double-free invalid-free interior-free foreign-free size-mismatch alignment-mismatch family-mismatch free-list-corruption overflow underflow "
         "use-after-free write-after-free metadata-corruption out-of-memory").split()
OTHER = ["hardening", "warning", "error", "assertion failed", "process start"]


def malformed(word, err):
    """The first line of ours that is not what policy/messages.md says, None when there is none."""
    expected = 0
    for line in err.split("\n"):
        call = CALL.fullmatch(line)
        if line.startswith("    #") and not (call and int(call.group(1)) == expected):
            return line
        expected = expected + 1 if call else 0
        rest = line[len(word) + 2:] if line.startswith(word + ": ") else None
        if rest and re.match("[a-z-]+: ", rest) and rest.partition(": ")[0] not in KINDS + OTHER:
            return line
    return None


def judge(args, row, code, out, err, hung):
    """None when the row is as expected, else the reason."""
    if args.variant == "debug" and "SHOW_ERRORS" not in str(row.env):
        # Said before the environment could be read, which turns it off.
        err = re.sub(r"(?m)^mimalloc-debug: out-of-memory: .*\n", "", err)
    if hung:
        return "hung: killed after %s s" % row.how.get("timeout", 30)
    expected = row.expected
    pointers = re.findall(r"pointer (0x[0-9a-f]+)", out)
    fill = {"{name}": re.escape(word_of(args.variant)), "{ptr}": (pointers[-1] + r"\b") if pointers else "no-pointer-was-printed"}
    forbidden = None
    cut = re.search(r"\s*not /(.*)/$", expected)
    if cut:
        forbidden, expected = cut.group(1), expected[:cut.start()]
    word, _, rest = expected.partition(" ")
    said = re.findall(r"(?m)^attack: \w+", out)
    if word == "stopped":
        word, rest = ("caught", rest) if code < 0 else ("neutralised", "")
    if word == "caught":
        if "attack: succeeded" in said:
            return "the attack succeeded before it was caught"
        word, _, rest = rest.partition(" ")
    elif word in REACHED and not hung:
        number, text = REACHED[word]
        if code in (10, 20) and said[-1:] != ["attack: failed" if code == 10 else "attack: succeeded"]:
            return "the attack ended with %d and did not say so" % code
        if code in (10, 20) and code != number:
            return "the attack %s, expected %s" % ("succeeded" if code == 20 else "failed", word)
        if code == number and said != [text]:
            return "the attack said %s, expected one `%s`" % (said, text)
        word, rest = "exit", "%d %s" % (number, rest)
    for key, value in fill.items():
        rest = rest.replace(key, value)
        forbidden = forbidden.replace(key, value) if forbidden else None
    bad = malformed(word_of(args.variant), err) if args.variant != "mimalloc2" else None
    if bad:
        return "a line is not of the documented form: %s" % bad
    if forbidden and re.search(forbidden, err, re.M):
        return "stderr has /%s/" % forbidden
    if word == "any-failure":
        return None if code not in (0, 77) else "the control did not fail"
    if word == "exit":
        number, _, pattern = rest.partition(" ")
        if code == 77 and number != "77":
            raise Skip(err.strip() or "the program skips itself")
        if code < 0:
            return "ended by %s, expected exit %s" % (signal.Signals(-code).name, number)
        if code != int(number):
            return "exit %d, expected %s" % (code, number)
    else:
        pattern = rest
        if code >= 0 or signal.Signals(-code).name != word:
            return "%s, expected %s" % ("exit %d" % code if code >= 0 else "ended by " + signal.Signals(-code).name, word)
    if pattern:
        if not re.search(pattern, err, re.M):
            return "no line of stderr matches /%s/" % pattern
        reports = re.findall(r"^%s: [a-z]+(?:-[a-z]+)+: .*$" % fill["{name}"], err, re.M)
        if word != "exit" and len(reports) > 1:
            return "more than one report"
    elif word == "exit" and err and forbidden is None:
        return "stderr is not empty"
    return None


def compile_all(args, rows):
    """By hand only: Bazel builds the programs itself."""
    source = os.path.dirname(os.path.abspath(args.rows))
    root = os.path.dirname(os.path.dirname(source))
    target = args.bin[0]
    os.makedirs(target, exist_ok=True)
    jobs = []
    for name in sorted({r.command[0] for r in rows}):
        path = next((os.path.join(source, name + e) for e in (".c", ".cc") if os.path.exists(os.path.join(source, name + e))), None)
        if path is None:
            sys.exit("no source of program %s" % name)
        out = os.path.join(target, name)
        head = re.search(r"^// Flags:(.*)$", open(path).read(), re.M)
        flags = head.group(1).split() if head else []
        c = path.endswith(".c")
        jobs.append([args.cc if c else args.cxx, "-O1", "-g", "-I" + root, "-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Wconversion", "-Wcast-qual", "-Werror"] +
                    (["-std=gnu11", "-Wstrict-prototypes"] if c else []) + [path, "-o", out] + flags)
    # Shared objects that rows name as an argument.
    for name in sorted({word[len("{bin}/"):-len(".so")] for r in rows for word in r.command if re.fullmatch(r"\{bin\}/\w+\.so", word)}):
        jobs.append([args.cc, "-O1", "-g", "-fPIC", "-shared", os.path.join(source, name + ".c"), "-o", os.path.join(target, name + ".so")])
    with ThreadPoolExecutor(2) as pool:
        for job, r in zip(jobs, pool.map(lambda j: subprocess.run(j, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True), jobs)):
            if r.returncode != 0:
                sys.exit("%s\n%s" % (" ".join(job), r.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--bin", action="append", required=True, help="folder of the programs, may be repeated")
    parser.add_argument("--variant", required=True, help="one of %s, or only_<mitigation>" % ", ".join(sorted(WORD)))
    parser.add_argument("--rows-of", metavar="VARIANT", choices=sorted(WORD), help="run the rows of that variant, as a mitigation alone is to pass them")
    parser.add_argument("--preload", help="the library under test")
    parser.add_argument("--plugin", help="a shared object that holds the allocator statically")
    parser.add_argument("--build", action="store_true", help="compile the programs into the first --bin folder first")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--only", action="append", help="run rows whose name has this text")
    parser.add_argument("--except", dest="left_out", metavar="REGEX", help="leave rows out whose name begins so")
    parser.add_argument("--under", default="", metavar="COMMAND", help="run each program by this tool; what the tool says counts as said by the program")
    parser.add_argument("--exceptions", metavar="TABLE", help="what is left out where allocations are sampled, or comes out otherwise, and why")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sampled", metavar="N", default="0", help="guard one in N allocations where the row does not say how many; 0 none, so that rows are certain")
    parser.add_argument("--slow", type=float, default=1.0, help="factor on every timeout")
    parser.add_argument("--system", action="store_true", default=os.environ.get("MI_TEST_SYSTEM") == "1", help="allow rows that change system settings")
    parser.add_argument("--no-skips", action="store_true", help="a row that cannot be run is a failure")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    # So that settings are put back when the run is told to stop.
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(1))
    if args.preload and not os.path.isfile(args.preload):
        # The loader only warns of a missing library and goes on without it.
        sys.exit("no library %s" % args.preload)
    rows = read_rows(args.rows)
    if args.exceptions:
        rows = sampled_rows(args, rows)
    if args.only:
        rows = [r for r in rows if any(o in r.name for o in args.only)]
    if args.left_out:
        rows = [r for r in rows if not re.match(args.left_out, r.name)]
    if args.build:
        compile_all(args, rows)
    rows = [r for r in rows if (args.rows_of or args.variant) in r.variants]
    if not rows:
        sys.exit("no rows for variant %s" % args.variant)
    lock = threading.Lock()
    result = {"ok": 0, "failed": 0, "skipped": 0}

    def one(row):
        start = time.time()
        err = out = ""
        try:
            code, out, err, hung = run(args, row)
            reason = judge(args, row, code, out, err, hung)
            kind = "failed" if reason else "ok"
        except Skip as e:
            kind, reason = "skipped", str(e)
        with lock:
            result[kind] += 1
            if kind != "ok" or args.verbose:
                print("%s: %s [%s] %s (%.1f s)%s" % (row.where, row.name, args.variant, kind, time.time() - start, ": " + reason if reason else ""))
            if kind == "failed":
                for title, text in (("stdout", out), ("stderr", err)):
                    for line in text.splitlines()[:25]:
                        print("    %s: %s" % (title, line))
            sys.stdout.flush()

    together = [r for r in rows if "alone" not in r.how and not set(r.how) & set(SETTINGS)]
    with ThreadPoolExecutor(max(1, args.jobs)) as pool:
        list(pool.map(one, together))
    for row in rows:
        if row not in together:
            one(row)
    if result["failed"] or result["skipped"] or args.verbose:
        print("%s [%s]: %d ok, %d failed, %d not run" % (args.rows, args.variant, result["ok"], result["failed"], result["skipped"]))
    sys.exit(1 if result["failed"] or (args.no_skips and result["skipped"]) else 0)


if __name__ == "__main__":
    main()
