#!/bin/sh
# Owns: making the API pages: docs/pages.sh FOLDER leaves them in FOLDER/html. Needs doxygen and python3.
# May include: nothing.
# Called by: people; docs/pages_test.py, which gives other headers in MI_DOCS_INPUT.
# Invariants: fails, with doxygen's own words, where anything of the interface is not documented.
set -e
[ $# = 1 ] || { echo "usage: docs/pages.sh FOLDER" >&2; exit 2; }
here=$(dirname "$0")
mkdir -p "$1"
export MI_DOCS_OUT="$1" MI_DOCS_HERE="$here" MI_DOCS_INPUT="${MI_DOCS_INPUT:-$here/../include}"
exec doxygen "$here/Doxyfile"
