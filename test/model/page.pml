// Owns: the model of pages that change hands: let go of when full, abandoned, listed, claimed, reclaimed, released.
// May include: nothing.
// Called by: test/model/model_test.py, which explores every interleaving, with each fault and without.
// Invariants: a step here is one atomic operation, or one access of memory that threads share, of the function that the
// comment names (src/heap/abandon.c); memory is sequentially consistent. Of the list behind the word only its length is
// here: see remote.pml.

// Faults: what each of these breaks must be found.
//   blind_unown     a full page is let go of by a store, whatever was freed meanwhile
//   no_last_look    a listed page is let go of without a look whether all its blocks have been freed
//   no_count        a free into a listed page never claims it
//   take_owned      who looks through the list takes a page that is owned
//   release_listed  a page that goes is left in the list

#define BLOCKS 2
#define NOBODY 0

mtype = {in_use, being_freed, in_remote, is_free};

// page->remote
typedef word_t {
  bool owned;
  bool listed;
  byte count;
  byte used;
}
word_t remote;

byte owner_tid;     // page->owner
byte used;          // page->used, which only the owner touches
bool in_list;       // whether the heap's list leads to the page
bool locked;        // the heap's lock
mtype state[BLOCKS] = in_use;

// What the code does not have: who owns the page by the protocol, and whether the page is gone.
byte holder;
bool released;
byte running;

#define FREE_BLOCKS ((state[0] == is_free) + (state[1] == is_free))
#define REMOTE_BLOCKS ((state[0] == in_remote) + (state[1] == in_remote))

inline look(l) {
  atomic {
    assert(!released);
    l.owned = remote.owned;
    l.listed = remote.listed;
    l.count = remote.count;
    l.used = remote.used
  }
}

#define UNCHANGED(l) (remote.owned == l.owned && remote.listed == l.listed && remote.count == l.count && remote.used == l.used)

#define MINE assert(holder == _pid && !released)

// Compares and swaps; on failure l is what was there.
inline swap(l, is_owned, n, used_bits, ok) {
  assert(!released);
  if
  :: UNCHANGED(l) ->
    if
    :: is_owned && !remote.owned ->
      assert(holder == NOBODY);
      holder = _pid
    :: !is_owned && remote.owned ->
      assert(holder == _pid);
      holder = NOBODY
    :: else
    fi;
    remote.owned = is_owned;
    remote.count = n;
    remote.used = used_bits;
    ok = true
  :: else ->
    l.owned = remote.owned;
    l.listed = remote.listed;
    l.count = remote.count;
    l.used = remote.used;
    ok = false
  fi
}

inline lock() {
  atomic { !locked -> locked = true }
}

inline unlock() {
  locked = false
}

// _mi_page_collect_remote
inline collect_remote() {
  MINE;
  atomic {
    collected = remote.count;
    assert(collected == REMOTE_BLOCKS);
    remote.count = 0;
    state[0] = (state[0] == in_remote -> is_free : state[0]);
    state[1] = (state[1] == in_remote -> is_free : state[1])
  };
  atomic {
    MINE;
    used = used - collected
  }
}

// mi_page_list
inline list_page() {
  MINE;
  lock();
  assert(!in_list);
  in_list = true;
  atomic {
    MINE;
    remote.listed = true
  };
  unlock()
}

// mi_heap_unlink: the lock is held
inline unlink_page() {
  assert(in_list && locked);
  in_list = false;
  atomic {
    MINE;
    remote.listed = false
  }
}

// mi_page_unlist
inline unlist_page() {
  MINE;
  lock();
  unlink_page();
  unlock()
}

// _mi_page_release
inline release_page() {
  atomic {
    MINE;
    assert(!in_list && !remote.listed && remote.owned && remote.count == 0);
    assert(used == 0 && FREE_BLOCKS == BLOCKS);
    released = true
  }
}

// mi_page_unown_listed
inline unown_listed() {
  MINE;
  owner_tid = NOBODY;
  look(l);
  do
  :: atomic {
#ifndef FAULT_no_last_look
    l.count == used ->
#else
    false ->
#endif
    MINE };
    collect_remote();
#ifndef FAULT_release_listed
    unlist_page();
#endif
    release_page();
    break
  :: atomic { else ->
    swap(l, false, l.count, used, ok);
    if
    :: ok -> break
    :: else
    fi }
  od
}

// mi_page_adopt
inline adopt() {
  atomic {
    MINE;
    owner_tid = _pid
  }
}

// _mi_page_abandon, with _mi_page_try_unown_full, which a thread also calls when it runs out of blocks (src/heap/generic.c)
inline abandon() {
  collect_remote();
  if
  :: used == 0 -> release_page()
  :: else ->
    ok = false;
    if
    :: FREE_BLOCKS == 0 ->
      owner_tid = NOBODY;
      atomic {
        l.owned = true;
        l.listed = false;
        l.count = 0;
        l.used = 0;
#ifdef FAULT_blind_unown
        l.count = remote.count;
#endif
        swap(l, false, 0, 0, ok)
      };
      if
      :: ok
      :: else -> owner_tid = _pid
      fi
    :: else
    fi;
    if
    :: ok
    :: else ->
      list_page();
      unown_listed()
    fi
  fi
}

// mi_page_claimed. Whether the thread wants the page depends on what it allocates: both are tried.
inline claimed_page(was_listed) {
  collect_remote();
  if
  :: used == 0 ->
    if
    :: was_listed -> unlist_page()
    :: else
    fi;
    release_page()
  :: else ->
    if
    :: !was_listed ->
      if
      :: adopt()
      :: list_page();
        unown_listed()
      fi
    :: else -> unown_listed()
    fi
  fi
}

// mi_free of a block
inline free_block(b) {
  if
  :: owner_tid == _pid ->
    atomic {
      MINE;
      state[b] = is_free;
      used--
    }
  :: else ->
    // _mi_page_free_remote
    look(l);
    ok = false;
    do
    :: ok -> break
    :: atomic { else ->
#ifndef FAULT_no_count
      claim = !l.owned && (!l.listed || l.count + 1 == l.used);
#else
      claim = !l.owned && !l.listed;
#endif
      was_listed = l.listed;
      swap(l, (l.owned || claim), l.count + 1, (claim -> 0 : l.used), ok);
      if
      :: ok -> state[b] = in_remote
      :: else
      fi }
    od;
    if
    :: claim -> claimed_page(was_listed)
    :: else
    fi
  fi
}

// The program: a block is freed once, by any thread that has it.
inline free_some() {
  b = BLOCKS;
  if
  :: atomic { state[0] == in_use -> b = 0; state[0] = being_freed }
  :: atomic { state[1] == in_use -> b = 1; state[1] = being_freed }
  :: true
  fi;
  if
  :: b < BLOCKS -> free_block(b)
  :: else
  fi
}

#define LOCALS \
  word_t l; \
  byte collected, b; \
  bool ok, claim, was_listed

inline end_thread() {
  if
  :: owner_tid == _pid -> abandon()
  :: else
  fi;
  running--
}

// The thread that filled the page frees of it, or not, and ends.
proctype First() {
  LOCALS;
  free_some();
  end_thread()
}

proctype Freer() {
  LOCALS;
  free_some();
  end_thread()
}

// _mi_heap_take_listed by a thread that needs the class; it hands out a block, and ends.
proctype Taker() {
  LOCALS;
  if
  :: in_list ->
    lock();
    claim = false;
    if
    :: in_list ->
      look(l);
      do
#ifndef FAULT_take_owned
      :: l.owned -> break
#endif
      :: claim -> break
      :: atomic { else ->
        swap(l, true, l.count, 0, claim) }
      od;
#ifdef FAULT_take_owned
      atomic {
        if
        :: holder != _pid -> assert(holder == NOBODY)
        :: else
        fi
      };
#endif
      if
      :: claim -> unlink_page()
      :: else
      fi
    :: else
    fi;
    unlock();
    if
    :: claim ->
      adopt();
      collect_remote();
      atomic {
        if
        :: state[0] == is_free -> state[0] = in_use; used++
        :: state[1] == is_free -> state[1] = in_use; used++
        :: else
        fi
      }
    :: else
    fi
  :: true
  fi;
  free_some();
  end_thread()
}

init {
  byte b;
  bool all_freed;
  atomic {
    used = BLOCKS;
    remote.owned = true;
    running = 4;
    holder = run First();
    owner_tid = holder;
    run Freer();
    run Freer();
    run Taker()
  };
  running == 0;
  all_freed = FREE_BLOCKS + REMOTE_BLOCKS == BLOCKS;
  assert(!locked);
  // No page stays behind empty, none goes with a block in use, and every other one is where somebody finds it.
  assert(released == all_freed);
  if
  :: !released ->
    assert(!remote.owned && holder == NOBODY && owner_tid == NOBODY);
    assert(remote.listed == in_list && remote.count == REMOTE_BLOCKS);
    assert(used == BLOCKS - FREE_BLOCKS);
    assert(in_list || (FREE_BLOCKS == 0 && REMOTE_BLOCKS == 0));
    assert(!in_list || remote.used == used)
  :: else
  fi
}
