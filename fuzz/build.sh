#!/bin/sh
# Compiles for libFuzzer, with the newest clang that has it:
#
#   build.sh allocator OUT.a PROFILE SANITIZERS FLAGS SOURCE...           the units among the sources, as an archive
#   build.sh fuzzer OUT PROFILE SANITIZERS FLAGS ALLOCATOR.a SOURCE...    a unit among the sources comes before that of the archive
#   build.sh find                                                         prints the clang, or fails
#
# Where no clang has it the archive is empty and the fuzzer is a script that says so and ends with 77.
set -eu

find_clang() {
  for clang in ${MI_FUZZ_CC:-clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang}; do
    library=$($clang --print-file-name=libclang_rt.fuzzer-"$(uname -m)".a 2>/dev/null) || continue
    [ -e "$library" ] || library=$($clang --print-file-name=libclang_rt.fuzzer.a 2>/dev/null)
    if [ -e "$library" ]; then
      echo "$clang"
      return 0
    fi
  done
  return 1
}

what=$1
clang=$(find_clang) || clang=
if [ "$what" = find ]; then
  [ -n "$clang" ] || exit 1
  echo "$clang"
  exit 0
fi
out=$2 profile=$3 sanitizers=$4 more=$5
shift 5

if [ -z "$clang" ]; then
  case $what in
    allocator) : >"$out" ;;
    fuzzer)
      # shellcheck disable=SC2016
      printf '#!/bin/sh\necho "skipped: no clang with libFuzzer is installed (Debian: clang and libclang-rt-dev)" >&2\nexit 77\n' >"$out"
      chmod +x "$out"
      ;;
  esac
  exit 0
fi

flags="-std=gnu11 -O1 -g -fPIC -fno-omit-frame-pointer -fno-builtin -fexceptions -pthread"
flags="$flags -fsanitize=fuzzer-no-link,$sanitizers -fno-sanitize-recover=$sanitizers"
paths="-I. -Iinclude -Ipolicy/profiles/$profile"
case $what in
  allocator)
    folder=$out.objects
    mkdir -p "$folder"
    for source in "$@"; do
      case $source in
        *.c)
          # shellcheck disable=SC2086
          $clang $flags $more $paths -c "$source" -o "$folder/$(echo "${source%.c}" | tr / _).o"
          ;;
      esac
    done
    rm -f "$out"
    ar rcs "$out" "$folder"/*.o
    rm -rf "$folder"
    ;;
  fuzzer)
    allocator=$1
    shift
    units=
    for source in "$@"; do
      case $source in *.c) units="$units $source" ;; esac
    done
    # shellcheck disable=SC2086
    $clang $flags $more $paths -fsanitize=fuzzer $units "$allocator" -o "$out"
    ;;
esac
