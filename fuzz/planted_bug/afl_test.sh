#!/bin/sh
# afl_test.sh WORKSPACE: builds a target with AFL++'s compiler and its driver for libFuzzer targets, with a fault in the allocator, and passes
# when AFL++ comes to an input that makes it tell `==<process>==ERROR: ` from one that does not.
set -u
make=$(dirname "$(realpath "$1")")/fuzz/make
for tool in afl-clang-fast afl-fuzz; do
  if ! command -v $tool >/dev/null 2>&1; then
    echo "skipped: no $tool is installed (Debian: afl++)"
    exit 77
  fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export AFL_QUIET=1 AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_BENCH_UNTIL_CRASH=1
export AFL_FORKSRV_INIT_TMOUT=60000 CC=afl-clang-fast CFLAGS="-O1 -g" LIB_FUZZING_ENGINE=-fsanitize=fuzzer
unset CXX CXXFLAGS
"$make" --out "$folder" --only fuzz_sizeclass --plant class_off_by_one >"$folder/log" 2>&1 || {
  tail -n 40 "$folder/log"
  echo "the target is not built by afl-clang-fast"
  exit 1
}
fuzzer=$folder/fuzz_sizeclass_secure
mkdir "$folder/seeds"
printf 'AFL++ begins here.' >"$folder/seeds/one"
if ! "$fuzzer" "$folder/seeds/one" >"$folder/log" 2>&1; then
  tail -n 20 "$folder/log"
  echo "the seed fails already"
  exit 1
fi
# It ends at the first crash.
afl-fuzz -s 1 -t 20000 -m none -V 120 -i "$folder/seeds" -o "$folder/out" -- "$fuzzer" >"$folder/log" 2>&1
grep -E 'execs_done|saved_crashes' "$folder/out/default/fuzzer_stats"
for crash in "$folder"/out/default/crashes/id:*; do
  if [ ! -e "$crash" ]; then
    tail -n 40 "$folder/log"
    echo "the fault was not found"
    exit 1
  fi
  "$fuzzer" "$crash" >"$folder/log" 2>&1
  if ! grep -E '^==[0-9]+==ERROR: fuzz: ' "$folder/log"; then
    tail -n 20 "$folder/log"
    echo "the report has no line ==<process>==ERROR: fuzz:"
    exit 1
  fi
done
