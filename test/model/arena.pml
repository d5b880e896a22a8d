// Owns: the model of arenas that nobody uses and that give their memory back, and get new memory later; and of the purger
// beside them (src/region/arena-create.c, arena.c, arena-purge.c).
// May include: nothing.
// Called by: test/model/model_test.py, which explores every interleaving, with each fault and without.
// Invariants: a step here is one atomic operation, or one access of memory that threads share, of the function that the
// comment names; memory is sequentially consistent. One arena of two slices, in a process with a limited address space.
// Each slice has a word of its own, so that claims of both are in two steps.

// Faults: what each of these breaks must be found.
//   revive_at_once     new memory is given as soon as the arena is vacant, while its bits are still being cleared
//   release_unclaimed  the memory is released when all slices were free, without a claim of them
//   base_unchecked     a claim goes by the base that it saw before
//   free_first         revive makes the slices free before it has the memory
//   purge_forgets      a purge gives back the last slices and does not look whether the arena is unused
//   refused_forgets    nor does a claim that was refused, when it gives back what it had
//   vacate_once        who finds the arena unused and is refused a claim of it does not look again

#define SLICES 2

bool slice_free[SLICES] = true;
bool dirty[SLICES];     // may hold something else than zeroes
bool pending[SLICES];   // arena->purge
bool vacant;
bool may_revive;
byte base = 1;          // where its memory is: one of two places that are aligned differently
bool lock;              // of the arenas

// What the code does not have.
bool mapped = true;     // whether the memory is there
bool written[SLICES];   // whether its bytes are not zeroes
byte holder[SLICES];
bool fresh = true;      // no slice was used since it got its memory
byte running;

// mi_bitmap_word_try_claim of a slice
inline claim_slice(i, ok) {
  atomic {
    ok = slice_free[i];
    slice_free[i] = false;
    if
    :: ok ->
      assert(holder[i] == 0);
      holder[i] = _pid
    :: else
    fi
  }
}

inline free_slice(i) {
  atomic {
    assert(holder[i] == _pid && !slice_free[i]);
    holder[i] = 0;
    slice_free[i] = true
  }
}

// _mi_bitmap_try_claim of all
inline claim_all(ok) {
  claim_slice(0, ok);
  if
  :: ok ->
    claim_slice(1, ok);
    if
    :: ok
    :: else ->
      free_slice(0);
      ok = false
    fi
  :: else
  fi
}

// _mi_arena_vacate_if_unused
inline vacate_if_unused() {
  do
  :: true ->
    // _mi_bitmap_count, word by word
    all = slice_free[0];
    if
    :: all -> all = slice_free[1]
    :: else
    fi;
    if
    :: all ->
#ifndef FAULT_release_unclaimed
      claim_all(all);
#endif
      if
      :: all ->
        vacant = true;
        // _mi_arena_release_memory
        atomic {
          assert(mapped);
          mapped = false
        };
        // _mi_bitmap_clear of all that is said of the slices
        atomic {
          pending[0] = false;
          pending[1] = false;
          dirty[0] = false;
          dirty[1] = false
        };
        may_revive = true;
        break
#ifdef FAULT_vacate_once
      :: else -> break
#else
      :: else
#endif
      fi
    :: else -> break
    fi
  od
}

// mi_arena_purge and mi_purge_claimed
inline purge() {
  if
  :: pending[0] -> i = 0
  :: pending[1] -> i = 1
  :: else -> i = SLICES
  fi;
  if
  :: i < SLICES ->
    claim_slice(i, ok);
    if
    :: ok ->
      // _mi_arena_purge_run
      atomic {
        assert(mapped);
        written[i] = false;
        pending[i] = false;
        dirty[i] = false
      };
      free_slice(i);
#ifndef FAULT_purge_forgets
      vacate_if_unused()
#endif
    :: else
    fi
  :: else
  fi
}

// mi_arena_revive: the lock is held, and the vacant arena's slices are the reviver's
inline revive(revived) {
  revived = false;
  if
#ifdef FAULT_revive_at_once
  :: vacant ->
#else
  :: may_revive ->
#endif
#ifdef FAULT_free_first
    atomic { slice_free[0] = true; slice_free[1] = true; holder[0] = 0; holder[1] = 0 };
#endif
    // mi_arena_reserve_somewhere
    atomic {
      assert(!mapped);
      mapped = true;
      written[0] = false;
      written[1] = false;
      base = 3 - base;
      fresh = true
    };
    atomic {
      may_revive = false;
      vacant = false
    };
#ifndef FAULT_free_first
    // _mi_arena_give_back. The slices pass from who gave the memory back to this thread.
    atomic {
      assert(!slice_free[0] && !slice_free[1]);
      holder[0] = 0;
      slice_free[0] = true
    };
    atomic {
      holder[1] = 0;
      slice_free[1] = true
    };
#endif
    revived = true
  :: else
  fi
}

// mi_arena_take: what is said of a slice is its claimer's to change. Then the program writes.
inline take_slice(i) {
  pending[i] = false;
  assert(mapped && holder[i] == _pid);
  // It was promised zeroes.
  assert(dirty[i] || !written[i]);
  dirty[i] = true;
  written[i] = true;
  fresh = false
}

// _mi_arena_release_pending: whatever happened meanwhile, it is still marked as what may hold something.
inline leave_slice(i) {
  assert(mapped && dirty[i] && holder[i] == _pid);
  pending[i] = true
}

// mi_arena_try_claim of one slice or both, and its release by _mi_arena_release_pending
proctype Thread(byte rounds) {
  byte i, phase;
  bool ok, all, both;
  do
  :: rounds == 0 -> break
  :: else ->
    rounds--;
    phase = base;
    atomic {
      if
      :: i = 0; both = false
      :: i = 1; both = false
      :: both = true
      fi
    };
    if
    :: both ->
      claim_all(ok);
#ifndef FAULT_refused_forgets
      if
      :: ok
      :: else -> vacate_if_unused(); ok = false
      fi
#endif
    :: else -> claim_slice(i, ok)
    fi;
    if
    :: !ok ->
      // mi_arenas_claim_new: another arena serves, or this one is given memory.
      atomic { !lock -> lock = true };
      revive(ok);
      lock = false;
      // Then it looks again.
      if
      :: ok -> rounds++
      :: else
      fi
    :: else ->
#ifndef FAULT_base_unchecked
      // The base may be another than the phase was computed for.
      if
      :: base == phase ->
#endif
        assert(base == phase);
        atomic {
          if
          :: both -> take_slice(0); take_slice(1)
          :: else -> take_slice(i)
          fi
        };
        atomic {
          if
          :: both -> leave_slice(0); leave_slice(1)
          :: else -> leave_slice(i)
          fi
        }
#ifndef FAULT_base_unchecked
      :: else
      fi
#endif
      ;
      if
      :: both -> free_slice(0); free_slice(1)
      :: else -> free_slice(i)
      fi;
      vacate_if_unused()
    fi
  od;
  running--
}

proctype Purger() {
  byte i;
  bool ok, all;
  purge();
  running--
}

init {
  atomic {
    running = 3;
    run Thread(2);
    run Thread(1);
    run Purger()
  };
  running == 0;
  assert(!lock);
  if
  :: vacant -> assert(!mapped && may_revive && !slice_free[0] && !slice_free[1])
  :: else ->
    assert(mapped && !may_revive && slice_free[0] && slice_free[1]);
    assert((dirty[0] || !written[0]) && (dirty[1] || !written[1]));
    // What nobody uses any more has given its memory back.
    assert(fresh)
  fi
}
