# Owns: that the last line of .ci/run tells the truth about what Bazel reported.
# May include: Python's standard library.
# Called by: the build, as a test.
# Invariants: every way in which a test can fail to pass is a row.
"""summary_test.py SUMMARY"""
import json
import os
import subprocess
import sys
import tempfile


def configured(label):
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": "cc_test rule", "testSize": "SMALL"}}


def judged(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


def ran(label, log):
    return {"id": {"testResult": {"label": label}}, "testResult": {"testActionOutput": [{"name": "test.log", "uri": "file://" + log}]}}


LIBRARY = {"id": {"targetConfigured": {"label": "//:l"}}, "configured": {"targetKind": "cc_library rule"}}

# events, status of bazel, last line, status
ROWS = [
    ([configured("//:a"), judged("//:a", "PASSED"), LIBRARY], 0, "1 passed, 0 failed", 0),
    ([configured("//:a"), judged("//:a", "PASSED"), configured("//:b"), judged("//:b", "FAILED")], 3, "1 passed, 1 failed", 1),
    ([configured("//:a"), judged("//:a", "TIMEOUT")], 3, "0 passed, 1 failed", 1),
    ([configured("//:a"), configured("//:b"), judged("//:b", "NO_STATUS")], 1, "0 passed, 2 failed", 1),
    ([configured("//:a"), judged("//:a", "PASSED")], 1, "1 passed, 1 failed", 1),
    ([configured("//:a"), judged("//:a", "FLAKY")], 0, "1 passed, 0 failed", 0),
    ([], 4, "0 passed, 1 failed", 1),
    ([LIBRARY], 0, "0 passed, 1 failed", 1),
    ([configured("//:a"), ran("//:a", "SKIP"), judged("//:a", "PASSED"), configured("//:b"), ran("//:b", "PLAIN"), judged("//:b", "PASSED")], 0,
     "1 passed, 0 failed, 1 skipped", 0),
]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("SKIP", "why\nTEST SKIPPED\n"), ("PLAIN", "it said TEST SKIPPED once\n")):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        for number, (events, code, line, status) in enumerate(ROWS, 1):
            path = os.path.join(folder, "events")
            with open(path, "w") as f:
                for event in events:
                    f.write(json.dumps(event).replace("file://", "file://" + folder + "/") + "\n")
            p = subprocess.run([sys.executable, "-B", sys.argv[1], path, str(code)], stdout=subprocess.PIPE, text=True)
            said = p.stdout.splitlines()[-1]
            if (said, p.returncode) != (line, status):
                print("row %d: `%s` and status %d, expected `%s` and %d" % (number, said, p.returncode, line, status))
                bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
