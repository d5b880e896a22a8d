// Owns: allocators for containers of C++, on the public interface.
// May include: its neighbours, and the headers of the language.
// Called by: mimalloc.h, which programs include.
// Invariants: C sees nothing of it; what it defines works from C++11 on.
#ifndef MIMALLOC_STL_H
#define MIMALLOC_STL_H

#if defined(__cplusplus)

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "alloc.h"
#include "heap.h"

// ---- Allocators for containers of C++. They may be used wherever an allocator of the C++ library may. ----

// What the allocators below have in common: their types, and members that C++20 dropped but containers of C++11 call.
template <class T>
struct _mi_stl_allocator_base {
  typedef T value_type;
  typedef std::size_t size_type;
  typedef std::ptrdiff_t difference_type;
  typedef T& reference;
  typedef const T& const_reference;
  typedef T* pointer;
  typedef const T* const_pointer;
  typedef std::true_type propagate_on_container_copy_assignment;
  typedef std::true_type propagate_on_container_move_assignment;
  typedef std::true_type propagate_on_container_swap;

  size_type max_size() const noexcept { return static_cast<size_type>(PTRDIFF_MAX) / sizeof(T); }
  pointer address(reference x) const noexcept { return std::addressof(x); }
  const_pointer address(const_reference x) const noexcept { return std::addressof(x); }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  template <class U>
  void destroy(U* p) noexcept {
    p->~U();
  }

 protected:
  // mi_new and its kin know no alignment that is below this one.
  static constexpr bool is_over_aligned() { return alignof(T) > alignof(std::max_align_t); }
  static void free_n(T* p, size_type count) noexcept {
    if (is_over_aligned()) {
      mi_free_size_aligned(p, count * sizeof(T), alignof(T));
    } else {
      mi_free_size(p, count * sizeof(T));
    }
  }
};

// mi_stl_allocator allocates for the containers of the C++ library, from the main heap. It has no state: any instance
// frees what another allocated. It fails as mi_new.
template <class T>
struct mi_stl_allocator : public _mi_stl_allocator_base<T> {
  typedef std::size_t size_type;
  typedef std::true_type is_always_equal;
  // The same for other types.
  template <class U>
  struct rebind {
    typedef mi_stl_allocator<U> other;
  };

  mi_stl_allocator() noexcept = default;
  mi_stl_allocator(const mi_stl_allocator&) noexcept = default;
  mi_stl_allocator& operator=(const mi_stl_allocator&) noexcept = default;
  template <class U>
  mi_stl_allocator(const mi_stl_allocator<U>&) noexcept {}
  mi_stl_allocator select_on_container_copy_construction() const { return *this; }

  mi_decl_nodiscard T* allocate(size_type count, const void* = nullptr) {
    if (!this->is_over_aligned() || count > this->max_size()) {
      return static_cast<T*>(mi_new_n(count, sizeof(T)));
    }
    return static_cast<T*>(mi_new_aligned(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, size_type count) noexcept { this->free_n(p, count); }
};

template <class T, class U>
bool operator==(const mi_stl_allocator<T>&, const mi_stl_allocator<U>&) noexcept {
  return true;
}
template <class T, class U>
bool operator!=(const mi_stl_allocator<T>&, const mi_stl_allocator<U>&) noexcept {
  return false;
}

// MI_HAS_HEAP_STL_ALLOCATOR says that there are allocators that hold a heap.

#define MI_HAS_HEAP_STL_ALLOCATOR 1

// What allocators that hold a heap have in common. Copies share the heap; so do copies for another type. The last of
// those that share a heap of their own ends it.
template <class T, bool is_destroyed>
struct _mi_heap_stl_allocator_base : public _mi_stl_allocator_base<T> {
  typedef std::size_t size_type;
  typedef std::false_type is_always_equal;

  mi_decl_nodiscard T* allocate(size_type count, const void* = nullptr) {
    if (!this->is_over_aligned() || count > this->max_size()) {
      return static_cast<T*>(mi_heap_alloc_new_n(heap.get(), count, sizeof(T)));
    }
    for (;;) {
      void* const p = mi_heap_malloc_aligned(heap.get(), count * sizeof(T), alignof(T));
      if (p != nullptr) return static_cast<T*>(p);
      const std::new_handler handler = std::get_new_handler();
      if (handler == nullptr) return static_cast<T*>(fail());
      handler();
    }
  }
  void deallocate(T* p, size_type count) noexcept {
    if (!is_destroyed) this->free_n(p, count);
  }

  // Whether what one allocates the other can free: whether they hold the same heap.
  template <class U>
  bool is_equal(const _mi_heap_stl_allocator_base<U, is_destroyed>& other) const noexcept {
    return heap == other.heap;
  }

 protected:
  template <class U, bool d>
  friend struct _mi_heap_stl_allocator_base;

  // Throws std::bad_alloc: out of the library, since a program may be compiled without exceptions. The compiler would warn
  // of a product that it knows to overflow.
  static void* fail() {
    volatile std::size_t all = SIZE_MAX;
    return mi_new_n(all, 2);
  }
  static mi_heap_t* checked(mi_heap_t* h) { return h != nullptr ? h : static_cast<mi_heap_t*>(fail()); }
  static void end(mi_heap_t* h) { is_destroyed ? mi_heap_destroy(h) : mi_heap_delete(h); }
  static void keep(mi_heap_t*) {}

  _mi_heap_stl_allocator_base() : heap(checked(mi_heap_new()), end) {}
  explicit _mi_heap_stl_allocator_base(mi_heap_t* h) : heap(h, keep) {}
  // Copies only: an allocator that was moved from must still be equal to what it was.
  _mi_heap_stl_allocator_base(const _mi_heap_stl_allocator_base&) noexcept = default;
  _mi_heap_stl_allocator_base& operator=(const _mi_heap_stl_allocator_base&) noexcept = default;
  template <class U>
  explicit _mi_heap_stl_allocator_base(const _mi_heap_stl_allocator_base<U, is_destroyed>& other) noexcept
      : heap(other.heap) {}

  std::shared_ptr<mi_heap_t> heap;
};

// mi_heap_stl_allocator allocates for the containers of the C++ library from a heap: one given to it, which it does not
// end and which must outlive it, or else a new one, which ends with the last copy as by mi_heap_delete. It fails as
// mi_new; so does the making of a heap.
template <class T>
struct mi_heap_stl_allocator : public _mi_heap_stl_allocator_base<T, false> {
  // The same for other types.
  template <class U>
  struct rebind {
    typedef mi_heap_stl_allocator<U> other;
  };

  mi_heap_stl_allocator() = default;
  mi_heap_stl_allocator(mi_heap_t* hp) : _mi_heap_stl_allocator_base<T, false>(hp) {}
  mi_heap_stl_allocator(const mi_heap_stl_allocator&) noexcept = default;
  mi_heap_stl_allocator& operator=(const mi_heap_stl_allocator&) noexcept = default;
  template <class U>
  mi_heap_stl_allocator(const mi_heap_stl_allocator<U>& other) noexcept
      : _mi_heap_stl_allocator_base<T, false>(other) {}
  mi_heap_stl_allocator select_on_container_copy_construction() const { return *this; }
};

template <class T, class U>
bool operator==(const mi_heap_stl_allocator<T>& a, const mi_heap_stl_allocator<U>& b) noexcept {
  return a.is_equal(b);
}
template <class T, class U>
bool operator!=(const mi_heap_stl_allocator<T>& a, const mi_heap_stl_allocator<U>& b) noexcept {
  return !a.is_equal(b);
}

// mi_heap_destroy_stl_allocator is mi_heap_stl_allocator that frees nothing one by one: its own heap is destroyed with
// the last copy, as by mi_heap_destroy, and all blocks with it. With a heap given to it, that is left to the giver.
template <class T>
struct mi_heap_destroy_stl_allocator : public _mi_heap_stl_allocator_base<T, true> {
  // The same for other types.
  template <class U>
  struct rebind {
    typedef mi_heap_destroy_stl_allocator<U> other;
  };

  mi_heap_destroy_stl_allocator() = default;
  mi_heap_destroy_stl_allocator(mi_heap_t* hp) : _mi_heap_stl_allocator_base<T, true>(hp) {}
  mi_heap_destroy_stl_allocator(const mi_heap_destroy_stl_allocator&) noexcept = default;
  mi_heap_destroy_stl_allocator& operator=(const mi_heap_destroy_stl_allocator&) noexcept = default;
  template <class U>
  mi_heap_destroy_stl_allocator(const mi_heap_destroy_stl_allocator<U>& other) noexcept
      : _mi_heap_stl_allocator_base<T, true>(other) {}
  mi_heap_destroy_stl_allocator select_on_container_copy_construction() const { return *this; }
};

template <class T, class U>
bool operator==(const mi_heap_destroy_stl_allocator<T>& a, const mi_heap_destroy_stl_allocator<U>& b) noexcept {
  return a.is_equal(b);
}
template <class T, class U>
bool operator!=(const mi_heap_destroy_stl_allocator<T>& a, const mi_heap_destroy_stl_allocator<U>& b) noexcept {
  return !a.is_equal(b);
}

#endif  // __cplusplus

#endif  // MIMALLOC_STL_H
