// The home of a log-structured pool, which is all log: its chunks and map, the block states that
// follow from them, and the view that the transactions of each log have of it. Built by recovery,
// kept by the mechanism.
#pragma once

#include <base/assert.h>
#include <published/log_structured/logged_block_states.h>
#include <published/log_structured/mapped_home.h>
#include <tx/home.h>

#include <deque>

namespace stele::detail {

class engine;

class log_home final : public virtual_home {
 public:
  // `lanes` includes those of cleaners.
  log_home(const storage::pool_file& file, const log_structured_options& options, unsigned lanes);

  mapped_home* of_log(unsigned log) override {
    STELE_ASSERT(log < views_.size());
    return &views_[log];
  }
  storage::block_states& block_states() noexcept override { return states_; }
  [[nodiscard]] result<> verify(bool closed) const override;
  void measure(pool_space& s) const override;

  // Memory and hits of the map and of each log's cache of it.
  void add_to(mechanism_counters& c) const;

  storage::log_space space;

 private:
  std::deque<mapped_home> views_;  // by log
  storage::logged_block_states states_;
};

// The chunks and map of an engine's pool; null: its home is in place. For the laboratory.
storage::log_space* log_space_of(engine& e) noexcept;

}  // namespace stele::detail
