# Owns: the work of the coreutils row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
seq 1 120000 | awk '{ print ($1 * 7919) % 1000003, "line", $1 }' > big
sort -n big > sorted
sort -k3,3r -S 2M --parallel=2 big | sha256sum
wc big
split -l 8000 -d big part.
ls part.* | wc -l
cat part.* | cmp - big
sha256sum part.00 part.14
md5sum sorted
b2sum sorted
base64 sorted | cksum
base64 -d < <(base64 sorted) | cmp - sorted
cut -d' ' -f1 sorted | uniq -c | sort -rn > counted && head -3 counted
tr 0-9 a-j < big | fold -w 33 | sum
paste big sorted | shuf --random-source=big -n 5000 | sha1sum
join <(sort part.00) <(sort part.00 | head -1000) | wc -l
tac big | rev | nl | tail -2
comm -12 <(sort part.01) <(sort big) | wc -l
factor 18446744073709551557 1234567890123456789
expr 123456789012345678901234567890 \* 987654321
numfmt --to=iec 123456789012
printf '%s\n' a b c d e f | tsort 2> /dev/null || echo odd
od -A d -t x1 big | tail -2
csplit -s -z part.02 '/ line 18000$/' '{0}'
wc -l xx*
mkdir -p tree/a/b/c && cp part.0[0-3] tree/a/b/c && cp -r tree copy && du -s --apparent-size -b copy/a/b/c/part.00 && ls -lR --time-style=+ copy | awk '{ print $1, $5, $6 }' | grep part
pr -l 60 part.03 | sed 's/^[0-9][0-9-]* .*Page/Page/' | md5sum
head -c 4000000 /dev/zero | sha512sum
dd if=big of=copied bs=64k status=none && cmp big copied
rm -r tree copy
echo "coreutils done"
