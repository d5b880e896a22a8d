#!/bin/sh
# What Bazel runs every test under. A test that ends with 77 could not do its work on this machine and has said why: Bazel has no
# word for that, so it counts as passed here, and .ci/run counts it as skipped by the line below.
"$@"
status=$?
if [ "$status" -eq 77 ]; then
  echo "TEST SKIPPED"
  status=0
fi
exit "$status"
