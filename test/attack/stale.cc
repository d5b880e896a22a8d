// Owns: attacks by use of a freed block: its slot regained by an object of another type, its bytes read or written.
// May include: test/attack, test/lib, POSIX.
// Called by: rows of test/attack/rows.txt: stale HOW SIZE [tries=N most=K].
// Invariants: goals are a function pointer of the attacker's read through the stale pointer, a secret read, a write not noticed.
// Flags: -pthread -fno-builtin
#include <new>
#include <string>
#include <vector>

#include "test/attack/attack.h"

static size_t size;
static const uintptr_t SECRET = 0x5ec7e75ec7e75ec7u;

static void fill_secret(char* p) {
  for (size_t i = 0; i + 8 <= size; i += 8) attack_word_write(p + i, SECRET);
}

static bool shows_secret(const char* p) {
  for (size_t i = 0; i + 8 <= size; i += 8) {
    if (attack_word_read(p + i) == SECRET) return true;
  }
  return false;
}

// A victim with a virtual function, and what the attacker puts where its table is named.
struct victim {
  uintptr_t room[7];
  victim() { memset(room, 0, sizeof(room)); }
  virtual ~victim() = default;
  virtual int rank() { return 1; }
};

// Whether one of `count` blocks taken after the free of `p` is the very block.
static bool regained(const char* p, int count, bool churn, std::vector<char*>& held) {
  for (int i = 0; i < count; i++) {
    char* q = attack_get(size);
    held.push_back(q);
    if (q == mi_test_hide(p)) return true;
    if (churn) {
      free(q);
      held.pop_back();
    }
  }
  return false;
}

static void spray(int count, bool churn, long tries, long most) {
  long hits = 0;
  std::vector<char*> held, around;
  held.reserve(static_cast<size_t>(count) + 1);
  around.reserve(2000);
  for (long i = 0; i < tries; i++) {
    for (int k = 0; k < 20; k++) around.push_back(attack_get(size));
    char* p = around[around.size() - 10];
    around.erase(around.end() - 10);
    free(p);
    hits += regained(p, count, churn, held);
    for (char* q : held) free(q);
    held.clear();
    if (around.size() > 1000) {
      for (char* q : around) free(q);
      around.clear();
    }
  }
  attack_end_rate(hits, tries, most);
}

static void confuse(int count, bool churn) {
  std::vector<char*> around;
  for (int k = 0; k < 20; k++) around.push_back(attack_get(sizeof(victim)));
  victim* v = new victim;
  attack_announce(v);
  delete v;
  for (int i = 0; i < count; i++) {
    char* q = attack_get(sizeof(victim));
    for (size_t k = 0; k + 8 <= sizeof(victim); k += 8) attack_word_write(q + k, 0x4141414141414141u);
    // Read as a virtual call would read it.
    if (attack_word_read(v) == 0x4141414141414141u) attack_end(true);
    if (churn) free(q);
  }
  attack_end(false);
}

// Whether a block of the next owners', of whom there are many, comes with the secret.
static bool new_owner_reads() {
  std::vector<char*> held;
  const size_t fit = (size_t{96} << 20) / size, wanted = fit < ATTACK_TAKEN_MAX ? fit : size_t{ATTACK_TAKEN_MAX};
  uint64_t seed = 1;
  for (size_t i = 0; i < wanted; i++) {
    held.push_back(attack_get(size));
    if (shows_secret(held.back())) return true;
  }
  // Blocks that are held back come later; the secret is looked for in each that comes, before it is used again.
  for (size_t i = 0; i < 4 * wanted && size <= 4096; i++) {
    char*& one = held[static_cast<size_t>(mi_test_random(&seed) % wanted)];
    free(one);
    one = attack_get(size);
    if (shows_secret(one)) return true;
  }
  return false;
}

// Allocators give memory back after a while; what is read then is another's.
static void wait_for_purge() {
  for (int i = 0; i < 40; i++) {
    usleep(5000);
    free(attack_get(100000));
  }
}

int main(int argc, char** argv) {
  if (argc < 3) attack_usage("");
  const std::string how = argv[1];
  size = static_cast<size_t>(strtoull(argv[2], nullptr, 10));
  const long tries = attack_number(argc, argv, "tries", 0), most = attack_number(argc, argv, "most", 0);
  if (how == "regain-at-once") spray(1, false, tries, most);
  if (how == "regain-by-spray") spray(static_cast<int>(attack_number(argc, argv, "spray", 100)), false, tries, most);
  if (how == "regain-by-churn") spray(static_cast<int>(attack_number(argc, argv, "spray", 100)), true, tries, most);
  if (how == "confuse-spray") confuse(4000, false);
  if (how == "confuse-churn") confuse(200000, true);
  const bool huge = size > 10000000;
  char* keep[24];
  for (int i = 0; i < (huge ? 1 : 24); i++) keep[i] = attack_get(size);
  char* p = attack_get(size);
  char* right = attack_get(size);
  fill_secret(p);
  attack_announce(p);
  attack_expect_fault(p, p + size);
  (void)keep;
  (void)right;
  if (how == "read") {
    free(p);
    attack_end(shows_secret(p));
  } else if (how == "read-after-realloc") {
    char* moved = static_cast<char*>(realloc(p, size * 4 + 64));
    if (moved == mi_test_hide(p)) attack_end(false);
    attack_end(shows_secret(p));
  } else if (how == "new-owner-reads") {
    free(p);
    attack_end(new_owner_reads());
  } else if (how == "shrunk-and-grown") {
    char* q = static_cast<char*>(realloc(p, size / 4 + 1));
    q = static_cast<char*>(realloc(q, size));
    bool found = false;
    for (size_t i = size / 2 & ~size_t{7}; i + 8 <= size; i += 8) found = found || attack_word_read(q + i) == SECRET;
    attack_end(found);
  } else if (how == "write-start" || how == "write-second-word" || how == "write-middle" || how == "write-end") {
    free(p);
    const size_t at = how == "write-start" ? 0 : how == "write-second-word" ? 8
        : how == "write-middle"                                             ? (size / 2 & ~size_t{7})
                                                                            : size - 1;
    // Flipped, not set: what stands there may by chance be what would be set, and nothing is changed then.
    volatile char* const byte = p + at;
    *byte = static_cast<char>(*byte ^ 0x42);
    // The goal is to have the write stay unnoticed by whatever comes after, until the block is handed out again.
    const bool overlap = attack_take(size, nullptr, nullptr);
    (void)overlap;
    attack_end(true);
  } else if (how == "free-after-purge") {
    // All blocks of the page are freed and its memory is given back and used again.
    char* more[64];
    for (char*& m : more) m = attack_get(size);
    char* sample[64];
    memcpy(sample, more, sizeof(more));
    for (char* m : more) free(m);
    for (int i = 0; i < (huge ? 1 : 24); i++) free(keep[i]);
    free(right);
    free(p);
    wait_for_purge();
    // Of units of memory as large as those that were given back, so that it comes to lie in them.
    const size_t larger = size > 16384 && size < 65536 ? size * 3 / 2 : size * 3 + 48;
    char* other[64];
    for (char*& o : other) o = attack_get(larger);
    // A stale pointer into a new block, where there is one; the start of a live block is what no allocator can tell.
    char* stale = nullptr;
    for (char* m : sample) {
      bool starts = false, inside = false;
      for (char* o : other) {
        starts = starts || mi_test_hide(m) == o;
        inside = inside || (m > o && m < o + larger);
      }
      if (!starts && (stale == nullptr || inside)) stale = m;
      if (inside) break;
    }
    if (stale == nullptr) attack_end(false);
    free(attack_announce(stale));
    for (size_t i = 0; i < 64; i++) attack_taken.block[i] = other[i];
    attack_taken.count = 64;
    attack_end(attack_take(larger, nullptr, nullptr));
  }
  attack_usage(how.c_str());
}
