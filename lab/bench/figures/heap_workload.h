// The workloads of the fragmentation figure: objects whose sizes change between two phases.
//
// These are the workloads of figure 9 of Hu, Ren, Badam, Shu, Moscibroda, "Log-Structured
// Non-Volatile Main Memory" (2017), after Rumble, Kejriwal, Ousterhout, "Log-structured Memory for
// DRAM-based Storage" (2014). Objects of uniformly random sizes are allocated until a phase has
// requested its bytes. A randomly chosen share of them is freed. Then objects of other sizes are
// allocated until the second phase has requested as many bytes. The text does not state the order
// of frees; here it is the order of allocation.
//
// The operations are a function of workload, bytes of a phase and seed. The generator needs no
// memory but its own object, so a process whose memory is measured can use it.
#pragma once

#include <base/rng.h>
#include <stele/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stele::bench {

struct size_range {
  std::uint32_t least, most;  // inclusive
};

struct heap_workload {
  std::string_view name;
  size_range first, second;     // object sizes of a phase, in bytes
  std::uint64_t freed_percent;  // share of the first phase's objects freed before the second
};

inline constexpr std::array<heap_workload, 3> heap_workloads = {
    {{"W1", {100, 150}, {200, 250}, 0},
     {"W2", {100, 150}, {200, 250}, 90},
     {"W3", {1000, 2000}, {1500, 2500}, 90}}};

// Null when the name is unknown.
constexpr const heap_workload* find_heap_workload(std::string_view name) noexcept {
  for (const heap_workload& w : heap_workloads)
    if (w.name == name) return &w;
  return nullptr;
}

struct heap_operation {
  enum class kind : std::uint8_t { allocate, free } what;
  std::uint32_t size_bytes;  // the object's size, also when it is freed
  std::uint64_t object;      // counted from 0 in the order of allocation; below most_objects()
};

class heap_operations {
 public:
  heap_operations(const heap_workload& w, std::uint64_t phase_bytes, std::uint64_t seed) noexcept
      : workload_(w), phase_bytes_(phase_bytes), seed_(base::mix(seed)), choices_(seed_) {}

  // The next operation; empty when the workload is over.
  std::optional<heap_operation> next() noexcept {
    if (phase_ == phase::first) {
      if (requested_bytes_ < phase_bytes_) return allocate();
      phase_ = phase::frees;
      first_objects_ = objects_;
      to_free_ = first_objects_ * workload_.freed_percent / 100;
    }
    if (phase_ == phase::frees) {
      if (to_free_ != 0) return free_one();
      phase_ = phase::second;
      requested_bytes_ = 0;
    }
    if (requested_bytes_ < phase_bytes_) return allocate();
    return std::nullopt;
  }

  // Bytes requested and not freed by the operations drawn so far.
  std::uint64_t live_bytes() const noexcept { return live_bytes_; }
  // An upper bound for the whole workload: so many handles suffice.
  std::uint64_t most_objects() const noexcept {
    return phase_bytes_ / workload_.first.least + phase_bytes_ / workload_.second.least + 2;
  }

 private:
  enum class phase : std::uint8_t { first, frees, second };

  std::uint32_t size_of(std::uint64_t object, const size_range& range) const noexcept {
    const std::uint64_t drawn = base::mix(seed_ + base::mix(object)) >> 32;
    return range.least + static_cast<std::uint32_t>((drawn * (range.most - range.least + 1)) >> 32);
  }
  heap_operation allocate() noexcept {
    const std::uint32_t size =
        size_of(objects_, phase_ == phase::first ? workload_.first : workload_.second);
    requested_bytes_ += size;
    live_bytes_ += size;
    return {heap_operation::kind::allocate, size, objects_++};
  }
  // Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2S): every
  // set of this size is equally likely.
  heap_operation free_one() noexcept {
    while (choices_.below(first_objects_ - candidate_) >= to_free_) ++candidate_;
    --to_free_;
    const std::uint32_t size = size_of(candidate_, workload_.first);
    live_bytes_ -= size;
    return {heap_operation::kind::free, size, candidate_++};
  }

  const heap_workload workload_;
  const std::uint64_t phase_bytes_, seed_;
  base::rng choices_;
  phase phase_ = phase::first;
  std::uint64_t requested_bytes_ = 0, live_bytes_ = 0;  // requested: in this phase
  std::uint64_t objects_ = 0, first_objects_ = 0;       // allocated so far; by the first phase
  std::uint64_t candidate_ = 0, to_free_ = 0;
};

// Applies the whole workload. apply(std::span<const heap_operation>) does its operations in order
// and returns result<>. A span has `Batch` operations, the last one fewer; it may hold an object's
// allocation and its freeing. Returns the bytes live at the end. Errors: the first of apply.
template <std::size_t Batch = 1, class Apply>
[[nodiscard]] result<std::uint64_t> run_heap_workload(heap_operations operations, Apply&& apply) {
  std::array<heap_operation, Batch> batch;
  std::size_t drawn = 0;
  do {
    for (drawn = 0; drawn < Batch; ++drawn) {
      const auto next = operations.next();
      if (!next) break;
      batch[drawn] = *next;
    }
    if (drawn == 0) break;
    if (auto done = apply(std::span<const heap_operation>(batch.data(), drawn)); !done)
      return std::unexpected(std::move(done.error()));
  } while (drawn == Batch);
  return operations.live_bytes();
}

}  // namespace stele::bench
