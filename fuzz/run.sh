#!/bin/sh
# Runs a fuzzer: run.sh FUZZER NAME MAX_LEN ARGUMENT... [--smoke]
#
# `bazel run //fuzz:NAME_VARIANT -- ARGUMENT...` comes here; the arguments are libFuzzer's. What is found new goes to
# ~/.cache/mi-fuzz/NAME (MI_FUZZ_CORPUS says where else), what crashes beside where bazel was called. --smoke: five seconds, nothing is kept.
set -eu
fuzzer=$PWD/$1 name=$2 max_len=$3
shift 3
smoke=
count=$#
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $word in
    --smoke) smoke=1 ;;
    -dict=*) set -- "$@" "-dict=$PWD/${word#-dict=}" ;;
    *) set -- "$@" "$word" ;;
  esac
done
seeds=
for folder in "fuzz/corpus/$name" "fuzz/crashes/$name"; do
  [ ! -d "$folder" ] || seeds="$seeds $PWD/$folder"
done
# Its own status for a crash is 77, which would count as skipped.
set -- -error_exitcode=1 -max_len="$max_len" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 "$@"
if [ -n "$smoke" ]; then
  corpus=$(mktemp -d)
  trap 'rm -rf "$corpus"' EXIT
  log=$(mktemp)
  trap 'rm -rf "$corpus" "$log"' EXIT
  status=0
  # shellcheck disable=SC2086
  "$fuzzer" -max_total_time=5 -artifact_prefix="${TEST_UNDECLARED_OUTPUTS_DIR:-$corpus}/" "$@" "$corpus" $seeds >"$log" 2>&1 || status=$?
  cat "$log"
  [ "$status" -eq 0 ] || exit "$status"
  # shellcheck disable=SC2086
  count=$(find -L $seeds -type f | wc -l)
  ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ "$count" -eq 0 ] || [ "${ran:-0}" -lt "$count" ]; then
    echo "of $count kept inputs, ${ran:-none} ran"
    exit 1
  fi
  exit 0
fi
corpus=${MI_FUZZ_CORPUS:-$HOME/.cache/mi-fuzz/$name}
mkdir -p "$corpus"
cd "${BUILD_WORKING_DIRECTORY:-$PWD}"
# shellcheck disable=SC2086
exec "$fuzzer" -artifact_prefix="$PWD/$name-" "$@" "$corpus" $seeds
