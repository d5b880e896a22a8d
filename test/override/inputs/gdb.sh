# Owns: the work of the gdb row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
cat > small.c <<'CODE'
#include <stdio.h>
#include <stdlib.h>
struct node { struct node* next; int value; char name[24]; };
static int visit(struct node* n, int depth) { return n == NULL ? depth : n->value + visit(n->next, depth + 1); }
int main(void) {
  struct node* list = NULL;
  for (int i = 0; i < 20; i++) {
    struct node* n = calloc(1, sizeof *n);
    n->value = i * i; n->next = list; snprintf(n->name, sizeof n->name, "node %d", i); list = n;
  }
  printf("sum %d\n", visit(list, 0));
  while (list != NULL) { struct node* next = list->next; free(list); list = next; }
  return 5;
}
CODE
gcc -g -O0 -no-pie small.c -o small
cat > commands <<'GDB'
set pagination off
set confirm off
set disable-randomization off
set debuginfod enabled off
set print address off
set width 0
break visit if depth == 15
run
print *n
print n->name
backtrace 4
info locals
python print("python", sum(len(str(gdb.parse_and_eval("n->value"))) for _ in range(20000)))
set can-use-hw-watchpoints 0
watch n->value
continue 1
delete
up 3
print *n@1
disassemble /s visit
ptype struct node
info line visit
continue
info functions ^visit$
GDB
gdb -q -batch -nx -x commands ./small 2> err.txt | grep -v -E '^(warning:|\[|Using host|This GDB)' || { cat err.txt >&2; exit 1; }
echo "gdb done"
