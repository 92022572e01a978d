// What the explorer has to know of pools of the published mechanisms, beside the content that a
// workload sees.
#pragma once

#include <tx/engine.h>

#include <cstdint>
#include <functional>
#include <span>

namespace stele::explore {

struct published_oracle {
  // A hash of what a home in the log holds, added to `sum`.
  std::uint64_t (*hash_of_home)(detail::engine& e, std::uint64_t sum) = nullptr;
  // Calls each(skipped, restorable) for each covered matrix of a pool with parity blocks.
  // `skipped`: how many of its lines are among `lines` and were not flushed. restorable: the
  // checksums can restore these.
  void (*for_each_skipped)(const storage::pool_file& file, std::span<const std::uint32_t> lines,
                           const std::function<void(unsigned skipped, bool restorable)>& each) =
      nullptr;
};
// Set before main() in programs that have the objects of stele_lab_published; else empty.
published_oracle& oracle_of_published() noexcept;

}  // namespace stele::explore
