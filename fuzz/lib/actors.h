// Owns: the threads of a run, which take turns: one acts, the others wait; or all act at once, where that is asked for.
// May include: fuzz/lib.
// Called by: fuzz_ops, fuzz_misuse.
// Invariants: what a thread did happens before what the next does, so that threads hand over blocks without a race, and a run
// of the same input is the same run, but for the order in which threads act that act at once.
#pragma once

#include <stdbool.h>

enum { MI_FUZZ_ACTORS = 4 };  // the first is the thread of the fuzzer

// Has a thread call step(arg) and waits until it has returned. A thread that is not there is started.
void mi_fuzz_act(unsigned actor, void (*step)(void*), void* arg);

// Has all threads call step(actor, arg) at once, and waits until each has returned.
void mi_fuzz_act_at_once(void (*step)(unsigned actor, void*), void* arg);

// Ends a thread, and waits for it; the first one stays.
void mi_fuzz_end_actor(unsigned actor);

bool mi_fuzz_actor_is_there(unsigned actor);
