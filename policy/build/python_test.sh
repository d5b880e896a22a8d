#!/bin/sh
# Runs a test that is written in Python: python_test.sh script [argument...]
# Folders of a build are read-only, so nothing compiled is kept.
exec python3 -B "$@"
