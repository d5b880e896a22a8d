// Owns: the smallest program that uses malloc, with a witness that this allocator served it.
// May include: the C library only; what it needs of the interface is declared here, since `malloc` of a program gives no headers.
// Called by: linked_test.py and the test targets, linked in every way that a user may choose.
// Invariants: prints one line when all is well; with the argument `twice` it frees a block twice; works without being linked with anything else than the allocator and the C library.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
bool mi_is_in_heap_region(const void* p);
int mi_version(void);
#ifdef __cplusplus
}
#endif

static int expect(bool ok, const char* what) {
  if (!ok) fprintf(stderr, "failed: %s\n", what);
  return ok ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "twice") == 0) {
    void* volatile p = malloc(100);
    free(p);
    free(p);
    return 0;
  }
  int failures = 0;
  for (size_t size = 0; size < 300000; size = size * 2 + 1) {
    char* p = (char*)malloc(size);
    char* q = (char*)calloc(1, size);
    failures += expect(p != NULL && q != NULL, "malloc and calloc give memory");
    failures += expect(mi_is_in_heap_region(p) && mi_is_in_heap_region(q), "it is this allocator's");
    if (size > 0) memset(p, 1, size);
    p = (char*)realloc(p, size + 100);
    failures += expect(p != NULL && mi_is_in_heap_region(p), "realloc is this allocator's");
    failures += expect(size == 0 || p[size - 1] == 1, "realloc keeps the content");
    free(q);
    free(p);
  }
  // Memory that the C library asks for comes from here as well.
  char* copy = strdup("copy");
  failures += expect(copy != NULL && mi_is_in_heap_region(copy), "the C library's own blocks are this allocator's");
  free(copy);
  char* line = NULL;
  size_t room = 0;
  FILE* f = tmpfile();
  if (f != NULL) {
    fputs("a line\n", f);
    rewind(f);
    failures += expect(getline(&line, &room, f) == 7 && mi_is_in_heap_region(line), "getline's block is this allocator's");
    fclose(f);
    free(line);
  }
  failures += expect(mi_version() >= 30000, "mi_version answers");
  if (failures == 0) puts("works");
  return failures == 0 ? 0 : 1;
}
