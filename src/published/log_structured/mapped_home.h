// Home as the transactions of one log see it in a log-structured pool: each word is where the home
// map says.
//
// A lookup caches the map's nodes, for this log only.
#pragma once

#include <published/log_structured/log_space.h>
#include <tx/home.h>

#include <cstddef>
#include <cstdint>

namespace stele::detail {

class mapped_home final : public home_view {
 public:
  mapped_home(storage::log_space& space, unsigned log)
      : space_(space), log_(log), cache_(space.cache_entries()) {}

  void pin() noexcept override { space_.epochs.pin(log_); }
  void unpin() noexcept override { space_.epochs.unpin(log_); }

  std::uint64_t word(std::uint64_t offset) noexcept override {
    const std::uint64_t home = space_.home_of(offset);
    std::uint64_t value;
    if (!space_.map.cached_word(home, value)) return word_in_log(home);
    ++cached_words;
    return value;
  }
  void copy(std::uint64_t offset, std::byte* to, std::size_t size) noexcept override;

  storage::home_map::cache& cache() noexcept { return cache_; }
  const storage::home_map::cache& cache() const noexcept { return cache_; }
  base::relaxed_counter cached_words;  // loads that the word cache answered

 private:
  // One load in so many adds its word to the word cache: adding costs more than a lookup, and what
  // is loaded often is added soon.
  static constexpr unsigned loads_for_each_added = 8;

  std::uint64_t word_in_log(std::uint64_t home) noexcept {
    const std::uint64_t value = space_.word(space_.map.find(home, cache_).at);
    if (++loads_ % loads_for_each_added == 0 && space_.map.caches_words())
      space_.map.cache_word(home, cache_);
    return value;
  }

  storage::log_space& space_;
  const unsigned log_;
  storage::home_map::cache cache_;
  unsigned loads_ = 0;
};

}  // namespace stele::detail
