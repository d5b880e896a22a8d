// Owns: the model of pages whose threads a forked child has not: where these stopped, and which pages the child takes over.
// May include: nothing.
// Called by: test/model/model_test.py, which explores every interleaving, with each fault and without.
// Invariants: a step here is one atomic operation, or one access of memory, of the function that the comment names
// (src/heap/orphan.c, page.c, block.c); the plain accesses of an operation come in any order, as a compiler may have put them.

// Faults: what each of these breaks must be found.
//   any_page        a page is taken over whatever its counts say
//   uncounted       the blocks that others freed are counted as free ones of the owner, not as used
//   unowned         a page is taken over that its thread has let go of

#define BLOCKS 3
#define LEFT 1
#define SURVIVOR 2
#define NOBODY 0

mtype = {untouched, in_use, being_freed, is_free};

// The page.
bool remote_owned = true;
byte remote_count;
bool in_remote[BLOCKS];
bool in_list[BLOCKS];     // page->free and page->local_free lead to it
byte used = BLOCKS;
byte owner_tid = LEFT;

// The program: who has each block.
mtype state[BLOCKS] = in_use;
byte has[BLOCKS] = SURVIVOR;
bool forked;
bool gone;

#define LENGTH(l) (l[0] + l[1] + l[2])

// _mi_page_free_remote of a page that is owned: the page stays its owner's
inline push(b) {
  atomic {
    in_remote[b] = true;
    remote_count++;
    state[b] = is_free
  }
}

// The thread that is left behind allocates, frees and collects, until it is no more.
proctype Left() provided (!forked) {
  byte round, b, taken;
  bool moved[BLOCKS];
  // It has one block from the start.
  for (round : 1 .. 3) {
    b = BLOCKS;
    if
    :: atomic { in_list[0] -> b = 0 }
    :: atomic { in_list[1] -> b = 1 }
    :: atomic { in_list[2] -> b = 2 }
    :: true
    fi;
    if
    :: b < BLOCKS ->
      // _mi_page_try_pop
      if
      :: in_list[b] = false; used++
      :: used++; in_list[b] = false
      fi;
      atomic { state[b] = in_use; has[b] = LEFT }
    :: else
    fi;
    b = BLOCKS;
    if
    :: atomic { state[0] == in_use && has[0] == LEFT -> b = 0; state[0] = being_freed }
    :: atomic { state[1] == in_use && has[1] == LEFT -> b = 1; state[1] = being_freed }
    :: atomic { state[2] == in_use && has[2] == LEFT -> b = 2; state[2] = being_freed }
    :: true
    fi;
    if
    :: b < BLOCKS ->
      // mi_free of an own block
      if
      :: atomic { in_list[b] = true; state[b] = is_free }; used--
      :: used--; atomic { in_list[b] = true; state[b] = is_free }
      fi
    :: else
    fi;
    // _mi_page_collect_remote
    atomic {
      taken = remote_count;
      remote_count = 0;
      moved[0] = in_remote[0];
      moved[1] = in_remote[1];
      moved[2] = in_remote[2];
      in_remote[0] = false;
      in_remote[1] = false;
      in_remote[2] = false
    };
    if
    :: taken > 0 ->
      // The whole list at once: its end is linked before its head is stored.
      if
      :: atomic { in_list[0] = in_list[0] | moved[0]; in_list[1] = in_list[1] | moved[1]; in_list[2] = in_list[2] | moved[2] };
        used = used - taken
      :: used = used - taken;
        atomic { in_list[0] = in_list[0] | moved[0]; in_list[1] = in_list[1] | moved[1]; in_list[2] = in_list[2] | moved[2] }
      fi
    :: else
    fi
  };
  // It ends: _mi_page_abandon, of which the page is let go by one swap. A page with a free block is listed; the heap's lock is
  // the forking thread's, or else this is one step for it.
  atomic {
    remote_owned = false;
    owner_tid = NOBODY
  }
}

// Another thread that is left behind: it hands a block of the survivor's back.
proctype Other() provided (!forked) {
  byte b = BLOCKS;
  if
  :: atomic { state[2] == in_use && has[2] == SURVIVOR -> has[2] = NOBODY; state[2] = being_freed; b = 2 }
  :: true
  fi;
  if
  :: b == 2 && remote_owned -> push(b)
  :: else
  fi
}

proctype Survivor() {
  byte b;
  bool whole;
  // Before the fork it frees a block, or gives it to the other thread, or does not.
  if
  :: atomic { state[0] == in_use && has[0] == SURVIVOR && remote_owned -> state[0] = being_freed };
    // The page may have been let go of since: see page.pml.
    atomic {
      if
      :: remote_owned -> in_remote[0] = true; remote_count++; state[0] = is_free
      :: else -> state[0] = in_use
      fi
    }
  :: atomic { has[0] = LEFT }
  :: true
  fi;
  forked = true;
  // mi_page_is_orphan and mi_orphan_is_whole, in the child, where nobody else is.
  d_step {
#if defined(FAULT_any_page)
    whole = owner_tid == LEFT;
#elif defined(FAULT_uncounted)
    whole = owner_tid == LEFT && remote_owned && used <= BLOCKS && used + LENGTH(in_list) + remote_count == BLOCKS;
#elif defined(FAULT_unowned)
    whole = used <= BLOCKS && used + LENGTH(in_list) == BLOCKS && remote_count == LENGTH(in_remote) && remote_count <= used;
#else
    whole = owner_tid == LEFT && remote_owned && used <= BLOCKS && used + LENGTH(in_list) == BLOCKS &&
      remote_count == LENGTH(in_remote) && remote_count <= used;
#endif
    if
    :: whole ->
      // mi_orphan_adopt: what it takes over is right. A block is in one list at most, and in none that somebody has.
      assert(remote_owned);
      b = 0;
      do
      :: b == BLOCKS -> break
      :: else ->
        assert(!(in_list[b] && in_remote[b]));
        assert(!(in_list[b] || in_remote[b]) || state[b] == is_free);
        b++
      od;
      // Nothing that the program has is taken for free: those that are used are at least those in use and in the remote list.
      assert(used >= (state[0] == in_use) + (state[1] == in_use) + (state[2] == in_use) + remote_count)
    :: else
    fi
  };
  // The survivor frees what is its own, of a page that it took over: there it ends at none too few.
  if
  :: whole ->
    b = 0;
    do
    :: b == BLOCKS -> break
    :: else ->
      if
      :: state[b] == in_use && has[b] == SURVIVOR ->
        assert(used > 0 && !in_list[b]);
        used--;
        in_list[b] = true;
        state[b] = is_free
      :: else
      fi;
      b++
    od;
    assert(used + LENGTH(in_list) == BLOCKS)
  :: else
  fi
}

init {
  atomic {
    run Left();
    run Survivor();
    run Other()
  }
}
