# Owns: the work of the small tools row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
case $1 in
file)
  seq 1 1000 > text.txt; gzip -n -k text.txt; tar -cf a.tar --mtime=@0 --owner=0 --group=0 text.txt; printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\10\2\0\0\0' > p.png
  printf '#!/bin/sh\n' > s.sh; printf '{"a": [1, 2]}' > j.json; cp /bin/true elf; cp "$(readlink -f /lib/*/libc.so.6)" lib.so
  file -b text.txt text.txt.gz a.tar p.png s.sh j.json | sed 's/last modified.*//'
  file -bi elf lib.so p.png j.json
  file -b elf | cut -c1-30
  find /usr/lib /usr/bin -maxdepth 1 -type f | sort | sed -n 1,600p | file -b -f - | sed 's/BuildID.*//' | sort | uniq -c | sort -rn | sha256sum
  ;;
ssh-keygen)
  for kind in 'rsa -b 2048' 'ecdsa -b 256' ed25519; do
    # shellcheck disable=SC2086
    ssh-keygen -q -t $kind -N 'a pass phrase' -C comment -f "key.${kind%% *}"
    ssh-keygen -y -P 'a pass phrase' -f "key.${kind%% *}" | cut -d' ' -f1,2 | cmp - <(cut -d' ' -f1,2 < "key.${kind%% *}.pub") && echo "${kind%% *} agrees"
    ssh-keygen -l -f "key.${kind%% *}.pub" | sed 's/SHA256:[^ ]*/HASH/'
  done
  ssh-keygen -q -t ed25519 -N '' -f plain
  seq 1 5000 > data
  ssh-keygen -Y sign -q -f plain -n file data
  echo "me $(cat plain.pub)" > allowed
  ssh-keygen -Y verify -f allowed -I me -n file -s data.sig < data | sed 's/SHA256:.*/HASH/'
  ssh-keygen -q -s plain -I id -n user -V always:forever key.rsa.pub && ssh-keygen -L -f key.rsa-cert.pub | grep -E 'Type|Principals|user'
  for i in $(seq 1 120); do echo "host$i.example $(cut -d' ' -f1,2 plain.pub)"; done > known
  ssh-keygen -q -H -f known 2> /dev/null; ssh-keygen -F host77.example -f known | sed -n 's/found: line/found: line/p'
  ;;
gpg)
  export GNUPGHOME=$PWD/g
  mkdir -m 700 g
  trap 'gpgconf --kill all' EXIT
  gpg --version | sed -n 's/^gpg (GnuPG) [0-9.]*/gpg/p'
  gpg -q --batch --passphrase '' --quick-gen-key 'Test <t@example.org>' ed25519 sign never 2> /dev/null
  print=$(gpg --list-keys --with-colons t@example.org | sed -n 's/^fpr:*\([0-9A-F]*\):/\1/p' | sed -n 1,1p)
  gpg -q --batch --passphrase '' --quick-add-key "$print" cv25519 encr never 2> /dev/null
  gpg -q --batch --passphrase '' --quick-gen-key 'Other <o@example.org>' rsa2048 sign never 2> /dev/null
  gpg --list-keys --with-colons 2> /dev/null | grep -v '^tru:' | cut -d: -f1,3,4 | sort | uniq -c
  seq 1 100000 > data
  gpg -q --batch --trust-model always -e -r t@example.org -o data.gpg data
  gpg -q --batch -d data.gpg 2> /dev/null | cmp - data && echo decrypted
  gpg -q --batch -u t@example.org --detach-sign data
  gpg --batch --status-fd 1 --verify data.sig data 2> /dev/null | grep -o -E 'GOODSIG|VALIDSIG'
  gpg -q --batch --passphrase secret --pinentry-mode loopback --s2k-count 65536 -c -o sym.gpg data
  gpg -q --batch --passphrase secret --pinentry-mode loopback -d sym.gpg 2> /dev/null | sha256sum
  gpg -q --armor --export t@example.org | gpg --batch --list-packets 2> /dev/null | grep -c 'packet:'
  echo changed >> data
  { gpg --batch --status-fd 1 --verify data.sig data 2> /dev/null || true; } | grep -o BADSIG
  ;;
openssl)
  seq 1 200000 > data
  for digest in sha256 sha3-512 blake2b512 md5; do openssl dgst -$digest data; done
  openssl enc -aes-256-cbc -pbkdf2 -iter 10000 -S 0011223344556677 -k pass -in data -out sealed && openssl enc -d -aes-256-cbc -pbkdf2 -iter 10000 -S 0011223344556677 -k pass -in sealed | cmp - data && sha256sum sealed
  openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 30 -subj /CN=test 2> /dev/null
  openssl verify -CAfile cert.pem cert.pem
  openssl dgst -sha256 -sign key.pem -out sig data && openssl dgst -sha256 -verify <(openssl x509 -in cert.pem -pubkey -noout) -signature sig data
  openssl list -digest-algorithms | wc -l
  ;;
esac
echo "$1 done"
