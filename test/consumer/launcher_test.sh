#!/bin/sh
# What `bazel run //:with_<variant> -- program` promises: launcher_test.sh launcher soname
set -eu
launcher=$PWD/$1
soname=$2
status=0

expect() {
  if [ "$2" != "$3" ]; then
    echo "$1: '$2' is not '$3'"
    status=1
  fi
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
library=$(dirname "$(readlink -f "$launcher")")/$soname
unset LD_PRELOAD

expect "directory" "$(BUILD_WORKING_DIRECTORY=$scratch "$launcher" pwd)" "$scratch"
expect "preload" "$("$launcher" sh -c 'echo $LD_PRELOAD')" "$library"
expect "ours goes before the caller's" "$(LD_PRELOAD=libc.so.6 "$launcher" sh -c 'echo $LD_PRELOAD')" "$library:libc.so.6"
expect "it is mapped" "$("$launcher" sh -c 'grep -c -F "/'"$soname"'" /proc/$$/maps >/dev/null && echo yes')" yes
expect "arguments" "$("$launcher" printf '%s|' 'a b' '' '*')" "a b||*|"
expect "environment" "$(BUILD_WORKING_DIRECTORY=$scratch BUILD_WORKSPACE_DIRECTORY=x "$launcher" env | grep -c '^BUILD_' || true)" 0
code=0
"$launcher" sh -c 'exit 7' || code=$?
expect "status" $code 7
code=0
"$launcher" 2>/dev/null || code=$?
expect "no program" $code 127
# The program takes the launcher's place: there is no shell left above it.
expect "process" "$(sh -c 'echo $$; exec "$0" sh -c "echo \$\$"' "$launcher" | uniq | wc -l)" 1
exit $status
