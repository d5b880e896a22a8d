#!/usr/bin/env python3
# Owns: the positive control of the real-programs test: rows that must fail do, each for its reason, and nothing is left behind.
# May include: runner.py, run.py and the tables of programs.
# Called by: the build's test target, and people; needs no allocator of ours.
# Invariants: compiles its wrong allocators itself, with the system's compiler.
import contextlib
import dataclasses
import io
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs_light  # noqa: E402
import run  # noqa: E402
import runner  # noqa: E402
from runner import Row  # noqa: E402

PERL = Row("control", ("perl-base",), ("perl",), ("perl", "-e", "my $s = ''; $s .= chr(65 + $_ % 26) for 1 .. 5000; my %h = map { $_ => [$_] } 1 .. 500; print $s, keys(%h) + 0, \"\\n\""),
           "500$", ("perl",))
FAULTS = {
    # fault: (number in control.c, more flags of the compiler, what the reasons must hold)
    "none": (0, (), None),
    "abort": (1, (), r"exit -6 \(SIGABRT\)"),
    "report": (2, (), r"report: mimalloc: invalid-free: this line"),
    "corrupt": (3, (), r"\+\+\+ stdout with"),
    "unused": (0, ("-fvisibility=hidden",), r"not in use: perl .* takes its malloc from libc\.so\.6"),
    "hang": (4, (), r"exit timeout"),
}


class SelfTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = runner.Workplace()
        cls.probe = cls.place.build("probe.c", "libprobe.so", "-ldl")
        cls.libs = {name: cls.place.build("control.c", "libcontrol-%s.so" % name, "-DCONTROL_FAULT=%d" % number, *flags)
                    for name, (number, flags, _) in FAULTS.items()}

    @classmethod
    def tearDownClass(cls):
        cls.place.__exit__()
        assert not os.path.exists(cls.place.root)

    def reasons(self, row, lib, factor=1.0):
        plain = runner.execute(row, self.place)
        self.assertEqual(runner.judge_plain(row, plain), [])
        loaded = runner.execute(row, self.place, lib, self.probe, (), factor)
        return runner.judge(row, plain, loaded, lib)

    def test_faults(self):
        for name, (_, _, expected) in FAULTS.items():
            with self.subTest(name):
                row = dataclasses.replace(PERL, timeout=10 if name != "hang" else 2)
                found = "\n".join(self.reasons(row, self.libs[name]))
                if expected is None:
                    self.assertEqual(found, "")
                else:
                    self.assertRegex(found, expected)

    def test_rows_of_the_table(self):
        """Rows as they stand in the table fail on a wrong library, and pass on a right one."""
        rows = {row.name: row for row in run.SETS["all"]}
        for name in ("bash", "vim", "sqlite3"):
            with self.subTest(name):
                if runner.missing(rows[name]):
                    self.fail("missing: apt-get install " + " ".join(rows[name].packages))
                self.assertEqual(self.reasons(rows[name], self.libs["none"], 5.0), [])
                self.assertNotEqual(self.reasons(rows[name], self.libs["abort"]), [])
                self.assertNotEqual(self.reasons(rows[name], self.libs["report"]), [])

    def test_absent_library(self):
        self.assertRegex("\n".join(self.reasons(PERL, "/nonexistent/libmimalloc.so.3")), r"cannot be preloaded|not in use")

    def test_plain_failure_is_the_machines(self):
        """A row that fails or does nothing on its own never counts as run."""
        for argv in (("sh", "-c", "exit 3"), ("true",)):
            row = dataclasses.replace(PERL, argv=argv)
            self.assertNotEqual(runner.judge_plain(row, runner.execute(row, self.place)), [])

    def test_program_unseen(self):
        """A row whose program never ran with the library fails, also when all outputs agree."""
        row = dataclasses.replace(PERL, seen=("perl", "some-other-program"))
        self.assertIn("not in use: no process named some-other-program", "\n".join(self.reasons(row, self.libs["none"])))

    def test_hidden_report(self):
        """A server's report in its log file is found, though nothing reached standard error."""
        row = dataclasses.replace(PERL, argv=("bash", "-c", "echo 500; test -z \"$LD_PRELOAD\" || echo 'mimalloc-secure: double-free: x' > deep.log"), seen=("bash",))
        self.assertIn("report: mimalloc-secure: double-free: x", "\n".join(self.reasons(row, self.libs["none"])))

    def test_told(self):
        """Only the very lines that a row asks for are no report."""
        script = "echo 500; test -z \"$LD_PRELOAD\" || echo 'mimalloc-debug: out-of-memory: no memory for %s bytes' >&2"
        for size, fine in (("9223372036854775807", True), ("100", False)):
            row = dataclasses.replace(PERL, argv=("bash", "-c", script % size), seen=("bash",), told=programs_light.IMPOSSIBLE)
            self.assertEqual(self.reasons(row, self.libs["none"]) == [], fine)

    def test_missing_program(self):
        row = dataclasses.replace(PERL, needs=("no-such-program", "/no/such/*/file"), packages=("the-package",))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            results = run.run_row(row, [("release", self.libs["none"])], self.place, self.probe, None)
        self.assertTrue(results[0][2])
        self.assertRegex(said.getvalue(), r"missing: no-such-program, /no/such/\*/file; apt-get install the-package")

    def test_nothing_left_behind(self):
        """A daemon in a session of its own is gone when the row is over, also after a timeout."""
        for tail in ("echo 500", "echo 500; sleep 600"):
            row = dataclasses.replace(PERL, argv=("bash", "-c", "setsid bash -c 'sleep 601 & sleep 602' > /dev/null 2>&1 & " + tail), timeout=2)
            begun = time.monotonic()
            runner.execute(row, self.place)
            self.assertLess(time.monotonic() - begun, 15)
            self.assertEqual(runner.descendants(), [])
            self.assertFalse(os.path.exists(self.place.root + "/run"))

    def test_package_lists(self):
        """Each package stands once, in the list of the set that needs it first, and no list holds one that no row names."""
        lists = {}
        for kind in ("light", "heavy"):
            with open(os.path.join(runner.HERE, "packages-%s.txt" % kind)) as file:
                lists[kind] = file.read().split()
        named = {kind: {package for row in run.SETS[kind] for package in row.packages} for kind in ("light", "heavy")}
        self.assertEqual(lists["light"], sorted(named["light"]))
        self.assertEqual(lists["heavy"], sorted(named["heavy"] - named["light"]))

    def test_rows_are_sound(self):
        names = [row.name for row in run.SETS["all"]]
        self.assertEqual(len(names), len(set(names)))
        for row in run.SETS["all"]:
            self.assertTrue(row.seen and row.needs and row.packages and row.expect, row.name)
            self.assertIn("exit", row.compare, row.name)
            for argument in row.argv:
                if argument.startswith("@"):
                    self.assertTrue(os.path.isfile(os.path.join(runner.INPUTS, argument[1:])), argument)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
