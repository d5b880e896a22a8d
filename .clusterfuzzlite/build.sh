#!/bin/bash -eu
exec "$SRC/mimalloc-hardened/fuzz/oss-fuzz/build.sh"
