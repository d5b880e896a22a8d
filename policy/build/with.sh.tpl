#!/bin/sh
# Runs a program with %{library} preloaded, in the folder that the caller stands in.
set -eu

fail() {
  echo "$(basename "$0"): $1" >&2
  exit 127
}

[ $# -gt 0 ] || fail "usage: $(basename "$0") program [argument...]"

# Bazel starts this through a link; the library stands beside the file itself.
library=$(dirname "$(readlink -f "$0")")/%{library}
[ -r "$library" ] || fail "$library is missing"
case $library in
  *[:\ ]*) fail "the loader cannot preload $library: its path has a space or a colon" ;;
esac

directory=${MI_BAZELW_DIRECTORY:-${BUILD_WORKING_DIRECTORY:-}}
[ -z "$directory" ] || cd "$directory"
# The program is the user's, not Bazel's.
unset MI_BAZELW_DIRECTORY BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY RUNFILES_DIR JAVA_RUNFILES PYTHON_RUNFILES

LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}" exec "$@"
