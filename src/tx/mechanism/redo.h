// redo: new values are streamed to a torn-bit log; home is made durable and the log is truncated
// before the commit returns. Page: docs/protocol/redo.md. Source: Volos, Tack and Swift,
// "Mnemosyne" (2011), sections 4.4 and 5, synchronous truncation.
#pragma once

#include <tx/lane_engine.h>

namespace stele::detail {

template <class Media>
class redo final : public torn_bit_engine<Media> {
 public:
  using torn_bit_engine<Media>::torn_bit_engine;

  // The ring holds one record at a time, so only the record's length matters.
  [[nodiscard]] result<> reserve_log(transaction& t) override {
    auto& l = this->lanes_[t.log()];
    this->release_reserved(l);
    if (this->lines_needed(t, l.log.capacity_lines()) <= l.log.capacity_lines()) return {};
    if (auto reserved = this->reserve_spill(l, t, payload_words(t.lines())); !reserved)
      return reserved;
    return this->invalidate_block_checksums(l.media, l) ? result<>{} : this->check_medium();
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    using base::mutant;
    using base::planted;
    auto& l = this->lanes_[t.log()];
    this->append(l, format::record_kind::redo, txid, t, this->new_value);  // 1
    if (!planted<Media>(mutant::redo_no_log_fence) && !this->fence_ok(l))
      return false;  // 2: the log is durable before home changes
    l.log.publish();
    t.begin_home_stores();
    if (planted<Media>(mutant::redo_truncate_first)) l.log.write_head(l.log.tail());
    this->store_home_flushed(l, t, mutant::redo_last_home_line);  // 3
    if (!planted<Media>(mutant::redo_no_data_fence) && !this->fence_ok(l))
      return false;                  // 4: home is durable before the log is truncated
    l.log.write_head(l.log.tail());  // 5
    if (!planted<Media>(mutant::redo_no_truncate_fence) && !this->fence_ok(l))
      return false;  // 6: the truncation is durable before locks are released
    l.log.release_truncated();
    this->release_spills(l, l.log.head());
    return true;
  }

 private:
  bool maintains_block_checksums() const noexcept override { return true; }
};

}  // namespace stele::detail
