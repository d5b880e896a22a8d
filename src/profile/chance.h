// Owns: the chance that a sample falls on some bytes.
// May include: base/compiler.h.
// Called by: profile.
// Invariants: pure.
#pragma once

#include "src/base/compiler.h"

// 1 - exp(-x) for x > 0. Of a small part of x by its series, and from there on by doubling, as no library is to be called.
mi_inline double _mi_profile_chance(double x) {
  enum { MI_DOUBLINGS = 12 };
  if (x > 50) {
    return 1;
  }
  const double part = x / (1 << MI_DOUBLINGS);
  double chance = part * (1 - part / 2 * (1 - part / 3 * (1 - part / 4)));
  for (int i = 0; i < MI_DOUBLINGS; i++) {
    chance = chance * (2 - chance);
  }
  return chance;
}
