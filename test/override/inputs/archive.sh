# Owns: the work of the archive row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
mkdir -p tree/deep/er
for i in $(seq 1 15); do awk -v n="$i" 'BEGIN { for (i = 0; i < 3000; i++) print n, i * n % 977, "text of some length that repeats" }' > "tree/f$i"; done
head -c 3000000 /dev/zero > tree/deep/er/zero
ln -s ../f1 tree/deep/link
find tree -exec touch -h -d @1000000000 {} +
flags=(--sort=name --owner=0 --group=0 --numeric-owner)
tar "${flags[@]}" -cf a.tar tree
sha256sum a.tar
gzip -n -9 -k a.tar && sha256sum a.tar.gz
xz -T2 -4 -k a.tar && sha256sum a.tar.xz
xz -T1 -6 --lzma2=dict=8MiB -c a.tar | sha256sum
bzip2 -k a.tar && sha256sum a.tar.bz2
for z in gz xz bz2; do
  mkdir "out.$z"
  tar -xf "a.tar.$z" -C "out.$z"
  diff -r --no-dereference tree "out.$z/tree"
  echo "$z agrees"
done
tar -tvf a.tar --full-time | awk '{ print $1, $3, $6 }' | md5sum
gzip -t a.tar.gz && xz -t a.tar.xz && xz -l --robot a.tar.xz | tail -1
tar -c --listed-incremental=snap "${flags[@]}" tree | tar -t | wc -l
echo "archive done"
