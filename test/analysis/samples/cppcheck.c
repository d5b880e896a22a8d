// Owns: a fault that cppcheck must find.
// May include: the C library.
// Called by: static_test.py, which never runs it.
// Invariants: stays wrong.
// Must be found: arrayIndexOutOfBounds
int mi_sample(void);

int mi_sample(void) {
  int words[4] = {0, 0, 0, 0};
  return words[4];
}
