#!/bin/sh
# What the launcher of the build promises, with a stand-in for Bazel: bazelw_test.sh bazelw
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
mkdir -p "$scratch/repo/policy/build" "$scratch/repo/sub" "$scratch/bin" "$scratch/tools" "$scratch/elsewhere"
cp "$1" "$scratch/repo/bazelw"
scratch=$(cd "$scratch" && pwd -P)
printf 'bazel-bootstrap build\nno-such-package-at-all test\n' >"$scratch/repo/policy/build/packages.txt"
printf '#!/bin/sh\nfor a; do printf "%%s|" "$a"; done\necho "@$PWD ${MI_BAZELW_DIRECTORY:-}"\n' >"$scratch/bin/bazel"
chmod +x "$scratch/bin/bazel"
# A machine with a shell and little else.
for tool in sh dirname id cut getent grep tail mktemp rm chmod cat env; do
  ln -s "$(command -v $tool)" "$scratch/tools/$tool"
done
unset BAZEL MI_BAZELW_NO_INSTALL
cd "$scratch/repo"

expect() {
  if [ "$2" != "$3" ]; then
    echo "$1: '$2' is not '$3'"
    status=1
  fi
}

run() {
  env PATH="$path" "$@" 2>&1
}

path=$scratch/tools
code=0
said=$(run ./bazelw build //:x) || code=$?
expect "no bazel, no apt: status" $code 1
expect "no bazel, no apt: lines" "$(echo "$said" | wc -l)" 1
case $said in
  "bazelw: there is no bazel"*) ;;
  *) expect "no bazel, no apt: message" "$said" "bazelw: there is no bazel..." ;;
esac

code=0
said=$(run env BAZEL=/nowhere/bazel ./bazelw build) || code=$?
expect "BAZEL that is not there" "$code $said" "1 bazelw: BAZEL=/nowhere/bazel is no program"

path=$scratch/bin:$scratch/tools
expect "arguments" "$(run ./bazelw build '//a b:c' -- -x)" "build|--noshow_progress|//a b:c|--|-x|@$scratch/repo "
expect "startup options" "$(run ./bazelw --nohome_rc query //:x)" "--nohome_rc|query|//:x|@$scratch/repo "
expect "program's words" "$(run ./bazelw run //:x -- run --config=clang)" "run|--noshow_progress|//:x|--|run|--config=clang|@$scratch/repo "
cd sub
expect "inside" "$(run ../bazelw version)" "version|@$scratch/repo/sub "
cd "$scratch/elsewhere"
expect "outside" "$(run ../repo/bazelw version)" "version|@$scratch/repo $scratch/elsewhere"
cd "$scratch/repo"

mv "$scratch/bin/bazel" "$scratch/bin/other"
expect "BAZEL" "$(run env BAZEL="$scratch/bin/other" ./bazelw version)" "version|@$scratch/repo "
mv "$scratch/bin/other" "$scratch/bin/bazelisk"
expect "bazelisk" "$(run ./bazelw version)" "version|@$scratch/repo "

cp "$scratch/bin/bazelisk" "$scratch/bin/clang-19"
expect "clang" "$(run ./bazelw build --config=clang //:x)" "build|--noshow_progress|--config=clang|--repo_env=CC=$scratch/bin/clang-19|//:x|@$scratch/repo "

# Debian, but nobody who may install: a build goes on, and says once what its tests will miss.
printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$scratch/bin/id"
chmod +x "$scratch/bin/dpkg-query" "$scratch/bin/id"
expect "packages of tests" "$(run ./bazelw test //...)" \
  "bazelw: going on without no-such-package-at-all: installing needs root or sudo without a password
test|--noshow_progress|//...|@$scratch/repo "
expect "a build needs no package of tests" "$(run ./bazelw build //...)" "build|--noshow_progress|//...|@$scratch/repo "
expect "told not to" "$(run env MI_BAZELW_NO_INSTALL=1 ./bazelw test //...)" "test|--noshow_progress|//...|@$scratch/repo "

# Root, and apt-get does it or not.
printf '#!/bin/sh\necho 0\n' >"$scratch/bin/id"
printf '#!/bin/sh\n[ "$1" = update ] || echo "E: Unable to locate package" >&2\n[ "$1" = update ]\n' >"$scratch/bin/apt-get"
printf '#!/bin/sh\nwhile :; do case $1 in *=*) shift ;; *) break ;; esac; done\nexec "$@"\n' >"$scratch/bin/env"
printf '#!/bin/sh\ncat >/dev/null\n' >"$scratch/bin/tee"
printf '#!/bin/sh\n' >"$scratch/bin/chmod"
"$(command -v chmod)" +x "$scratch/bin/apt-get" "$scratch/bin/env" "$scratch/bin/tee" "$scratch/bin/chmod"
run_root() {
  PATH=$path "$@" 2>&1
}
expect "apt-get fails" "$(run_root ./bazelw test //...)" \
  "bazelw: installing with apt-get: no-such-package-at-all
bazelw: going on without no-such-package-at-all: apt-get failed: E: Unable to locate package
test|--noshow_progress|//...|@$scratch/repo "
rm "$scratch/bin/bazelisk"
code=0
said=$(run_root ./bazelw build //:x) || code=$?
expect "apt-get fails and no bazel" "$code $said" \
  "1 bazelw: installing with apt-get: bazel-bootstrap
bazelw: there is no bazel, and apt-get failed: E: Unable to locate package"
exit $status
