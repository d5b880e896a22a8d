# Owns: the work of the man row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
mkdir -p pages/man1
{ echo '.TH PAGE 1 2020-01-01 "version 1" "Manual"'
  echo '.SH NAME'; echo 'page \- a page for a test'
  for i in $(seq 1 250); do
    echo ".SH SECTION $i"; echo ".TP"; echo ".B option$i"; echo "Text about \\fIoption$i\\fR that is long enough to be filled and adjusted over more than a single line of output."
    echo ".TS"; echo "l l l."; echo "a	b	$i"; echo "long entry	other	x"; echo ".TE"
  done; } | sed '1i '"'"'\\" t' > pages/man1/page.1
gzip -n -k pages/man1/page.1
export MANPAGER=cat MANWIDTH=80 MANROFFOPT=
# The sandboxed parts: decompression, conversion and col run under man's own seccomp filter.
man -l pages/man1/page.1.gz > from_gz
rm pages/man1/page.1.gz
man -l pages/man1/page.1 > plain
cmp from_gz plain
wc plain
sha256sum plain
tail -2 plain
man -M pages -w page | sed 's#.*/pages#pages#'
mandb -q -c -u pages 2> /dev/null || true
man -M pages -f page 2>&1 | sed 's/  */ /g'
lexgrog pages/man1/page.1 | sed 's#.*: ##'
manpath -q > /dev/null
groff -man -t -Tps pages/man1/page.1 | grep -v '^%%' | wc -l
echo "man done"
