// Owns: the smallest shared object that holds the allocator statically, for test/contract/dlclose.c.
// May include: nothing; it is linked with the archive of a variant.
// Called by: test/contract/dlclose.c, by dlopen; given to the runner as --plugin.
// Invariants: exports these two names only; the allocator's own stay inside.
// Flags: -shared -fPIC
#include <stddef.h>

void* mi_malloc(size_t size);
void mi_free(void* p);

__attribute__((visibility("default"))) void* plugin_alloc(size_t size);
__attribute__((visibility("default"))) void plugin_free(void* p);

void* plugin_alloc(size_t size) { return mi_malloc(size); }

void plugin_free(void* p) { mi_free(p); }
