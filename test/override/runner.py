# Owns: how one row of the real-programs table runs, and what makes it fail.
# May include: Python's standard library.
# Called by: run.py and selftest.py.
# Invariants: every process that a row started is gone and its directory removed when execute() returns, whatever happened.
import ctypes
import dataclasses
import difflib
import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "inputs")
# The distribution's programs, never a wrapper that a user put in front of them.
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
# A report opens its line with the name of the variant, and each of these begins so.
REPORT = re.compile(r"^mimalloc.*$", re.MULTILINE)
LOADER_ERROR = re.compile(r"^ERROR: ld\.so: .*$", re.MULTILINE)
OUTPUT_LIMIT = 32 << 20
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass(frozen=True)
class Row:
    """One program. `needs` are commands, or glob patterns of files when they hold a slash. `expect` is searched in the output of
    the plain run, so that a row that did no work cannot pass. In `argv` an @ stands for the folder of inputs. `seen` are programs that must have run with the library's malloc;
    `own` are those that bring a malloc of their own and must merely keep working. `compare` names what is compared: exit, stdout,
    stderr. `told` matches lines that a variant may write because the row asks for them: they are no report and not compared."""

    name: str
    packages: tuple
    needs: tuple
    argv: tuple
    expect: str
    seen: tuple
    version: tuple = ()
    stdin: str = ""
    setup: str = ""
    compare: tuple = ("exit", "stdout", "stderr")
    normalise: tuple = ()
    own: tuple = ()
    exit: int = 0
    timeout: int = 60
    env: tuple = ()
    told: str = ""


@dataclasses.dataclass
class Outcome:
    exit: object = None  # a number, or "timeout"
    stdout: str = ""
    stderr: str = ""
    cpu: float = 0.0
    wall: float = 0.0
    reports: tuple = ()
    processes: tuple = ()  # (invoked name, file, object of malloc) of each process, when a library was preloaded


class Workplace:
    """A short-named temporary directory (socket names are limited to 107 bytes) that other users may enter and that goes away."""

    def __init__(self):
        base = "/tmp" if os.access("/tmp", os.W_OK) else None
        self.root = tempfile.mkdtemp(prefix="mi-prog-", dir=base)
        os.chmod(self.root, 0o755)
        become_reaper()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_strays()
        shutil.rmtree(self.root, ignore_errors=True)

    def build(self, source, name, *flags):
        """Compiles a small library with the system's compiler. Whoever lacks one learns which package brings it."""
        path = os.path.join(self.root, name)
        compiler = shutil.which("gcc", path=PATH) or shutil.which("cc", path=PATH)
        if compiler is None:
            sys.exit("run.py: no C compiler for " + source + ": apt-get install gcc libc6-dev")
        subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", "-fno-builtin", *flags,
                        "-o", path, os.path.join(HERE, source)], check=True, env={"PATH": PATH, "LC_ALL": "C"})
        return path

    def library(self, path):
        """A copy that every user may read, under its own name: the build's output may lie below a closed home directory."""
        folder = tempfile.mkdtemp(dir=self.root)
        os.chmod(folder, 0o755)
        copy = os.path.join(folder, os.path.basename(os.path.realpath(path)))
        shutil.copyfile(path, copy)
        os.chmod(copy, 0o755)
        return copy


def become_reaper():
    # Daemons that a program leaves behind become children of this process and are ended with it.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants():
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/" + entry + "/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry))
    found, wave = [], [os.getpid()]
    while wave:
        wave = [child for parent in wave for child in parents.get(parent, ())]
        found += wave
    return found


def end_strays():
    """Ends every process that descends from this one, and collects them all."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def missing(row):
    absent = []
    for need in row.needs:
        found = glob.glob(need) if "/" in need else shutil.which(need, path=PATH)
        if not found:
            absent.append(need)
    return absent


def environment(row, folder, lib, probe, log, extra):
    env = {"PATH": PATH, "HOME": folder + "/home", "TMPDIR": folder + "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
           "USER": "nobody", "LOGNAME": "nobody", "INPUTS": os.path.dirname(folder) + "/inputs"}
    env.update(dict(row.env))
    if lib is not None:
        env.update(extra)
        env["LD_PRELOAD"] = (probe + " " if probe else "") + lib
        env["PROGRAMS_PROBE_LOG"] = log
    return env


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read(path):
    with open(path, "rb") as file:
        return file.read(OUTPUT_LIMIT).decode("utf-8", "backslashreplace")


def hidden_reports(folder):
    """Reports in the files where servers keep their messages."""
    found = []
    for path in glob.glob(folder + "/**/*.log", recursive=True) + glob.glob(folder + "/**/*.err", recursive=True):
        if os.path.isfile(path):
            found += REPORT.findall(read(path))
    return found


def execute(row, place, lib=None, probe=None, extra=(), factor=1.0):
    """Runs the row once, in a directory of the same name every time, so that names in outputs agree."""
    folder = os.path.join(place.root, "run")
    inputs = os.path.join(place.root, "inputs")
    log = os.path.join(place.root, "probe.txt")
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.isdir(inputs):
        shutil.copytree(INPUTS, inputs)
    for name in ("", "/home", "/tmp"):
        os.mkdir(folder + name)
        os.chmod(folder + name, 0o777)
    os.chmod(folder + "/home", 0o700)
    with open(log, "w"):
        os.chmod(log, 0o666)
    outcome = Outcome()
    out, err = os.path.join(place.root, "stdout"), os.path.join(place.root, "stderr")
    try:
        if row.setup:
            subprocess.run(["bash", "-c", row.setup], cwd=folder, env=environment(row, folder, None, None, log, ()), check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=row.timeout)
        with open(place.root + "/stdin", "w") as file:
            file.write(row.stdin)
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(out, "wb") as stdout, open(err, "wb") as stderr, open(place.root + "/stdin", "rb") as stdin:
            child = subprocess.Popen([a.replace("@", inputs + "/") for a in row.argv],
                                     cwd=folder, env=environment(row, folder, lib, probe, log, extra), stdin=stdin,
                                     stdout=stdout, stderr=stderr, start_new_session=True, preexec_fn=limits)
            try:
                outcome.exit = child.wait(timeout=row.timeout * factor)
            except subprocess.TimeoutExpired:
                outcome.exit = "timeout"
            end_strays()
            child.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome.wall = time.monotonic() - begun
        outcome.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        outcome.stdout, outcome.stderr = read(out), read(err)
        if row.told:
            outcome.stderr = re.sub("^(?:%s)$\n?" % row.told, "", outcome.stderr, flags=re.MULTILINE)
        outcome.reports = tuple(REPORT.findall(outcome.stderr) + LOADER_ERROR.findall(outcome.stderr) + hidden_reports(folder))
        outcome.processes = tuple(tuple(line.split(" ")) for line in read(log).splitlines() if line.count(" ") == 2)
    finally:
        end_strays()
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def normal(row, text):
    for pattern, replacement in row.normalise:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def diff(row, stream, plain, loaded):
    plain, loaded = normal(row, plain).splitlines(), normal(row, loaded).splitlines()
    if plain == loaded:
        return []
    lines = list(difflib.unified_diff(plain, loaded, stream + " without", stream + " with", n=1, lineterm=""))
    lines = [line if len(line) <= 300 else line[:300] + " ..." for line in lines]
    return lines[:40] + (["... %d lines more" % (len(lines) - 40)] if len(lines) > 40 else [])


def judge_plain(row, plain):
    """Why the run without the library is no measure; such a failure is the machine's or the row's, never the library's."""
    if plain.exit != row.exit:
        return ["fails without the library already: exit %s, not %s" % (plain.exit, row.exit)]
    if not re.search(row.expect, plain.stdout + plain.stderr, re.MULTILINE):
        return ["did no work without the library already: no output matches %r" % row.expect]
    return []


def judge(row, plain, loaded, lib):
    """All reasons for which the run with the library is not what the plain run was."""
    reasons = []
    if loaded.exit != plain.exit:
        name = ""
        if isinstance(loaded.exit, int) and loaded.exit < 0:
            name = " (%s)" % signal.Signals(-loaded.exit).name
        reasons.append("exit %s%s, without the library %s" % (loaded.exit, name, plain.exit))
    reasons += ["report: " + line for line in loaded.reports[:10]]
    for stream in ("stdout", "stderr"):
        if stream in row.compare:
            reasons += diff(row, stream, getattr(plain, stream), getattr(loaded, stream))
    wanted = os.path.basename(lib)
    for invoked, file, provider in sorted(set(loaded.processes)):
        if provider != wanted and invoked not in row.own and file not in row.own:
            reasons.append("not in use: %s (%s) takes its malloc from %s" % (invoked, file, provider))
    used = {name for invoked, file, provider in loaded.processes if provider == wanted for name in (invoked, file)}
    own = {name for invoked, file, _ in loaded.processes for name in (invoked, file) if name in row.own}
    for name in row.seen:
        if name not in used and name not in own:
            reasons.append("not in use: no process named %s was seen with the library" % name)
    return reasons


def tail(text, count=25):
    return ["  " + line[:300] for line in text.splitlines()[-count:]]


def explain(row, label, reasons, outcome, lib=None):
    command = " ".join(a.replace("@", "inputs/") for a in row.argv)
    lines = ["FAIL %s [%s]" % (row.name, label), "command: " + ("LD_PRELOAD=" + lib + " " if lib else "") + command]
    lines += ["  " + reason for reason in reasons]
    if outcome is not None and outcome.stderr:
        lines += ["stderr, its end:"] + tail(outcome.stderr)
    return "\n".join(lines) + "\n"


def version_of(row):
    if not row.version:
        return ""
    try:
        done = subprocess.run(row.version, env={"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=20, text=True, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    found = re.search(r"\d+(?:\.\d+)+\w*", done.stdout + done.stderr)
    return found.group(0) if found else "?"
