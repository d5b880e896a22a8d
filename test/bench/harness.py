# Owns: allocators, packages, the build of the bench program, one measured run.
# May include: the standard library.
# Called by: run.py, programs.py, counts.py.
# Invariants: a child gets a fixed small environment; a process is killed only by the handle it was started with.
import glob
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.path.dirname(os.path.dirname(HERE))
TIMEOUT_SECONDS = 60
PEERS = ["glibc", "jemalloc", "tcmalloc", "mimalloc2", "scudo"]
_PEER_LIBRARIES = {
    "jemalloc": ["/usr/lib/*-linux-gnu/libjemalloc.so.2"],
    "tcmalloc": ["/usr/lib/*-linux-gnu/libtcmalloc_minimal.so.4"],
    "mimalloc2": ["/usr/lib/*-linux-gnu/libmimalloc.so.2", "/usr/lib/*-linux-gnu/libmimalloc.so.2.0"],
    "scudo": ["/usr/lib/llvm-19/lib/clang/19*/lib/linux/libclang_rt.scudo_standalone-%s.so" % os.uname().machine],
}
_OURS = {"release": "libmimalloc.so.3", "secure": "libmimalloc-secure.so.3", "strict": "libmimalloc-strict.so.3",
         "guarded": "libmimalloc-guarded.so.3", "debug": "libmimalloc-debug.so.3"}


@dataclass
class Allocator:
    name: str
    library: str = ""  # shared object to preload; empty: what the program links by itself
    env: dict = field(default_factory=dict)
    program: str = ""  # a bench program linked with the allocator, instead of a preload

    def environment(self):
        env = dict(self.env)
        if self.library:
            env["LD_PRELOAD"] = self.library
        return env


@dataclass
class Sample:
    wall: float
    cpu: float
    rss_kib: int
    output: bytes


class RunFailed(Exception):
    pass


def say(text):
    print(text, flush=True)


def clean_environment():
    keep = {k: os.environ[k] for k in ("PATH", "HOME", "TMPDIR") if k in os.environ}
    keep.update(LC_ALL="C", PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
    return keep


def result_lines(output):
    """What a workload of the bench program prints whatever the allocator: all but what it has measured itself."""
    return [line for line in output.splitlines() if not line.startswith(("rss ", "latency "))]


def find_allocators(extra_libraries, extra_programs):
    """All allocators at hand by name: peers as packaged, ours as built by Bazel, and those named on the command line."""
    found = {"glibc": Allocator("glibc")}
    for name, patterns in _PEER_LIBRARIES.items():
        paths = [p for pattern in patterns for p in sorted(glob.glob(pattern))]
        if paths:
            found[name] = Allocator(name, paths[0])
    for name, file in _OURS.items():
        path = os.path.join(ROOT, "bazel-bin", file)
        if os.path.exists(path):
            found[name] = Allocator(name, os.path.realpath(path))
    for text in extra_libraries:
        name, _, rest = text.partition("=")
        path, *settings = rest.split(",")
        if not os.path.exists(path):
            raise SystemExit("--lib %s: %s does not exist" % (name, path))
        found[name] = Allocator(name, os.path.realpath(path), dict(s.split("=", 1) for s in settings))
    for text in extra_programs:
        name, _, path = text.partition("=")
        if not os.path.exists(path):
            raise SystemExit("--bin %s: %s does not exist" % (name, path))
        found[name] = Allocator(name, program=os.path.realpath(path))
    return found


def install_packages(allowed):
    """Installs what packages.txt lists and the machine lacks. Returns the names that are still missing."""
    with open(os.path.join(HERE, "packages.txt")) as f:
        wanted = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    if not shutil.which("dpkg-query"):
        say("bench: no dpkg here, packages are not checked")
        return []

    def missing():
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n"] + wanted, capture_output=True, text=True).stdout
        there = {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}
        return [p for p in wanted if p not in there]

    names = missing()
    if not names or not allowed:
        return names
    command = ["apt-get", "install", "-y", "--no-install-recommends"] + names
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            return names
        command = ["sudo", "-n"] + command
    say("bench: installing " + " ".join(names))
    # A package that starts a daemon when it is installed would disturb the figures.
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1")
    if subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        update = command[: command.index("install")] + ["update"]
        subprocess.run(update, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL)
    return missing()


def build_bench(directory):
    path = os.path.join(directory, "bench")
    sources = sorted(glob.glob(os.path.join(HERE, "*.c")))
    subprocess.run(["cc", "-O2", "-pthread"] + sources + ["-o", path], check=True)
    return path


def check_allocator(bench, allocator):
    """Raises RunFailed unless malloc really comes from the allocator when it is preloaded."""
    if allocator.program:
        return
    env = dict(clean_environment(), **allocator.environment())
    done = subprocess.run([bench, "--malloc"], env=env, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    where = done.stdout.strip()
    right = "/libc.so" in where if not allocator.library else os.path.realpath(where) == os.path.realpath(allocator.library)
    if done.returncode != 0 or not right:
        raise RunFailed("malloc comes from '%s' (status %d) %s" % (where, done.returncode, done.stderr.strip()[:200]))


class Launch:
    """A program started through `bench @run`; wait() gives its sample."""

    def __init__(self, bench, command, environment, cwd, stdin=None):
        self._read, write = os.pipe()
        self._output = tempfile.TemporaryFile()
        self._errors = tempfile.TemporaryFile()
        settings = ["%s=%s" % item for item in environment.items()]
        arguments = [bench, "@run", str(write)] + settings + ["--"] + command
        source = open(stdin, "rb") if stdin else subprocess.DEVNULL
        self._process = subprocess.Popen(arguments, stdin=source, stdout=self._output, stderr=self._errors, env=clean_environment(),
                                         cwd=cwd, pass_fds=(write,), start_new_session=True)
        os.close(write)
        if stdin:
            source.close()

    def kill(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # the session we made for it
            self._process.wait()

    def wait(self, timeout=TIMEOUT_SECONDS):
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RunFailed("no end within %d s" % timeout)
        except BaseException:  # interrupted: leave nothing running
            self.kill()
            raise
        finally:
            with os.fdopen(self._read) as f:
                report = f.read().split() if self._process.poll() is not None else []
        self._output.seek(0)
        self._errors.seek(0)
        output, errors = self._output.read(), self._errors.read()
        if len(report) != 5:
            raise RunFailed("not started: " + errors.decode(errors="replace")[:200])
        status = int(report[4])
        if status != 0:
            how = "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "status %d" % os.WEXITSTATUS(status)
            raise RunFailed(how + ": " + errors.decode(errors="replace").strip()[:200])
        return Sample(float(report[0]), float(report[1]) + float(report[2]), int(report[3]), output)
