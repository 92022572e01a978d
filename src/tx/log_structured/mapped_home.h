// Home as the transactions of one log see it in a log-structured pool: each word is where the home
// map says.
//
// Between pin() and unpin() no place that a load may read is reused. A lookup caches the map's
// nodes, for this log only.
#pragma once

#include <tx/log_structured/log_space.h>

#include <cstddef>
#include <cstdint>

namespace stele::detail {

class mapped_home {
 public:
  mapped_home(storage::log_space& space, unsigned log)
      : space_(space), log_(log), cache_(space.cache_entries()) {}

  static constexpr bool is_in_place = false;
  void pin() noexcept { space_.epochs.pin(log_); }
  void unpin() noexcept { space_.epochs.unpin(log_); }

  std::uint64_t word(std::uint64_t offset) noexcept {
    return space_.word(space_.map.find(space_.home_of(offset), cache_).at);
  }
  // Bytes of one line.
  void copy(std::uint64_t offset, std::byte* to, std::size_t size) noexcept;

  storage::home_map::cache& cache() noexcept { return cache_; }
  const storage::home_map::cache& cache() const noexcept { return cache_; }

 private:
  storage::log_space& space_;
  const unsigned log_;
  storage::home_map::cache cache_;
};

}  // namespace stele::detail
