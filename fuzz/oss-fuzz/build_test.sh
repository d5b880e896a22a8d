#!/bin/sh
# build_test.sh WORKSPACE [TARGET...]: runs the build scripts of the services as these do, but without their container, with the clang of this
# machine; passes when each fuzzer runs the inputs, dictionary and options that lie beside it. No TARGET: all, which takes minutes.
set -eu
root=$(dirname "$(realpath "$1")")
shift
clang=$("$root/fuzz/build.sh" find) || {
  echo "skipped: no clang with libFuzzer is installed (Debian: clang and libclang-rt-dev)"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "$1"
  exit 1
}

for key in homepage main_repo primary_contact language sanitizers fuzzing_engines; do
  grep -q "^$key:" "$root/fuzz/oss-fuzz/project.yaml" || fail "fuzz/oss-fuzz/project.yaml has no $key"
done
grep -q '^language: c$' "$root/.clusterfuzzlite/project.yaml" || fail ".clusterfuzzlite/project.yaml has no language"
for file in "$root/fuzz/oss-fuzz/Dockerfile" "$root/.clusterfuzzlite/Dockerfile"; do
  grep -q '^FROM gcr.io/oss-fuzz-base/base-builder' "$file" || fail "$file builds on no image of the service"
  # shellcheck disable=SC2016
  grep -q '\$SRC/build.sh$' "$file" || fail "$file has no build.sh"
done

mkdir "$folder/src" "$folder/out"
ln -s "$root" "$folder/src/mimalloc-hardened"
flags="-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link"
cxx=$(echo "$clang" | sed 's/clang/clang++/')
command -v "$cxx" >/dev/null || cxx=$clang
export SRC="$folder/src" OUT="$folder/out" CC="$clang" CXX="$cxx" CFLAGS="$flags" CXXFLAGS="$flags" LIB_FUZZING_ENGINE=-fsanitize=fuzzer
if [ $# -gt 0 ]; then
  "$root/fuzz/oss-fuzz/build.sh" "$@" >"$folder/log" 2>&1 || fail "$(tail -n 40 "$folder/log")"
else
  "$root/.clusterfuzzlite/build.sh" >"$folder/log" 2>&1 || fail "$(tail -n 40 "$folder/log")"
fi

count=0
for fuzzer in "$OUT"/fuzz_*; do
  [ -x "$fuzzer" ] || continue
  # As the service's own check does: what it calls a target has this name in it.
  grep -q LLVMFuzzerTestOneInput "$fuzzer" || fail "$fuzzer is no fuzzer"
  inputs=$folder/inputs-$(basename "$fuzzer")
  mkdir "$inputs"
  python3 -m zipfile -e "${fuzzer}_seed_corpus.zip" "$inputs"
  max_len=$(sed -n 's/^max_len = //p' "$fuzzer.options")
  grep -q '^\[libfuzzer\]$' "$fuzzer.options" || fail "$fuzzer.options has no section of libFuzzer"
  set -- -error_exitcode=1 -runs=0 -print_final_stats=1 -max_len="$max_len" -artifact_prefix="$folder/"
  [ ! -e "$fuzzer.dict" ] || set -- "$@" -dict="$fuzzer.dict"
  (cd "$folder" && "$fuzzer" "$@" "$inputs") >"$folder/log" 2>&1 || fail "$(tail -n 40 "$folder/log")"
  ran=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log")
  # libFuzzer adds the empty input.
  [ "$ran" -gt "$(find "$inputs" -type f | wc -l)" ] || fail "$(basename "$fuzzer") ran $ran inputs of $(find "$inputs" -type f | wc -l)"
  count=$((count + 1))
done
[ "$count" -gt 0 ] || fail "nothing was built"
echo "$count fuzzers run their inputs"
