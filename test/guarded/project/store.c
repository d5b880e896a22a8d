// Owns: the table.
// May include: the C library only.
// Called by: main.c.
// Invariants: two are broken on purpose, by one byte each: copy_value makes no room for the zero at the end, and store_sum reads
// what is behind a value that is kept without one.
#include "store.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry_s {
  struct entry_s* next;
  char* name;
  char* value;
  size_t length;
} entry_t;

struct store_s {
  size_t buckets;
  entry_t* entries[];
};

static size_t hash(const char* text) {
  size_t h = 5381;
  for (; *text != 0; text++) {
    h = h * 33 + (unsigned char)*text;
  }
  return h;
}

static char* copy_name(const char* name) {
  const size_t size = strlen(name) + 1;
  char* const copy = malloc(size);
  return copy == NULL ? NULL : memcpy(copy, name, size);
}

__attribute__((noinline)) static char* copy_value(const char* value, size_t length) {
  char* const copy = malloc(length);
  if (copy != NULL) {
    memcpy(copy, value, length);
    // What an allocator gives in units of 16 bytes has room for this, but where the length is such a unit.
    if (length % 16 != 0) {
      copy[length] = 0;
    }
  }
  return copy;
}

store_t* store_new(size_t buckets) {
  store_t* const store = calloc(1, sizeof(store_t) + buckets * sizeof(entry_t*));
  if (store != NULL) {
    store->buckets = buckets;
  }
  return store;
}

static entry_t** find(store_t* store, const char* name) {
  entry_t** at = &store->entries[hash(name) % store->buckets];
  while (*at != NULL && strcmp((*at)->name, name) != 0) {
    at = &(*at)->next;
  }
  return at;
}

void store_set(store_t* store, const char* name, const char* value) {
  entry_t** const at = find(store, name);
  if (*at == NULL) {
    *at = calloc(1, sizeof(entry_t));
    (*at)->name = copy_name(name);
  }
  free((*at)->value);
  (*at)->length = strlen(value);
  (*at)->value = copy_value(value, (*at)->length);
}

unsigned store_sum(store_t* store, const char* name) {
  const entry_t* const entry = *find(store, name);
  unsigned sum = 0;
  for (size_t i = 0; entry != NULL && i <= entry->length; i++) {
    sum += (unsigned char)((volatile char*)entry->value)[i];
  }
  return sum;
}

void store_remove(store_t* store, const char* name) {
  entry_t** const at = find(store, name);
  entry_t* const entry = *at;
  if (entry != NULL) {
    *at = entry->next;
    free(entry->name);
    free(entry->value);
    free(entry);
  }
}

void store_free(store_t* store) {
  for (size_t i = 0; i < store->buckets; i++) {
    while (store->entries[i] != NULL) {
      store_remove(store, store->entries[i]->name);
    }
  }
  free(store);
}
