# Owns: the work of the grep, sed, find and diff row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
awk 'BEGIN { for (i = 0; i < 50000; i++) printf "%d user%d@host%d.example path=/srv/%x/%d status=%d\n", i, i % 977, i % 89, i * 2654435761 % 4294967296, i, i % 600 }' > log.txt
grep -c 'status=404$' log.txt
grep -E '(user1[0-9]+@host(7|8[0-9])\.).*status=5(0[0-4]|1[0-9])$' log.txt | sha256sum
grep -P '(?<=path=)/srv/[0-9a-f]*dead[0-9a-f]*(?=/)' log.txt | sed -n 1,3p
grep -o -E '[0-9a-f]{8}/[0-9]+' log.txt | sort | md5sum
seq 1 3000 | sed 's/.*/status=&9$/' > patterns
grep -F -c -f <(sed 's/\$//' patterns) log.txt
grep -i -w 'USER97@HOST5' log.txt | wc -l || true
printf 'caf\xc3\xa9 na\xc3\xafve \xce\xa9mega\n' | grep -i -o 'Ωmega'
sed -E 's#^([0-9]+) user([0-9]+)@(host[0-9]+)#\3:\2:\1#; /status=5/!d; s/path=([^ ]*)/<\1>/g' log.txt | sha256sum
sed -n '1~1000{h;s/ .*//;G;s/\n/ | /;p}' log.txt | md5sum
sed ':a;N;$!ba;s/\n/;/g' <(head -20000 log.txt) | wc -c
mkdir -p tree
for a in 1 2 3 4 5; do for b in 1 2 3 4 5 6 7 8; do mkdir -p "tree/$a/$b"; for c in 1 2 3 4 5; do echo "$a$b$c" > "tree/$a/$b/file$c.txt"; done; done; done
find tree -type f | wc -l
find tree -name 'file[24].txt' -newer patterns -printf '%f %s %P\n' | sort | md5sum
find tree -type f -exec cat {} + | sort | uniq | wc -l
find tree -depth -path '*/3/*' -delete
find tree -type f -print0 | xargs -0 -n 20 -P 2 cat | sort | sha256sum
grep -r -l '44' tree | sort
awk '{ split($2, p, "@"); n[p[1]]++; s[p[2]] += $1 } END { for (k in n) m++; for (k in s) t += s[k]; print m, t }' log.txt
diff <(sed 's/status=404/status=405/' log.txt) log.txt | grep -c '^<' || true
echo "text tools done"
