#!/usr/bin/env python3
# Owns: the result of a test run as one line, from the events that Bazel wrote.
# May include: Python's standard library.
# Called by: .ci/run.
# Invariants: a test that was not built, not run or not judged counts as failed; a run without tests is a failure.
import json
import sys
import urllib.parse
import urllib.request

SKIPPED = "TEST SKIPPED"  # written by policy/build/run_test.sh


def skipped(event):
    """Whether the log of the test's last run says that it could not do its work on this machine."""
    for output in event.get("testActionOutput", []):
        if output.get("name") == "test.log" and output.get("uri", "").startswith("file:"):
            path = urllib.request.url2pathname(urllib.parse.urlparse(output["uri"]).path)
            try:
                with open(path, errors="replace") as log:
                    return any(line.strip() == SKIPPED for line in log)
            except OSError:
                return False
    return False


def main():
    path, status = sys.argv[1], int(sys.argv[2])
    verdict, could_not = {}, set()
    with open(path) as lines:
        for line in lines:
            if not line.strip():
                continue
            event = json.loads(line)
            name = event.get("id", {})
            # A test that is configured but never summed up was not built.
            if "targetConfigured" in name and "testSize" in event.get("configured", {}):
                verdict.setdefault(name["targetConfigured"]["label"], "NOT BUILT")
            if "testResult" in name and skipped(event.get("testResult", {})):
                could_not.add(name["testResult"]["label"])
            if "testSummary" in name and "testSummary" in event:
                verdict[name["testSummary"]["label"]] = event["testSummary"]["overallStatus"]
    passed = [t for t, v in verdict.items() if v in ("PASSED", "FLAKY")]
    failed = [t for t, v in verdict.items() if t not in passed]
    for test in sorted(failed):
        print("%s: %s" % (test, verdict[test]))
    for test in sorted(could_not):
        print("%s: could not be run on this machine, see its log" % test)
    failures = len(failed)
    if failures == 0 and status != 0:
        print("bazel ended with status %d" % status)
        failures = 1
    if not verdict and failures == 0:
        print("no test ran")
        failures = 1
    line = "%d passed, %d failed" % (len([t for t in passed if t not in could_not]), failures)
    if could_not:
        line += ", %d skipped" % len(could_not)
    print(line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
