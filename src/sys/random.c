// Owns: the root of the process's random numbers and the drawing from contexts.
// May include: base, prim, sys/lock.h, sys/os.h.
// Called by: through random.h.
// Invariants: all that a child must not inherit is in the root's page; all zero there means "not seeded, lock open".
#include "src/sys/random.h"

#include "src/base/assert.h"
#include "src/base/chacha20.h"
#include "src/prim/prim.h"
#include "src/sys/lock.h"
#include "src/sys/os.h"
#include "src/sys/sealed.h"

typedef struct mi_random_root_s {
  mi_lock_t lock;
  _Atomic(uint32_t) generation;  // 0: to be seeded before use
  bool weak;                     // seeded without the system's generator
  uint32_t key[2 * MI_RANDOM_KEY];
} mi_random_root_t;

// Stands in where no page can be had; then only the fork handlers protect a child.
static mi_random_root_t mi_random_root_without_page;

// The address of the root is configuration: whoever could change it would choose all keys. What is in the root is not, as
// its key is replaced at each draw; it stands between guard pages and nothing but this file knows where.
static mi_random_root_t* mi_random_root_page(void) {
  // Acquire: pairs with the release in mi_random_root_make.
  return (mi_random_root_t*)mi_atomic_load_acquire(&_mi_settings.random_root);
}

// The last generation given out. Not wiped in a child, which so never takes a number that an inherited context has.
static _Atomic(uint32_t) mi_random_last_generation;

uint32_t _mi_random_generation(void) {
  mi_random_root_t* const root = mi_random_root_page();
  return root == NULL ? 0 : mi_atomic_load_relaxed(&root->generation);
}

bool _mi_random_is_weak(void) {
  mi_random_root_t* const root = mi_random_root_page();
  return root != NULL && root->weak;
}

// Keys

// Replaces the key and gives 256 bits that are independent of the new one.
static void mi_random_step(uint32_t key[2 * MI_RANDOM_KEY], uint32_t output[2 * MI_RANDOM_KEY]) {
  static const uint32_t nonce[3] = {0, 0, 0};
  uint32_t block[16];
  _mi_chacha20_block(key, 0, nonce, (uint8_t*)block);
  for (size_t i = 0; i < 2 * (size_t)MI_RANDOM_KEY; i++) {
    key[i] = block[i];
    output[i] = block[i + 2 * (size_t)MI_RANDOM_KEY];
  }
}

// What differs between processes, threads and times, where the system's generator is not available. All of it goes
// through the block function, so that the bytes of the process's start, which others use too, do not show.
static void mi_random_weak_seed(mi_random_root_t* root, uint32_t seed[2 * MI_RANDOM_KEY]) {
  union {
    uint8_t bytes[16];
    uint32_t words[4];
  } start = {{0}};
  // Without these, addresses are what the seed is made of.
  (void)_mi_prim_random_at_start(start.bytes);
  const uint64_t more[2] = {
      (uint64_t)(uintptr_t)root ^ (uint64_t)(uintptr_t)seed << 24 ^ (uint64_t)_mi_prim_clock_ms() << 40,
      (uint64_t)(uintptr_t)&_mi_settings << 16 ^ (uint64_t)(uintptr_t)&_mi_prim_random ^
          (uint64_t)_mi_prim_os_thread_id() << 32,
  };
  uint32_t key[2 * MI_RANDOM_KEY];
  for (size_t i = 0; i < 4; i++) {
    key[i] = start.words[i];
  }
  for (size_t i = 0; i < 2; i++) {
    key[4 + 2 * i] = (uint32_t)more[i];
    key[5 + 2 * i] = (uint32_t)(more[i] >> 32);
  }
  mi_random_step(key, seed);
}

// The root. Its lock is held by whoever uses more than the generation.

static mi_cold mi_random_root_t* mi_random_root_make(void) {
  const size_t size = _mi_os_page_size();
  mi_random_root_t* fresh = _mi_os_reserve_permanent(size, true);
  if (fresh == NULL) {
    fresh = &mi_random_root_without_page;
  } else {
    _mi_prim_wipe_on_fork(fresh, size);
  }
  if (!_mi_sealed_open("the root of random numbers")) {
    return &mi_random_root_without_page;
  }
  mi_random_root_t* root = mi_random_root_page();
  if (root == NULL) {
    root = fresh;
    // Release publishes the page; pairs with the acquire in mi_random_root_page.
    mi_atomic_store_release(&_mi_settings.random_root, (uintptr_t)fresh);
  }
  // Else another thread was first; its page serves both, and this one stays unused.
  _mi_sealed_close();
  return root;
}

static mi_random_root_t* mi_random_root(void) {
  mi_random_root_t* const root = mi_random_root_page();
  return mi_likely(root != NULL) ? root : mi_random_root_make();
}

static void mi_random_root_seed(mi_random_root_t* root) {
  uint32_t seed[2 * MI_RANDOM_KEY];
  root->weak = !_mi_prim_random(seed, sizeof(seed));
  if (root->weak) {
    mi_random_weak_seed(root, seed);
  }
  // What the key held before, if anything, only adds to it.
  for (size_t i = 0; i < 2 * (size_t)MI_RANDOM_KEY; i++) {
    root->key[i] ^= seed[i];
  }
  mi_random_step(root->key, seed);
}

static void mi_random_root_next_generation(mi_random_root_t* root) {
  uint32_t generation = mi_atomic_add_relaxed(&mi_random_last_generation, 1) + 1;
  if (generation == 0) {
    generation = mi_atomic_add_relaxed(&mi_random_last_generation, 1) + 1;
  }
  mi_atomic_store_relaxed(&root->generation, generation);
}

// A key for a context, and the generation it belongs to.
static uint32_t mi_random_root_draw(uint32_t key[2 * MI_RANDOM_KEY]) {
  mi_random_root_t* const root = mi_random_root();
  _mi_lock_acquire(&root->lock);
  if (mi_atomic_load_relaxed(&root->generation) == 0) {
    mi_random_root_seed(root);
    mi_random_root_next_generation(root);
  } else if (root->weak) {
    mi_random_root_seed(root);
  }
  mi_random_step(root->key, key);
  const uint32_t generation = mi_atomic_load_relaxed(&root->generation);
  _mi_lock_release(&root->lock);
  return generation;
}

// Contexts

static void mi_random_seed(mi_random_t* random) {
  uint32_t key[2 * MI_RANDOM_KEY];
  const uint32_t generation = mi_random_root_draw(key);
  const bool seeded = random->generation != 0;
  for (size_t i = 0; i < 2 * (size_t)MI_RANDOM_KEY; i++) {
    // In a child the old key is still a secret, which helps where the new root is weak.
    random->key[i] = seeded ? random->key[i] ^ key[i] : key[i];
  }
  random->left = 0;
  random->generation = generation;
}

void _mi_random_init(mi_random_t* random) {
  random->generation = 0;
  mi_random_seed(random);
}

static void mi_random_refill(mi_random_t* random) {
  static const uint32_t nonce[3] = {0, 0, 0};
  _mi_chacha20_block(random->key, 0, nonce, (uint8_t*)&random->pool[0]);
  _mi_chacha20_block(random->key, 1, nonce, (uint8_t*)&random->pool[MI_RANDOM_POOL / 2]);
  for (size_t i = 0; i < MI_RANDOM_KEY; i++) {
    random->key[2 * i] = (uint32_t)random->pool[i];
    random->key[2 * i + 1] = (uint32_t)(random->pool[i] >> 32);
    random->pool[i] = 0;
  }
  random->left = MI_RANDOM_POOL - MI_RANDOM_KEY;
}

static mi_cold void mi_random_prepare(mi_random_t* random) {
  const uint32_t generation = _mi_random_generation();
  if (generation == 0 || random->generation != generation) {
    mi_random_seed(random);
  }
  mi_random_refill(random);
}

uint64_t _mi_random_next(mi_random_t* random) {
  if (mi_unlikely(random->left == 0 || random->generation != _mi_random_generation())) {
    mi_random_prepare(random);
  }
  // From the end, so that the words that became the key are never reached; what is handed out is not kept.
  random->left--;
  const size_t i = MI_RANDOM_KEY + random->left;
  const uint64_t word = random->pool[i];
  random->pool[i] = 0;
  return word;
}

size_t _mi_random_below(mi_random_t* random, size_t bound) {
  mi_assert_internal(bound > 0);
  return (size_t)(_mi_random_next(random) % bound);
}

void _mi_random_split(mi_random_t* parent, mi_random_t* child) {
  child->generation = 0;
  if (parent == NULL) {
    _mi_random_init(child);
    return;
  }
  for (size_t i = 0; i < MI_RANDOM_KEY; i++) {
    const uint64_t word = _mi_random_next(parent);
    child->key[2 * i] = (uint32_t)word;
    child->key[2 * i + 1] = (uint32_t)(word >> 32);
  }
  child->left = 0;
  child->generation = parent->generation;
}

// Fork

void _mi_random_reseed_after_fork(void) {
  mi_random_root_t* const root = mi_random_root_page();
  if (root != NULL) {
    // The root's next user seeds it, as when the page was wiped.
    mi_atomic_store_relaxed(&root->generation, 0);
  }
}

void _mi_random_fork_prepare(void) { _mi_lock_acquire(&mi_random_root()->lock); }

void _mi_random_fork_release(bool in_child) {
  mi_random_root_t* const root = mi_random_root();
  if (in_child) {
    _mi_random_reseed_after_fork();
    _mi_lock_reset(&root->lock);
  } else {
    _mi_lock_release(&root->lock);
  }
}
