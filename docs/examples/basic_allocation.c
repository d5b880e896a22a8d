// A list of numbers that grows, as with the C library's functions.
#include <stdio.h>

#include "mimalloc.h"

int main(void) {
  size_t count = 0, capacity = 0;
  int* numbers = NULL;
  for (int i = 0; i < 1000; i++) {
    if (count == capacity) {
      capacity = mi_good_size((count + 1) * 2 * sizeof(int)) / sizeof(int);  // so many fit without waste
      int* const larger = mi_reallocn(numbers, capacity, sizeof(int));       // NULL where count * size overflows
      if (larger == NULL) {
        mi_free(numbers);  // what could not grow is still there
        return 1;
      }
      numbers = larger;
    }
    numbers[count++] = i;
  }
  char* const text = mi_strdup("numbers");
  printf("%zu %s, the last is %d\n", count, text == NULL ? "?" : text, numbers[count - 1]);
  mi_free(text);
  mi_free(numbers);
  return 0;
}
