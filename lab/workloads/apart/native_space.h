// The memory of a native run: an address space, a heap in it, and the tape that records its
// accesses.
//
// Addresses on the tape are offsets in the space, so they do not depend on where the host maps it.
// The host backs a page only after it is touched: an element of which only one word is kept takes
// one page, whatever its size. Blocks are allocated in the order of requests. A thread reuses the
// blocks that it freed, last freed first, as allocators with thread caches do. The accesses of the
// heap's own lists are not modelled, only their instructions. One host thread; one space in use at
// a time.
#pragma once

#include <lab_media/tape.h>
#include <stele/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stele::workloads {

// Instructions that are not accesses on the tape.
struct native_costs {
  std::uint32_t per_access = 0;      // for a field
  std::uint32_t per_line = 0;        // for each further 64 bytes of a byte range
  std::uint32_t per_allocation = 0;  // for a block, and for freeing it
  std::uint32_t per_operation = 0;
};

class native_space {
 public:
  // Lower addresses are never allocated: 0 is null.
  static constexpr std::size_t first_address = 4096;
  static constexpr std::size_t max_access_bytes = 4096;  // the longest access on the tape

  // Errors: io, if the host has no free address range of that size.
  [[nodiscard]] static result<std::unique_ptr<native_space>> make(std::size_t size_bytes,
                                                                  bool whole_values);
  ~native_space();
  native_space(const native_space&) = delete;
  native_space& operator=(const native_space&) = delete;

  // While the scope lasts, traced_memory in this thread is this space.
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
  std::size_t used() const noexcept { return top_; }  // the end of the highest block
  // Whether memory holds all bytes of values, or only their first word.
  bool whole_values() const noexcept { return whole_values_; }

  // Throws failure(errc::full).
  void* allocate(std::size_t size_bytes, std::size_t alignment);
  void deallocate(void* block);
  void fill_zero(void* to, std::size_t size_bytes);

  // Records accesses on the tape as those of `thread`, until stop_recording().
  void start_recording(media::tape_writer& tape, unsigned thread, const native_costs& costs);
  void stop_recording() noexcept { tape_ = nullptr; }
  void spend(std::uint64_t instructions) noexcept { instructions_ += instructions; }
  void write_instructions();  // those since the last event

  // Called after an access; ignored if it is outside the space. While a tape is recorded, the
  // caller holds its lock.
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
