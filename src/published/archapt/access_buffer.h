// A lock-free buffer of the loads of a thread, the newest ones. archapt estimates from it what the
// cache holds, and needs a sample of the lines only, in one transaction of 16; a run that is
// recorded keeps every load. One thread appends, another drains. Source: Wu, Ren and Li,
// "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019), section IV.
#pragma once

#include <base/assert.h>
#include <tx/observers.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace stele::detail {

class access_buffer final : public load_observer {
 public:
  // Powers of two.
  static constexpr std::uint64_t capacity = 4096, sample_interval = 4;
  static constexpr unsigned transactions_a_sample = 16;
  enum class keeps { a_sample, every_load };
  // Of a buffer that keeps every load: enough for what loads between two drains. Memory that is not
  // used is only reserved.
  static constexpr std::uint64_t capacity_for_every_load = std::uint64_t{1} << 22;

  explicit access_buffer(keeps k = keeps::a_sample)
      : mask_((k == keeps::a_sample ? capacity : capacity_for_every_load) - 1),
        place_(k == keeps::a_sample ? ~std::uint64_t{63} : ~std::uint64_t{0}),
        never_equal_(k == keeps::a_sample ? 0 : size_unit),
        skipped_loads_(k == keeps::a_sample ? sample_interval - 1 : 0),
        skipped_transactions_(k == keeps::a_sample ? transactions_a_sample - 1 : 0),
        entries_(static_cast<std::uint64_t*>(std::calloc(mask_ + 1, sizeof(std::uint64_t)))) {
    if (entries_ == nullptr) throw std::bad_alloc();
    STELE_ASSERT_ALWAYS(std::has_single_bit(mask_ + 1));
  }

  // Called by the thread that loads.
  bool begin_transaction() noexcept override {
    return (++transactions_ & skipped_transactions_) == 0;
  }

  // Called by the thread that loads; size: in bytes, below 64 KiB. Unless every load is kept,
  // consecutive loads of one line count as one.
  void load(std::uint64_t offset, std::size_t size) noexcept override {
    STELE_ASSERT(offset < size_unit && size < std::uint64_t{1} << 16);  // both fit an entry
    const std::uint64_t place = offset & place_;
    if (place == last_) return;
    last_ = place | never_equal_;
    if ((++seen_ & skipped_loads_) != 0) return;
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    entry(tail).store(offset + size * size_unit, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);
  }

  // Calls each(offset, size) for the loads since the last drain, oldest first. One thread at a
  // time. If the loading thread overwrites an entry meanwhile, its newer load is passed instead.
  // Returns how many loads were overwritten before they were drained.
  template <class Each>
  std::uint64_t drain(Each&& each) {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    const std::uint64_t oldest = std::max(head_, tail - std::min(tail, mask_ + 1));
    STELE_ASSERT(head_ <= oldest && tail - oldest <= mask_ + 1);
    const std::uint64_t lost = oldest - head_;
    for (head_ = oldest; head_ != tail; ++head_) {
      const std::uint64_t load = entry(head_).load(std::memory_order_relaxed);
      each(load % size_unit, load / size_unit);
    }
    return lost;
  }

 private:
  // An entry is the offset and the size, in units of 2^48: no pool is that large.
  static constexpr std::uint64_t size_unit = std::uint64_t{1} << 48;
  struct freed {
    void operator()(std::uint64_t* p) const noexcept { std::free(p); }
  };
  std::atomic_ref<std::uint64_t> entry(std::uint64_t number) const noexcept {
    return std::atomic_ref(entries_[number & mask_]);
  }

  const std::uint64_t mask_, place_, never_equal_;
  // Masks: one load, one transaction is kept of these and one more.
  const std::uint64_t skipped_loads_;
  const unsigned skipped_transactions_;
  unsigned transactions_ = 0;
  std::uint64_t last_ = ~std::uint64_t{0}, seen_ = 0;
  std::atomic<std::uint64_t> tail_{0};
  std::unique_ptr<std::uint64_t[], freed> entries_;
  alignas(64) std::uint64_t head_ = 0;
};

}  // namespace stele::detail
