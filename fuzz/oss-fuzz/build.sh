#!/bin/bash
# Builds all targets into $OUT, as OSS-Fuzz and ClusterFuzzLite call it: in the checkout below $SRC, with CC, CFLAGS, CXX, CXXFLAGS and
# LIB_FUZZING_ENGINE of the service. Arguments, which services give none of, are names of targets: those alone.
set -eu

cd "$SRC/mimalloc-hardened"
only=()
for name in "$@"; do
  only+=(--only "$name")
done
python3 -B fuzz/make --out "$OUT" --seeds ${only[@]+"${only[@]}"}
