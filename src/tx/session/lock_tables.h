// The line locks of an open pool: the table that it has itself, and the one in use, which other
// processes may share.
//
// use() is called while no transaction runs, under the lock that in_use() is read under.
#pragma once

#include <base/assert.h>
#include <tx/transaction/snapshot.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace stele::detail {

class lock_tables {
 public:
  // `pool_bytes`: of a pool whose policy has locks; 0: it has none.
  lock_tables(std::uint64_t pool_bytes, const std::atomic<std::uint64_t>& clock)
      : own_(own_locks(pool_bytes)),
        own_count_(pool_bytes != 0 ? line_lock_count(pool_bytes) : 0),
        clock_(clock),
        in_use_(own()) {
    // The mask names all of them.
    STELE_ASSERT_ALWAYS(own_count_ == 0 || std::has_single_bit(own_count_));
  }

  // The table of the policy: stm's own, or none.
  lock_table own() const noexcept {
    return {.locks = own_.get(), .mask = own_count_ - (own_count_ != 0), .clock = &clock_};
  }
  const lock_table& in_use() const noexcept { return in_use_; }
  void use(const lock_table& t) noexcept {
    STELE_ASSERT(t.locks == nullptr || (std::has_single_bit(t.mask + 1) && t.clock != nullptr));
    STELE_ASSERT(t.locks != nullptr || !t.shared);
    in_use_ = t;
  }

 private:
  static std::unique_ptr<line_lock[]> own_locks(std::uint64_t pool_bytes) {
    if (pool_bytes == 0) return nullptr;
    return std::make_unique<line_lock[]>(line_lock_count(pool_bytes));
  }

  const std::unique_ptr<line_lock[]> own_;
  const std::uint64_t own_count_;
  const std::atomic<std::uint64_t>& clock_;
  lock_table in_use_;
};

}  // namespace stele::detail
