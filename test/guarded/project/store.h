// Owns: a table of texts by name.
// May include: the C library only.
// Called by: main.c.
// Invariants: names and values are copies of the store's own.
#pragma once

#include <stddef.h>

typedef struct store_s store_t;

store_t* store_new(size_t buckets);
void store_free(store_t* store);

// Sets the value of a name; what it had before is freed.
void store_set(store_t* store, const char* name, const char* value);

// The sum of a value's bytes.
unsigned store_sum(store_t* store, const char* name);

// Removes a name, if it is there.
void store_remove(store_t* store, const char* name);
