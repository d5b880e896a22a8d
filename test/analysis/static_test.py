# Owns: static analysis of src/ and hardening/: what the tools find, less the exceptions that stand in exceptions.txt with a reason.
# May include: Python's standard library; gcc, clang, clang-tidy and cppcheck.
# Called by: the build, as a test of each tool: static_test.py TOOL. By hand alike; `--list` prints the findings and judges none.
# Invariants: reads the checkout itself, so that a new unit is looked at without being listed anywhere, and changes nothing. The
# tool must reject its bad sample before it is asked about the tree. An exception that nothing is excepted by fails the test.
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.realpath(os.environ.get("MI_LINT_ANCHOR", os.path.join(HERE, "..", "..", "WORKSPACE"))))

# Checks that find faults. What is a matter of taste is left to .clang-tidy, which a person runs; and narrowing to -Wconversion,
# which knows that a character is one.
TIDY = "-*,bugprone-*,cert-*,misc-*,performance-*,portability-*,readability-misleading-indentation,-bugprone-assignment-in-if-condition," \
    "-bugprone-easily-swappable-parameters,-bugprone-macro-parentheses,-bugprone-reserved-identifier,-cert-dcl37-c,-cert-dcl51-cpp," \
    "-cert-err33-c,-misc-no-recursion,-performance-no-int-to-ptr,-bugprone-narrowing-conversions"
# The shallow search: the deep one takes ten times as long. A value that only another profile reads is not dead.
ANALYZER = ["-Xclang", "-analyzer-config", "-Xclang", "mode=shallow", "-Xclang", "-analyzer-disable-checker=deadcode.DeadStores", "-Xclang", "-analyzer-output=text", "-Xclang",
            "-analyzer-disable-checker=security.insecureAPI.DeprecatedOrUnsafeBufferHandling"]
# What cppcheck is told of the compiler, so that it looks at the configuration that is built.
MACROS = ["-D__x86_64__=1", "-D__linux__=1", "-D__LP64__=1", "-D__GNUC__=12", "-DUINTPTR_MAX=0xffffffffffffffffUL",
          "-DUINT64_MAX=0xffffffffffffffffUL", "-DUINT32_MAX=0xffffffffU"]


def flags(profile):
    return ["-std=gnu11", "-I.", "-Iinclude", "-Ipolicy/profiles/" + profile]


COMMANDS = {
    "gcc": lambda unit, profile: ["gcc", *flags(profile), "-O1", "-fanalyzer", "-fdiagnostics-plain-output", "-c", unit, "-o", "/dev/null"],
    "scan-build": lambda unit, profile: ["clang", "--analyze", *ANALYZER, "-w", *flags(profile), unit],
    "clang-tidy": lambda unit, profile: ["clang-tidy", "--quiet", "--checks=" + TIDY, "--warnings-as-errors=-*", unit, "--", *flags(profile), "-w"],
    "cppcheck": lambda unit, profile: ["cppcheck", "--std=c11", "--enable=warning,portability", "--quiet", "--template={file}:{line}:0: warning: {message} [{id}]",
                                       *MACROS, *flags(profile)[1:], unit],
}
# All have the same code; under this profile the most of it is reached.
PROFILE = "strict"
FINDING = re.compile(r"^(?P<file>[^:\s]+):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*) \[(?P<check>[^\]]+)\]$")


def units():
    found = []
    for path, folders, files in os.walk(os.path.join(ROOT, "src")):
        folders.sort()
        found += [os.path.relpath(os.path.join(path, f), ROOT) for f in sorted(files) if f.endswith(".c")]
    return found


def findings(tool, unit, profile):
    """(file, check) -> the tool's line, of one unit with its headers."""
    done = subprocess.run(COMMANDS[tool](unit, profile), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = {}
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            name = os.path.relpath(os.path.join(ROOT, match.group("file")), ROOT)
            found.setdefault((name, match.group("check").split(",")[0]), line)
    if done.returncode != 0 and not found:
        found[(unit, "failed")] = "%s: %s ended with %d:\n%s" % (unit, tool, done.returncode, done.stdout)
    return found


def exceptions(tool):
    """(file, check) -> reason, and what is wrong with the file."""
    known, bad = {}, []
    with open(os.path.join(ROOT, "test/analysis/exceptions.txt")) as f:
        for number, line in enumerate(f, 1):
            if line.strip() and not line.startswith("#"):
                words = [w.strip() for w in line.split("|")]
                if len(words) != 4 or words[0] not in COMMANDS or not words[3]:
                    bad.append("exceptions.txt:%d: not `tool | file | check | reason`" % number)
                elif words[0] == tool:
                    known[(words[1], words[2])] = words[3]
    return known, bad


def main():
    tool = sys.argv[1]
    command = COMMANDS[tool]("", PROFILE)[0]
    if not shutil.which(command):
        print("skipped: %s is not installed" % command)
        return 77
    sample = "test/analysis/samples/%s.c" % tool
    with open(os.path.join(ROOT, sample)) as f:
        wanted = re.search(r"^// Must be found: (\S+)$", f.read(), re.M).group(1)
    if (sample, wanted) not in findings(tool, sample, PROFILE):
        print("%s does not find %s in %s" % (tool, wanted, sample))
        return 1
    found = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for of_unit in pool.map(lambda unit: findings(tool, unit, PROFILE), units()):
            found.update(of_unit)
    if "--list" in sys.argv:
        for key in sorted(found):
            print("%s | %s | %s" % (tool, key[0], key[1]), found[key], sep="\n  ")
        return 0
    known, bad = exceptions(tool)
    bad += [found[key] for key in sorted(found) if key not in known]
    bad += ["exceptions.txt: %s finds no %s in %s any more" % (tool, key[1], key[0]) for key in sorted(known) if key not in found]
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
