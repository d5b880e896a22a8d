// Owns: workloads that look like data structures: a string map and search trees.
// May include: bench.h, libc.
// Called by: main.c through shape_workloads.
// Invariants: every node, key and value is a block of its own; the structures are complete enough that their content is a check.
#include "bench.h"

#include <stdio.h>
#include <string.h>

// ---- a map from short strings to short strings, chained, doubled when it fills ----
typedef struct entry_s {
  struct entry_s* next;
  char* key;
  char* value;
  uint64_t hash;
} entry_t;

typedef struct map_s {
  entry_t** buckets;
  size_t bucket_count;  // a power of two
  size_t count;
} map_t;

static char* text_of(const char* prefix, uint64_t number, size_t pad) {
  char text[96];
  int length = snprintf(text, sizeof(text), "%s%llu", prefix, (unsigned long long)number);
  size_t total = (size_t)length + pad;
  char* copy = must_malloc(total + 1);
  memcpy(copy, text, (size_t)length);
  memset(copy + length, '.', pad);
  copy[total] = 0;
  return copy;
}

static uint64_t hash_text(const char* text) {
  uint64_t h = 0x243f6a8885a308d3u;
  for (; *text != 0; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return mix64(h);
}

static void map_resize(map_t* map, size_t bucket_count) {
  entry_t** fresh = calloc(bucket_count, sizeof(*fresh));
  if (fresh == NULL) die("calloc returned NULL");
  for (size_t i = 0; i < map->bucket_count; i++) {
    for (entry_t* e = map->buckets[i]; e != NULL;) {
      entry_t* next = e->next;
      entry_t** head = &fresh[e->hash & (bucket_count - 1)];
      e->next = *head;
      *head = e;
      e = next;
    }
  }
  free(map->buckets);
  map->buckets = fresh;
  map->bucket_count = bucket_count;
}

// Where the entry of `key` hangs, or where it would.
static entry_t** map_find(map_t* map, const char* key, uint64_t hash) {
  entry_t** at = &map->buckets[hash & (map->bucket_count - 1)];
  while (*at != NULL && ((*at)->hash != hash || strcmp((*at)->key, key) != 0)) at = &(*at)->next;
  return at;
}

static void map_set(map_t* map, char* key, char* value) {  // takes both strings over
  uint64_t hash = hash_text(key);
  entry_t** at = map_find(map, key, hash);
  if (*at != NULL) {
    free(key);
    free((*at)->value);
    (*at)->value = value;
    return;
  }
  entry_t* e = must_malloc(sizeof(*e));
  *e = (entry_t){NULL, key, value, hash};
  *at = e;
  if (++map->count > map->bucket_count) map_resize(map, map->bucket_count * 2);
}

static bool map_remove(map_t* map, const char* key) {
  entry_t** at = map_find(map, key, hash_text(key));
  entry_t* e = *at;
  if (e == NULL) return false;
  *at = e->next;
  map->count--;
  free(e->key);
  free(e->value);
  free(e);
  return true;
}

static uint64_t string_map(unsigned scale) {
  size_t operations = scaled(500000, scale, 5000);
  size_t key_space = operations / 4 + 1;
  rng_t r = {301};
  map_t map = {NULL, 0, 0};
  map_resize(&map, 16);
  uint64_t sum = 0;
  for (size_t i = 0; i < operations; i++) {
    uint64_t random = rng_next(&r);
    uint64_t number = (random >> 8) % key_space;
    char* key = text_of("key:", number * 7919, number % 24);
    if ((random & 7) == 0) {
      sum += map_remove(&map, key);
      free(key);
    } else if ((random & 7) < 4) {
      entry_t* e = *map_find(&map, key, hash_text(key));
      if (e != NULL) sum += hash_text(e->value);
      free(key);
    } else {
      map_set(&map, key, text_of("value of ", random >> 40, random >> 59));
    }
  }
  for (size_t i = 0; i < map.bucket_count; i++) {
    for (entry_t* e = map.buckets[i]; e != NULL;) {
      entry_t* next = e->next;
      sum += hash_text(e->key) ^ hash_text(e->value);
      free(e->key);
      free(e->value);
      free(e);
      e = next;
    }
  }
  free(map.buckets);
  return sum + map.count;
}

// ---- trees: perfect ones built and torn down, and a search tree whose shape is kept random by its keys ----
typedef struct node_s {
  struct node_s* left;
  struct node_s* right;
  uint64_t key;
} node_t;

static node_t* tree_build(unsigned depth, uint64_t key) {
  node_t* n = must_malloc(sizeof(*n));
  n->key = key;
  n->left = depth == 0 ? NULL : tree_build(depth - 1, key * 2);
  n->right = depth == 0 ? NULL : tree_build(depth - 1, key * 2 + 1);
  return n;
}

static uint64_t tree_teardown(node_t* n) {
  if (n == NULL) return 0;
  uint64_t sum = n->key + tree_teardown(n->left);
  sum += tree_teardown(n->right);
  free(n);
  return sum;
}

static void tree_insert(node_t** at, uint64_t key) {
  while (*at != NULL) {
    if ((*at)->key == key) return;
    at = key < (*at)->key ? &(*at)->left : &(*at)->right;
  }
  *at = must_malloc(sizeof(node_t));
  **at = (node_t){NULL, NULL, key};
}

static bool tree_remove(node_t** at, uint64_t key) {
  while (*at != NULL && (*at)->key != key) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
  node_t* n = *at;
  if (n == NULL) return false;
  if (n->left == NULL || n->right == NULL) {
    *at = n->left == NULL ? n->right : n->left;
  } else {  // the least node on the right takes its place
    node_t** least = &n->right;
    while ((*least)->left != NULL) least = &(*least)->left;
    node_t* heir = *least;
    *least = heir->right;
    heir->left = n->left;
    heir->right = n->right;
    *at = heir;
  }
  free(n);
  return true;
}

static uint64_t tree(unsigned scale) {
  uint64_t sum = 0;
  size_t rounds = scaled(16, scale, 1);
  node_t* long_lived = tree_build(15, 1);
  for (size_t round = 0; round < rounds; round++) {
    for (unsigned depth = 4; depth <= 16; depth += 4) {
      for (size_t i = 0; i < (size_t)1 << (16 - depth); i++) sum += tree_teardown(tree_build(depth, i + 1));
    }
  }
  return sum + tree_teardown(long_lived);
}

static uint64_t search_tree(unsigned scale) {
  size_t operations = scaled(2500000, scale, 5000);
  rng_t r = {302};
  node_t* root = NULL;
  uint64_t sum = 0;
  for (size_t i = 0; i < operations; i++) {
    uint64_t random = rng_next(&r);
    uint64_t key = mix64(random & 0x3fff);
    if ((random >> 63) != 0) tree_insert(&root, key);
    else sum += tree_remove(&root, key);
  }
  return sum + tree_teardown(root);
}

const workload_t shape_workloads[] = {
    {"string-map", string_map, "a hash table of short strings: set, get, remove, resize"},
    {"tree", tree, "perfect trees of 24-byte nodes built and torn down beside a long-lived one"},
    {"search-tree", search_tree, "inserts and removals in a search tree of up to 16384 nodes"},
    {NULL, NULL, NULL},
};
