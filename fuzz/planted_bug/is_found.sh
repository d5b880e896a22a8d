#!/bin/sh
# is_found.sh FUZZER RUNS MAX_LEN CORPUS: passes when the fuzzer reports a fault within so many inputs, by a line `==<process>==ERROR: `.
set -u
fuzzer=$PWD/$1 runs=$2 max_len=$3 seeds=$PWD/$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/corpus"
[ ! -d "$seeds" ] || cp -L "$seeds"/* "$folder/corpus/"
# Its own status for a crash is 77, which would count as skipped.
"$fuzzer" -error_exitcode=1 -runs="$runs" -seed=1 -max_len="$max_len" -len_control=0 -artifact_prefix="$folder/" "$folder/corpus" >"$folder/log" 2>&1
status=$?
if [ $status -eq 77 ]; then
  cat "$folder/log"
  exit 77
fi
if [ $status -eq 0 ]; then
  tail -n 3 "$folder/log"
  echo "the fault was not found in $runs runs"
  exit 1
fi
if ! grep -E '^==[0-9]+==ERROR: ' "$folder/log"; then
  tail -n 40 "$folder/log"
  echo "the report has no line ==<process>==ERROR:"
  exit 1
fi
