// coalescing_memory: pool memory for containers that places data written together on as few lines
// as possible.
//
//   struct book { using pool_resident = void;
//     stele::coalescing_hash_map<stele::coalescing_string, stele::coalescing_string> numbers; };
//   auto pool = stele::pool<book>::open("book.stele", {.create_size = 16 << 20});
//   auto put = pool->update([](book& b) { b.numbers.insert_or_assign("Ann", "1 Upper Street"); });
//   if (!put) std::fprintf(stderr, "%s\n", put.error().message.c_str());
//
// A commit writes back whole lines, so a line with few stored bytes wastes memory bandwidth. After
// section III-D of Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent
// Memory" (2019). Departure: the paper has three pools (keys; fields with their values; logs); here
// three rules govern allocations from the pool's one heap:
//
// - Alignment: an object of up to one line lies within one line. A longer object ends at the end of
//   a line, so its last member, a node's value, starts at the start of a line if its size is a
//   multiple of a line. No object is on more lines than its size needs.
// - Colocation: strings passed to make() are stored behind the object, in its block, if its
//   constructor assigns them to member strings. So a node with its key and value is one block,
//   written as one run of lines, with one state byte in the heap.
// - Separation: arrays and texts in their own blocks have their own lines. Objects of up to half a
//   line share lines only with objects. (Log records have their own lines in every pool.)
//
// A policy as in memory.h, beside pool_memory; one pool may hold containers of both. It allocates,
// stores and frees only through the running transaction, so the contents after a crash are as with
// pool_memory; so are errors and thread safety. Cost: blocks are rounded up to 16, 32 or 64 bytes
// or whole lines. Space behind an object stays allocated until the object is destroyed, also when
// its text has outgrown it or has become short enough to be inline. An object made here must be
// destroyed here.
#pragma once

#include <stele/array.h>
#include <stele/bptree.h>
#include <stele/queue.h>
#include <stele/set.h>
#include <stele/string.h>
#include <stele/vector.h>

namespace stele {

namespace detail {

// Allocated bytes for `size` bytes. Up to a line: a power of two, so that no neighbour pushes a
// block across a line boundary (the heap has blocks of 16 and 32 bytes at multiples of their size).
// Else whole lines.
constexpr std::size_t slot_bytes(std::size_t size) noexcept {
  if (size <= line_size) return std::max<std::size_t>(std::bit_ceil(size), 16);
  return (size + line_size - 1) / line_size * line_size;
}

// Offset for `size` bytes after an object that ends at `end`: the next word, or the next line if
// they would otherwise be on one more line.
constexpr std::size_t offset_after(std::size_t end, std::size_t size) noexcept {
  const auto lines = [](std::size_t bytes) { return (bytes + line_size - 1) / line_size; };
  const std::size_t at = (end + 7) / 8 * 8;
  return lines(at % line_size + size) > lines(size) ? lines(at) * line_size : at;
}

// The alignment with which array elements are on as few lines as their size needs.
constexpr std::size_t padded_alignment(std::size_t size, std::size_t alignment) noexcept {
  while (alignment < line_size &&
         line_size - alignment + size > (size + line_size - 1) / line_size * line_size)
    alignment *= 2;
  return alignment;
}

// The object under construction in this thread, and the free space behind it in its block.
struct construction {
  const std::byte* object = nullptr;
  std::size_t object_bytes = 0;
  std::byte* block = nullptr;
  std::size_t end = 0, size = 0;  // end of the used part, size of the block
};
inline constinit thread_local construction this_construction;

}  // namespace detail

struct coalescing_memory : pool_memory {
  // As stele::make. String arguments that are too long to be inline get space in the object's
  // block.
  template <class T, class... Arguments>
  static T* make(Arguments&&... arguments) {
    static_assert(pool_object<T>,
                  "an object in a pool is a standard-layout struct of fields and stele containers");
    require_members<T>();
    static_assert(alignof(T) <= detail::line_size,
                  "coalescing memory places by lines: use pool_memory for a larger alignment");
    static_assert(sizeof...(Arguments) == 0 || !std::is_aggregate_v<T>,
                  "give the type a constructor to make it from arguments");
    std::size_t end = detail::slot_bytes(sizeof(T));
    (add_text(end, arguments), ...);
    const std::size_t size = detail::slot_bytes(end);
    auto* const block = static_cast<std::byte*>(
        detail::allocate(size, size < detail::line_size ? 8 : detail::line_size));
    void* const at = block + leading_padding<T>;
    T* object = nullptr;
    if constexpr (sizeof...(Arguments) == 0) {
      fill_zero(at, sizeof(T));
      object = static_cast<T*>(at);
      if constexpr (!std::is_trivially_default_constructible_v<T>) object = ::new (at) T;
    } else {
      const constructing here(
          {static_cast<std::byte*>(at), sizeof(T), block, detail::slot_bytes(sizeof(T)), size});
      object = ::new (at) T(std::forward<Arguments>(arguments)...);
    }
    // Keeps the zeroes stored before the constructor: they are the values of its fields.
    asm volatile("" : "+r"(object) : : "memory");
    return object;
  }
  // Destroys an object that make() returned; null does nothing.
  template <class T>
  static void destroy(T* object) {
    if (object == nullptr) return;
    if constexpr (!std::is_trivially_destructible_v<T>) object->~T();
    deallocate(const_cast<void*>(block_of(object)));
  }
  // The block of an object that make() returned.
  template <class T>
  static const void* block_of(const T* object) noexcept {
    return reinterpret_cast<const std::byte*>(object) - leading_padding<T>;
  }

  template <class T>
  static T* make_array(std::size_t count) {
    return make_array_in<coalescing_memory, T>(count);
  }

  // A struct of fields, padded to be an element of an array whose elements are written one at a
  // time, not in runs. line_padded_in works with any memory.
  template <class T>
  struct alignas(detail::padded_alignment(sizeof(T), alignof(T))) line_padded : T {};

  // Allocates whole lines.
  static void* allocate(std::size_t size_bytes, std::size_t alignment) {
    const bool plausible = size_bytes <= max_bytes;  // a larger size is left to the heap to refuse
    return detail::allocate(
        plausible ? detail::slot_bytes(std::max(size_bytes, detail::line_size)) : size_bytes,
        std::max(alignment, detail::line_size));
  }

  // Memory in the block of the object under construction in this thread, for the bytes of its
  // member `member`. Null if `member` is not such a member or there is no space. Freed with the
  // object, never by itself.
  static void* allocate_colocated(const void* member, std::size_t size_bytes) noexcept {
    detail::construction& c = detail::this_construction;
    if (reinterpret_cast<std::uintptr_t>(member) - reinterpret_cast<std::uintptr_t>(c.object) >=
        c.object_bytes)
      return nullptr;
    const std::size_t at = detail::offset_after(c.end, size_bytes);
    if (at > c.size || size_bytes > c.size - at) return nullptr;
    c.end = at + size_bytes;
    return c.block + at;
  }

 private:
  // A longer text gains nothing from colocation.
  static constexpr std::size_t max_colocated_bytes = 4096;

  // Bytes from the start of a block to its object.
  template <class T>
  static constexpr std::size_t leading_padding =
      (detail::slot_bytes(sizeof(T)) - sizeof(T)) / 8 * 8;

  template <class Argument>
  static void add_text(std::size_t& end, const Argument& argument) {
    if constexpr (std::is_pointer_v<Argument>)
      if (argument == nullptr) return;
    if constexpr (std::is_convertible_v<const Argument&, std::string_view>) {
      const std::size_t size = std::string_view(argument).size();
      if (size <= basic_string<coalescing_memory>::inline_capacity || size > max_colocated_bytes)
        return;
      if (const std::size_t with = detail::offset_after(end, size) + size;
          with <= max_colocated_bytes)
        end = with;
    }
  }

  // Sets this_construction while a constructor runs, and restores the outer one afterwards.
  class constructing {
   public:
    explicit constructing(const detail::construction& c) noexcept
        : before_(std::exchange(detail::this_construction, c)) {}
    ~constructing() { detail::this_construction = before_; }
    constructing(const constructing&) = delete;
    constructing& operator=(const constructing&) = delete;

   private:
    detail::construction before_;
  };
};

namespace detail {

template <class T, class Memory>
struct line_padded_element {
  using type = T;
};
template <class T, class Memory>
  requires requires { typename Memory::template line_padded<T>; }
struct line_padded_element<T, Memory> {
  using type = typename Memory::template line_padded<T>;
};

}  // namespace detail

// With coalescing memory: T, padded if a T would be on more lines than its size needs. Otherwise T.
template <class T, class Memory>
using line_padded_in = typename detail::line_padded_element<T, Memory>::type;

// The containers with this memory.
using coalescing_string = basic_string<coalescing_memory>;
template <class T>
using coalescing_array = basic_array<T, coalescing_memory>;
template <class T>
using coalescing_vector = basic_vector<T, coalescing_memory>;
template <class T>
using coalescing_queue = basic_queue<T, coalescing_memory>;
template <class K, class V>
using coalescing_hash_map = basic_hash_map<K, V, coalescing_memory>;
template <class K, class V>
using coalescing_map = basic_map<K, V, coalescing_memory>;
template <class K>
using coalescing_set = basic_set<coalescing_map<K, detail::no_value>>;
template <class K>
using coalescing_hash_set = basic_set<coalescing_hash_map<K, detail::no_value>>;
template <class K, class V>
using coalescing_bptree = basic_bptree<K, V, coalescing_memory>;

}  // namespace stele
