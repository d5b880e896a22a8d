// Owns: the writing of JSON into a buffer.
// May include: base.
// Called by: sys.
// Invariants: no allocation; nothing is written beyond the buffer; names and texts are the caller's own, of plain ASCII
// without quotes and backslashes.
#pragma once

#include "src/base/compiler.h"

typedef struct mi_json_s {
  char* buf;
  size_t size;
  size_t len;  // of the whole text so far, written or not
  bool begun;  // the innermost object or array has a member
} mi_json_t;

// The document is whole if `len` is less than the buffer's size at the end; it is zero-terminated then.

// Opens an object ('{') or an array ('['); `name` is NULL in an array and for the document. Each on a line of its own.
void _mi_json_open(mi_json_t* json, const char* name, char bracket);

// Closes it, with '}' or ']'.
void _mi_json_close(mi_json_t* json, char bracket);

// A member of the innermost object.
void _mi_json_number(mi_json_t* json, const char* name, int64_t value);
void _mi_json_text(mi_json_t* json, const char* name, const char* text);

// The same on a line of its own.
void _mi_json_number_line(mi_json_t* json, const char* name, int64_t value);
