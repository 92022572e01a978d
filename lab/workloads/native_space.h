// The memory of a native run: an address space of its own, a heap in it, and the tape that its
// accesses go to.
//
// Addresses on the tape are offsets in the space, so they are the same wherever the host puts it.
// The host backs a page only when it is touched: an element of which one word is kept takes one
// page, whatever its size. Blocks are handed out in the order of requests and reused last freed
// first by the thread that freed them, as allocators with thread caches do; which bytes the heap's
// own lists would touch is not modelled, only its instructions are. One host thread, one space in
// use.
#pragma once

#include <media/tape.h>
#include <stele/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stele::workloads {

// Instructions that are no access on the tape.
struct native_costs {
  std::uint32_t per_access = 0;      // of one field
  std::uint32_t per_line = 0;        // of each further 64 bytes of a run of bytes
  std::uint32_t per_allocation = 0;  // of a block, and of freeing it
  std::uint32_t per_operation = 0;
};

class native_space {
 public:
  static constexpr std::size_t first_address =
      4096;  // what lies before is never handed out: 0 is null
  static constexpr std::size_t max_access_bytes = 4096;  // the longest access on the tape

  // Errors: io, when the host has no address space of that size.
  [[nodiscard]] static result<std::unique_ptr<native_space>> make(std::size_t size_bytes,
                                                                  bool whole_values);
  ~native_space();
  native_space(const native_space&) = delete;
  native_space& operator=(const native_space&) = delete;

  // The space that traced_memory is, in this thread, while the scope lasts.
  class scope {
   public:
    explicit scope(native_space& s) : before_(std::exchange(current_, &s)) {}
    ~scope() { current_ = before_; }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    native_space* before_;
  };
  static native_space& current() noexcept { return *current_; }

  std::byte* base() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t used() const noexcept { return top_; }  // no block reaches beyond it
  // Whether values are in memory with all their bytes, or with their first word only.
  bool whole_values() const noexcept { return whole_values_; }

  // Throws failure(errc::full).
  void* allocate(std::size_t size_bytes, std::size_t alignment);
  void deallocate(void* block);
  void fill_zero(void* to, std::size_t size_bytes);

  // From here on accesses are written to the tape as `thread`'s, until stop_recording().
  void start_recording(media::tape_writer& tape, unsigned thread, const native_costs& costs);
  void stop_recording() noexcept { tape_ = nullptr; }
  void spend(std::uint64_t instructions) noexcept { instructions_ += instructions; }
  void write_instructions();  // those spent since the last event

  // Told after the access, and heeded if it is to the space. Inside a turn of the tape while one is
  // recorded.
  void loaded(const void* at, std::size_t size_bytes) {
    accessed(media::tape_op::load, at, size_bytes);
  }
  void stored(const void* at, std::size_t size_bytes) {
    accessed(media::tape_op::store, at, size_bytes);
  }
  void loaded_pointer(const void* at, std::size_t size_bytes);

 private:
  native_space(std::byte* base, std::size_t size, bool whole_values)
      : base_(base), size_(size), whole_values_(whole_values) {}
  using free_list = std::vector<std::uint64_t>;  // addresses

  void accessed(media::tape_op op, const void* at, std::size_t size_bytes) {
    const auto address = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - base_);
    if (tape_ != nullptr && address < size_) write(op, address, size_bytes);
  }
  void write(media::tape_op op, std::uint64_t address, std::size_t size_bytes);
  std::uint64_t take_free(std::uint64_t size_class);
  free_list& free_of(unsigned thread, std::uint64_t size_class) {
    return free_[std::uint64_t{thread} << 48 | size_class];
  }

  static constinit thread_local native_space* current_;

  std::byte* base_;
  std::size_t size_;
  bool whole_values_;
  std::uint64_t top_ = first_address;
  std::unordered_map<std::uint64_t, std::uint64_t> size_class_;  // of the block at an address
  std::unordered_map<std::uint64_t, free_list> free_;
  media::tape_writer* tape_ = nullptr;
  unsigned thread_ = 0, threads_ = 1;
  native_costs costs_;
  std::uint64_t instructions_ = 0;
};

}  // namespace stele::workloads
