// Counts of values by size class, for latencies. Recording costs a few instructions; a percentile
// is exact to within 1/32 of its value (log-linear buckets as in HdrHistogram, 32 to an octave).
//
// Values below 32 have a class each. Each thread records into its own histogram, and merge() adds
// the counts. Not thread-safe.
#pragma once

#include <base/assert.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stele::base {

class histogram {
 public:
  void record(std::uint64_t value) noexcept { record(value, 1); }
  void record(std::uint64_t value, std::uint64_t times) noexcept {
    STELE_ASSERT(value <= bucket_max(bucket_of(value)) &&
                 (bucket_of(value) == 0 || value > bucket_max(bucket_of(value) - 1)));
    counts_[bucket_of(value)] += times;
  }

  // Calls visit(value, times) for each size class that has values; `value` is its largest.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < bucket_count; ++i)
      if (counts_[i] != 0) {
        STELE_ASSERT(bucket_of(bucket_max(i)) == i);
        visit(bucket_max(i), counts_[i]);
      }
  }

  void merge(const histogram& other) noexcept {
    for (std::size_t i = 0; i < bucket_count; ++i) counts_[i] += other.counts_[i];
  }

  std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : counts_) sum += n;
    return sum;
  }

  // The largest value of the size class that contains this percentile of the recorded values; 0 if
  // no value was recorded.
  std::uint64_t percentile(double percent) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(
        std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count()) + 0.5);
    std::uint64_t seen = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < bucket_count; ++i) {
      if (counts_[i] == 0) continue;
      last = i;
      seen += counts_[i];
      if (seen >= wanted) break;
    }
    STELE_ASSERT(seen == 0 || counts_[last] != 0);
    return seen == 0 ? 0 : bucket_max(last);
  }

 private:
  static constexpr unsigned precision_bits = 5;
  static constexpr std::size_t buckets_per_octave = std::size_t{1} << precision_bits;
  static constexpr std::size_t bucket_count = (64 - precision_bits + 1) * buckets_per_octave;

  static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < buckets_per_octave) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - precision_bits - 1;
    STELE_ASSERT(value >> shift >= buckets_per_octave && value >> shift < 2 * buckets_per_octave);
    return shift * buckets_per_octave + (value >> shift);
  }
  static constexpr std::uint64_t bucket_max(std::size_t index) noexcept {
    STELE_ASSERT(index < bucket_count);
    if (index < buckets_per_octave) return index;
    const std::size_t shift = index / buckets_per_octave - 1;
    return ((index - shift * buckets_per_octave + 1) << shift) - 1;
  }

  std::array<std::uint64_t, bucket_count> counts_{};
};

}  // namespace stele::base
