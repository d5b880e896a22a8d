// Owns: memcpy and memset as plain loops, for programs that write and read where they may not.
// May include: the C library only.
// Called by: programs of test/death and test/attack, but those that test copies; included behind all other headers.
// Invariants: no compiler makes a call of them, so that no checked copy is what catches the misuse under test: attackers do not
//   call the library's.
#pragma once

#include <stddef.h>
#include <string.h>

__attribute__((unused)) static void* mi_plain_copy(void* to, const void* from, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile unsigned char*)to)[i] = ((const volatile unsigned char*)from)[i];
  return to;
}

__attribute__((unused)) static void* mi_plain_set(void* to, int value, size_t n) {
  for (size_t i = 0; i < n; i++) ((volatile unsigned char*)to)[i] = (unsigned char)value;
  return to;
}

// The names as well, so that none is forgotten.
#undef memcpy
#undef memset
#define memcpy mi_plain_copy
#define memset mi_plain_set
