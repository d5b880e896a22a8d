// Owns: the writer.
// May include: base.
// Called by: through json.h.
// Invariants: `len` grows by what a piece would take, whether it fits or not, so that a first run with no buffer measures.
#include "src/sys/json.h"

#include "src/base/fmt.h"

static void mi_json_put(mi_json_t* json, const char* fmt, ...) mi_printf_like(2, 3);

static void mi_json_put(mi_json_t* json, const char* fmt, ...) {
  const size_t at = json->len < json->size ? json->len : json->size;
  va_list args;
  va_start(args, fmt);
  json->len += _mi_fmt_va(at < json->size ? json->buf + at : NULL, json->size - at, fmt, args);
  va_end(args);
}

// What stands before a member: a comma, unless it is the first, a line's end, and its name.
static void mi_json_begin(mi_json_t* json, const char* name, bool line) {
  mi_json_put(json, "%s%s", json->begun ? "," : "", line ? "\n" : json->begun ? " "
                                                                              : "");
  if (name != NULL) {
    mi_json_put(json, "\"%s\": ", name);
  }
  json->begun = true;
}

void _mi_json_open(mi_json_t* json, const char* name, char bracket) {
  if (json->len > 0) {
    mi_json_begin(json, name, true);
  }
  mi_json_put(json, "%c", bracket);
  json->begun = false;
}

void _mi_json_close(mi_json_t* json, char bracket) {
  mi_json_put(json, "%c", bracket);
  json->begun = true;
}

void _mi_json_number(mi_json_t* json, const char* name, int64_t value) {
  mi_json_begin(json, name, false);
  mi_json_put(json, "%lld", (long long)value);
}

void _mi_json_number_line(mi_json_t* json, const char* name, int64_t value) {
  mi_json_begin(json, name, true);
  mi_json_put(json, "%lld", (long long)value);
}

void _mi_json_text(mi_json_t* json, const char* name, const char* text) {
  mi_json_begin(json, name, false);
  mi_json_put(json, "\"%s\"", text);
}
