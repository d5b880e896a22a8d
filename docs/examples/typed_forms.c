// Points instead of bytes: no sizeof, no cast.
#include <stdio.h>

#include "mimalloc.h"

typedef struct point_s {
  double x, y;
} point_t;

int main(void) {
  point_t* const origin = mi_zalloc_tp(point_t);
  point_t* path = mi_calloc_tp(point_t, 10);
  path = mi_reallocn_tp(point_t, path, 20);  // with MI_API_V2: mi_reallocn_tp(path, point_t, 20)
  if (origin == NULL || path == NULL) return 1;
  path[19] = *origin;
  printf("from %g, %g to %g, %g\n", origin->x, origin->y, path[19].x, path[19].y);
  mi_free_tp(point_t, origin);
  mi_free(path);
  return 0;
}
