// undo: old values go to the log before the first store to home; the truncation of the log commits.
// Page: docs/protocol/undo.md. Execution is write-back, as in the other mechanisms, so home is
// first changed at commit. The commit logs the old values of all ranges as one batch with one
// fence; an in-place undo log pays one fence for each range.
#pragma once

#include <tx/lane_engine.h>

namespace stele::detail {

template <class Media>
class undo final : public torn_bit_engine<Media> {
 public:
  using torn_bit_engine<Media>::torn_bit_engine;

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
    auto word_of = [&, old = this->old_value()](std::uint64_t offset, std::uint64_t value) {
      return planted<Media>(mutant::undo_last_old_line) && offset >= t.lines().back().offset
                 ? value
                 : old(offset, value);
    };
    this->append(l, format::record_kind::undo, txid, t, word_of);  // 1
    if (!planted<Media>(mutant::undo_no_log_fence) && !this->fence_ok(l))
      return false;  // 2: old values are durable before home changes
    l.log.publish();
    t.begin_home_stores();
    if (planted<Media>(mutant::undo_truncate_first)) l.log.write_head(l.log.tail());
    this->store_home_flushed(l, t, mutant::undo_last_home_line);  // 3
    if (!planted<Media>(mutant::undo_no_data_fence) && !this->fence_ok(l))
      return false;                  // 4: home is durable before the log is truncated
    l.log.write_head(l.log.tail());  // 5: committed when this is durable
    if (!planted<Media>(mutant::undo_no_truncate_fence) && !this->fence_ok(l))
      return false;  // 6: the commit is durable before it is acknowledged
    l.log.release_truncated();
    this->release_spills(l, l.log.head());
    return true;
  }

 private:
  bool maintains_block_checksums() const noexcept override { return true; }
};

}  // namespace stele::detail
