// Owns: how long tests go on where the machine is slow.
// May include: test/lib/rss.h.
// Called by: tests that repeat random rounds.
// Invariants: where the machine is not slow, nothing is left out.
#pragma once

#include "test/lib/rss.h"

// When a loop that starts now has gone on long enough, if it is one of so many of a test.
static MI_TEST_UNUSED uint64_t mi_test_deadline_among(unsigned loops) {
  return mi_test_now_ms() + (uint64_t)mi_test_scale("MI_TEST_SECONDS", 3) * 1000U / loops;
}

static MI_TEST_UNUSED uint64_t mi_test_deadline(void) { return mi_test_deadline_among(1); }

// On a virtual machine a page fault or a fork beside threads may take a hundred times as long as elsewhere. Rounds that differ by
// chance alone end at the deadline there, once a tenth of them is done. Not for rounds that are each a case of its own, and not for
// numbers that are promised.
static MI_TEST_UNUSED bool mi_test_goes_on(long done, long rounds, uint64_t deadline) {
  return done < rounds && (done <= (rounds - 1) / 10 || mi_test_now_ms() < deadline);
}
