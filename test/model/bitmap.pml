// Owns: the model of claims of runs in a bitmap that threads share without a lock (src/base/bitmap.c).
// May include: nothing.
// Called by: test/model/model_test.py, which explores every interleaving, with each fault and without.
// Invariants: a step here is one atomic operation on a word; memory is sequentially consistent. Three words of two bits stand
// for any number of 64: a run lies in one, ends in the next, or covers one between two.

// Faults: what each of these breaks must be found.
//   give_back_all  a claim that is refused gives the whole run back, not what it had
//   keep           a claim that is refused keeps what it had
//   unchecked      a word is claimed by an `and` that is not told what was there
//   stored         a word is claimed by a store of what was made of a look

#define WORDS 3
#define BITS 6

byte words[WORDS] = 3;
// What the code does not have: who owns each bit.
byte holder[BITS];
byte running;

#define MASK(w, first, end) (((2 * w >= first && 2 * w < end) -> 1 : 0) + ((2 * w + 1 >= first && 2 * w + 1 < end) -> 2 : 0))

// _mi_bitmap_set: word by word, each by an `or`
inline set_bits(first, end) {
  v = first / 2;
  do
  :: 2 * v >= end -> break
  :: else ->
    atomic {
      words[v] = words[v] | MASK(v, first, end);
      v++
    }
  od
}

inline hold(w, by, was) {
  // Of each bit of the word that is in the run.
  i = 2 * w;
  do
  :: i > 2 * w + 1 -> break
  :: else ->
    if
    :: i >= start && i < start + n ->
      assert(holder[i] == was);
      holder[i] = by
    :: else
    fi;
    i++
  od;
  i = 0
}

proctype Thread() {
  byte round, start, n, w, v, i, before, end;
  bool swapped, refused;
  for (round : 1 .. 2) {
    // _mi_bitmap_find, whose answer may be old when it comes: any run.
    atomic {
      select (start : 0 .. 5);
      select (n : 1 .. 4);
      if
      :: start + n > BITS -> n = BITS - start
      :: else
      fi
    };
    // _mi_bitmap_try_claim
    refused = false;
    w = start / 2;
    do
    :: refused || 2 * w >= start + n -> break
    :: else ->
      // mi_bitmap_word_try_claim
#ifdef FAULT_unchecked
      atomic {
        words[w] = words[w] & (3 - MASK(w, start, start + n));
        hold(w, _pid, 0)
      };
      w++
#else
      before = words[w];
      swapped = false;
      do
      :: swapped -> w++; break
      :: !swapped && (before & MASK(w, start, start + n)) != MASK(w, start, start + n) -> refused = true; break
      :: atomic { else ->
#ifndef FAULT_stored
        if
        :: words[w] == before ->
#endif
          words[w] = before & (3 - MASK(w, start, start + n));
          hold(w, _pid, 0);
          swapped = true
#ifndef FAULT_stored
        :: else -> before = words[w]
        fi
#endif
        }
      od
#endif
    od;
    if
    :: refused ->
#if defined(FAULT_give_back_all)
      end = start + n;
#elif defined(FAULT_keep)
      end = start;
#else
      end = (2 * w > start -> 2 * w : start);
#endif
    :: else ->
      // The run is this thread's alone, and stays so as long as it likes.
      end = start + n;
      i = start;
      do
      :: i == end -> i = 0; break
      :: else ->
        assert(holder[i] == _pid && (words[i / 2] & (1 << (i % 2))) == 0);
        i++
      od
    fi;
    // It gives back what it has: a claimed run, or what a refused claim had got.
    atomic {
      i = start;
      do
      :: i == end -> i = 0; break
      :: else ->
        assert(holder[i] == _pid);
        holder[i] = 0;
        i++
      od
    };
    set_bits(start, end)
  };
  running--
}

init {
  atomic {
    running = 2;
    run Thread();
    run Thread()
  };
  running == 0;
  // A failed claim left no trace.
  assert(words[0] == 3 && words[1] == 3 && words[2] == 3)
}
