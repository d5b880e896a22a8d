#!/bin/sh
# Runs a test program with a library preloaded: preload_test.sh library program [argument...]
# The names are relative to the folder that the test starts in; the program may change its folder.
set -eu
library=$PWD/$1
program=$PWD/$2
shift 2
LD_PRELOAD=$library exec "$program" "$@"
