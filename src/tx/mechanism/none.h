// none: no persistence at all; the upper bound that the other mechanisms are measured against. A
// commit stores home and orders nothing. After a crash the pool may hold any part of the latest
// commits.
#pragma once

#include <tx/lane_engine.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

template <class Media>
class none final : public lane_engine<Media> {
 public:
  none(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : lane_engine<Media>(state, std::move(shared), log_kind::none) {}

  bool stores_in_place() const noexcept override { return !Media::under_exploration; }

  bool commit(transaction& t, std::uint64_t) override {
    auto& l = this->lanes_[t.log()];
    t.begin_home_stores();
    for (const written_line& line : t.lines()) this->store_home(l.media, this->state_.file, line);
    return true;
  }
};

}  // namespace stele::detail
