# Owns: the work of the gcc row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
count=${1:-200}
awk -v n="$count" 'BEGIN {
  print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
  for (i = 0; i < n; i++) {
    printf "struct s%d { int a[%d]; struct s%d* next; const char* name; };\n", i, i % 13 + 1, i
    printf "static unsigned f%d(unsigned x) {\n  struct s%d* p = calloc(1, sizeof *p);\n  for (unsigned i = 0; i < %d; i++) p->a[i %% %d] += (int)(x * %d + i) ^ (int)(x >> %d);\n", i, i, i % 40 + 3, i % 13 + 1, i * 7 + 1, i % 17
    printf "  switch (x %% 5) { case 0: x += (unsigned)p->a[0]; break; case 1: x ^= 0x%xu; break; case 2: x = x * %d + 1; break; default: x -= %d; }\n  p->name = \"function number %d\";\n  x += (unsigned)strlen(p->name);\n  free(p);\n  return x;\n}\n", i * 2654435761 % 4294967296, i * 3 + 1, i, i
  }
  print "int main(void) {\n  unsigned x = 1;"
  for (i = 0; i < n; i++) printf "  x = f%d(x);\n", i
  print "  printf(\"%u\\n\", x);\n  return 0;\n}"
}' > big.c
gcc -O2 -g -c big.c -o big.o
sha256sum big.o
gcc -O1 -S big.c -o - | sha256sum
gcc big.o -o big
./big
gcc -O0 -fsyntax-only -x c - <<< 'int main(void) { return undeclared; }' 2>&1 | sed -n 1,3p || true
cat > lto1.c <<< 'int twice(int x) { return 2 * x; }'
cat > lto2.c <<< '#include <stdio.h>
int twice(int); int main(void) { printf("lto %d\n", twice(21)); return 0; }'
gcc -O2 -flto=2 lto1.c lto2.c -o lto
./lto
nm big.o | wc -l
objdump -d big.o | md5sum
echo "gcc done"
