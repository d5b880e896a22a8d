#!/bin/sh
# mutator_test.sh WORKSPACE: passes when what fuzz/make makes for AFL++ of a target's changes of streams makes nothing but streams, of all
# operations, the same again from the same seed; and when AFL++ with it, and nothing else, comes to a stream that a small program looks for.
set -u
root=$(dirname "$(realpath "$1")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$root/fuzz/make" --out "$folder" --only fuzz_ops --only fuzz_misuse --mutators-only >"$folder/log" 2>&1 || {
  cat "$folder/log"
  echo "the changes of streams are not built as a library"
  exit 1
}
python3 -B "$root/fuzz/planted_bug/mutator.py" "$folder/fuzz_ops_mutator.so" "$folder/fuzz_misuse_mutator.so" || exit 1
for tool in afl-clang-fast afl-fuzz; do
  if ! command -v $tool >/dev/null 2>&1; then
    echo "skipped: no $tool is installed (Debian: afl++)"
    exit 77
  fi
done
export AFL_QUIET=1 AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_BENCH_UNTIL_CRASH=1
export AFL_FORKSRV_INIT_TMOUT=60000 AFL_CUSTOM_MUTATOR_LIBRARY="$folder/fuzz_ops_mutator.so" AFL_CUSTOM_MUTATOR_ONLY=1 AFL_DISABLE_TRIM=1
cat >"$folder/looks.c" <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  uint8_t data[8192];
  const ssize_t size = read(0, data, sizeof(data));
  // By bytes, most inputs would be of another length.
  if (size < 8 || size % 8 != 0) {
    _exit(1);
  }
  for (ssize_t i = 8; i + 16 <= size; i += 8) {
    if (data[i] == 3 && data[i + 8] == 7) {
      abort();
    }
  }
  return 0;
}
END
afl-clang-fast -O1 "$folder/looks.c" -o "$folder/looks" >"$folder/log" 2>&1 || {
  cat "$folder/log"
  exit 1
}
mkdir "$folder/seeds"
printf '12345678' >"$folder/seeds/one"
afl-fuzz -s 1 -t 20000 -m none -V 60 -i "$folder/seeds" -o "$folder/out" -- "$folder/looks" >"$folder/log" 2>&1
for found in "$folder"/out/default/crashes/id:*; do
  if [ ! -e "$found" ]; then
    tail -n 40 "$folder/log"
    echo "the stream was not found"
    exit 1
  fi
done
for input in "$folder"/out/default/queue/id:* "$folder"/out/default/crashes/id:*; do
  if [ $(($(wc -c <"$input") % 8)) -ne 0 ]; then
    echo "$input is no whole stream"
    exit 1
  fi
done
