// Owns: the model of frees by other threads: the list, its head and its count in the one word page->remote.
// May include: nothing.
// Called by: test/model/model_test.py, which explores every interleaving, with each fault and without.
// Invariants: a step here is one atomic operation, or one access of memory that threads share, of the function that the
// comment names; memory is sequentially consistent. OWNED and LISTED do not change here: see page.pml.

// Faults: what each of these breaks must be found.
//   link_once       the link is written before the loop, and not again when the compare-and-swap was refused
//   count_apart     the owner takes head and count one after the other
//   stored          the owner empties the word by a store of what it made of its look
//   count_forgotten a free that was refused counts from what it saw first

#define BLOCKS 3
#define NONE 0
#define FREES 2

mtype = {in_use, being_freed, in_remote, is_free};

byte head;              // page->remote: the first block, counted from 1
byte count;             // and how many there are
byte next[BLOCKS + 1];  // what stands in each freed block
mtype state[BLOCKS + 1] = in_use;
byte done;

// A program's thread frees blocks of a page that another thread owns.
proctype Freer() {
  byte n, block, old_head, old_count;
  bool swapped;
  for (n : 1 .. FREES) {
    // The program: no block is freed twice. It may have none left.
    if
    :: atomic { state[1] == in_use -> block = 1; state[1] = being_freed }
    :: atomic { state[2] == in_use -> block = 2; state[2] = being_freed }
    :: atomic { state[3] == in_use -> block = 3; state[3] = being_freed }
    :: block = NONE
    fi;
    if
    :: block == NONE
    :: else ->
      // _mi_page_free_remote
      atomic { old_head = head; old_count = count };
      swapped = false;
#ifdef FAULT_link_once
      next[block] = old_head;
#endif
      do
      :: swapped -> break
      :: else ->
#ifndef FAULT_link_once
        next[block] = old_head;
#endif
        atomic {
          if
          :: head == old_head && count == old_count ->
            head = block;
            count = old_count + 1;
            state[block] = in_remote;
            swapped = true
          :: else ->
            old_head = head;
#ifndef FAULT_count_forgotten
            old_count = count
#else
            // The swap then is of the head alone.
            count = old_count
#endif
          fi
        }
      od
    fi
  };
  done++
}

byte taken, block_of_list, walked;

// _mi_page_collect_remote, then mi_page_take_plain or mi_page_take_checked: as many steps as were counted.
inline collect() {
#if defined(FAULT_count_apart)
  atomic { block_of_list = head; head = NONE };
  atomic { taken = count; count = 0 };
#elif defined(FAULT_stored)
  atomic { block_of_list = head; taken = count };
  atomic { head = NONE; count = 0 };
#else
  // The loop of compare-and-swaps ends with one that is an exchange.
  atomic { block_of_list = head; taken = count; head = NONE; count = 0 };
#endif
  walked = 0;
  do
  :: walked == taken -> break
  :: else ->
    atomic {
      assert(block_of_list != NONE);
      assert(state[block_of_list] == in_remote);
      state[block_of_list] = is_free;
      block_of_list = next[block_of_list];
      walked++
    }
  od;
  // Nothing is behind what was counted.
  assert(block_of_list == NONE)
}

// The owner hands out again what it collects, so that a word may become what it was before with another list behind it.
proctype Owner() {
  byte n;
  for (n : 1 .. 2) {
    collect();
    if
    :: atomic { state[1] == is_free -> state[1] = in_use }
    :: atomic { state[2] == is_free -> state[2] = in_use }
    :: atomic { state[3] == is_free -> state[3] = in_use }
    :: true
    fi
  };
  done == 2;
  collect();
  // Every block that was freed has come back, once.
  assert(head == NONE && count == 0);
  for (n : 1 .. BLOCKS) {
    assert(state[n] == in_use || state[n] == is_free)
  }
}

init {
  atomic { run Owner(); run Freer(); run Freer() }
}
