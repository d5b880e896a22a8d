// Owns: what we need of the C++ library, if there is one: its new-handler, and throwing std::bad_alloc.
// May include: base, prim, sys; the dynamic linker's interface.
// Called by: new.c, override-cxx.c, only when memory has run out.
// Invariants: every reference to the C++ library and to the dynamic linker is weak: a C program needs neither, and a
// static one gets no warning about the latter. Exceptions pass through the frames of this file.
#define _GNU_SOURCE  // RTLD_DEFAULT, RTLD_NEXT
#include <dlfcn.h>

#include "src/api/api.h"
#include "src/prim/prim.h"
#include "src/sys/log.h"

// std::get_new_handler()
extern mi_new_handler_t _ZSt15get_new_handlerv(void) __attribute__((weak));
// std::__throw_bad_alloc(), in libstdc++ and libc++
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));
// The parts of `throw std::bad_alloc()`, for a static program that has them and not the function above.
extern void* __cxa_allocate_exception(size_t size) __attribute__((weak));
extern void __cxa_throw(void* exception, void* type, void (*destructor)(void*)) __attribute__((weak));
extern char _ZTISt9bad_alloc[] __attribute__((weak));                    // typeinfo of std::bad_alloc
extern char _ZTVSt9bad_alloc[] __attribute__((weak));                    // its virtual table
extern void _ZNSt9bad_allocD1Ev(void* exception) __attribute__((weak));  // its destructor

extern __typeof__(dlsym) dlsym __attribute__((weak));

// A function of a C++ library that came after us and does not belong to the program's global names, as when an
// interpreter written in C loads a module written in C++.
static void* mi_cxx_find(const char* mangled_name) {
  static const char* const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
  if (dlsym == NULL) {
    return NULL;
  }
  void* function = dlsym(RTLD_DEFAULT, mangled_name);
  // By name: the linker warns of every static program that mentions dlopen.
  void* (*const open_library)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_DEFAULT, "dlopen");
  for (size_t i = 0; function == NULL && open_library != NULL && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
    void* const library = open_library(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) {
      function = dlsym(library, mangled_name);
    }
  }
  return function;
}

void* _mi_api_cxx_next(const char* mangled_name) { return dlsym == NULL ? NULL : dlsym(RTLD_NEXT, mangled_name); }

mi_new_handler_t _mi_api_cxx_new_handler(void) {
  if (_ZSt15get_new_handlerv != NULL) {
    return _ZSt15get_new_handlerv();
  }
  mi_new_handler_t (*const get)(void) = (mi_new_handler_t(*)(void))mi_cxx_find("_ZSt15get_new_handlerv");
  return get == NULL ? NULL : get();
}

void _mi_api_cxx_throw_bad_alloc(size_t size) {
  if (_ZSt17__throw_bad_allocv != NULL) {
    _ZSt17__throw_bad_allocv();
  }
  if (__cxa_allocate_exception != NULL && __cxa_throw != NULL && _ZTISt9bad_alloc != NULL && _ZTVSt9bad_alloc != NULL &&
      _ZNSt9bad_allocD1Ev != NULL) {
    // An object of that class is the address of its virtual functions, which follow two words of its table.
    char** const exception = __cxa_allocate_exception(sizeof(char*));
    *exception = _ZTVSt9bad_alloc + 2 * sizeof(void*);
    __cxa_throw(exception, _ZTISt9bad_alloc, _ZNSt9bad_allocD1Ev);
  }
  void (*const throw_bad_alloc)(void) = (void (*)(void))mi_cxx_find("_ZSt17__throw_bad_allocv");
  if (throw_bad_alloc != NULL) {
    throw_bad_alloc();
  }
  _mi_log_raw(MI_PROFILE_NAME ": out-of-memory: operator new of %zu bytes failed, and there is no C++ library to throw\n",
              size);
  _mi_prim_abort();
}
