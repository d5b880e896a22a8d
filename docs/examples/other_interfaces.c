// What the functions of other systems are called here, and how each tells of an error.
#include <errno.h>
#include <stdio.h>

#include "mimalloc.h"

int main(void) {
  void* p = NULL;
  const int error = mi_posix_memalign(&p, 256, 1000);  // returns the error; errno is left alone
  if (error != 0) return 1;
  if (mi_posix_memalign(&p, 3, 1000) != EINVAL) return 1;

  int* numbers = mi_reallocarray(NULL, 100, sizeof(int));  // NULL and errno
  if (numbers == NULL) return 1;
  if (mi_reallocarr(&numbers, 200, sizeof(int)) != 0) return 1;  // stores the new block itself

  char* path = NULL;
  size_t length = 0;
  if (mi_dupenv_s(&path, &length, "PATH") == 0 && path != NULL) printf("PATH has %zu characters\n", length - 1);

  int local;
  printf("a local variable is %s\n", mi_cfree(&local) ? "freed" : "left alone");  // others' memory is not touched
  mi_free(path);
  mi_free_size(numbers, 200 * sizeof(int));  // the size is checked by the variants that can
  mi_free(p);
  return 0;
}
