// A log for each thread: a commit streams its record to its own ring and fences.
//
// The same calls as log/shared_log.h, between which `default` chooses by the medium.
#pragma once

#include <base/assert.h>
#include <tx/home_writer.h>
#include <tx/log/deferred_batch.h>
#include <tx/log/truncation.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace stele::detail {

// queues_lines: truncation takes dirty lines from a queue beside the log.
template <class Media, bool queues_lines>
class private_log {
 public:
  using lane = typename log_lanes<Media>::lane;
  using new_word = typename home_writer<Media>::new_word;
  static constexpr bool has_one_writer = true;  // of each log

  private_log(pool_medium<Media>& medium, log_lanes<Media>& lanes,
              log_truncation<Media>& truncation)
      : medium_(medium), lanes_(lanes), truncation_(truncation) {}
  void attached() noexcept {}

  // Errors: full, poisoned, io.
  [[nodiscard]] result<> reserve(transaction& t) { return truncation_.reserve(lanes_.of(t), t); }
  template <class PredecessorOf>
  bool assign_txid(transaction& t, std::uint64_t& txid, PredecessorOf&&) {
    return t.assign_txid(txid);
  }
  // Streams the record; durable after harden(). Queues its dirty lines before the fence: stores
  // after it would wait for it. No truncation takes the entry while the TxID is announced.
  void append(transaction& t, format::record_kind of_kind, std::uint64_t txid,
              std::uint64_t predecessor = 0) {
    // default.md, the chain: a record in order names an older commit
    STELE_ASSERT(t.in_order() == (of_kind == format::record_kind::redo_dependent));
    STELE_ASSERT(predecessor < txid);
    lane& l = lanes_.of(t);
    lanes_.append(l, of_kind, txid, t, new_word{}, predecessor);
    if (queues_lines) lanes_.queue_dirty_lines(l, t, txid);
  }
  // Stores the record, so that any thread can flush it.
  void append_deferred(transaction& t, std::uint64_t txid, std::uint64_t predecessor,
                       deferred_batch& batch) {
    STELE_ASSERT(t.ordered() && t.in_order() && predecessor < txid);
    STELE_ASSERT(batch.owner == &t && batch.newest < txid);
    lane& l = lanes_.of(t);
    lanes_.template append<store_mode::cached>(l, l, format::record_kind::redo_dependent, txid, t,
                                               new_word{}, predecessor);
    if (batch.commits == 0) batch.from = l.log.tail();
    l.log.publish();
    if (queues_lines) lanes_.queue_dirty_lines(l, t, txid);
    batch.to = l.log.tail();
    STELE_ASSERT(batch.from < batch.to && batch.to - batch.from <= lanes_.capacity());
  }
  // Whether t's record is longer than the ring.
  bool is_spilled(const transaction& t) const noexcept { return lanes_.of(t).reserved_bytes != 0; }

  // Makes t's record durable. False: a write failed.
  bool harden(transaction& t) { return medium_.fence_ok(medium_of(t)); }
  // Other threads may read the record.
  void publish(transaction& t) noexcept { lanes_.of(t).log.publish(); }
  // With which t's owner fences and stores home.
  Media& medium_of(const transaction& t) noexcept { return lanes_.of(t).media; }

  // A flush of the deferred batches: their records as they are at begin_flush(), but those that an
  // earlier one has made durable. Durable with the medium's next fence, and then hardened() is
  // called. Only begin_flush() needs the batches locked.
  void begin_flush(unsigned log, const deferred_batch& b) {
    STELE_ASSERT(log < flushed_.size());
    lines& r = flushed_[log];
    STELE_ASSERT(b.owner == nullptr || (b.from < b.to && r.to <= b.to));  // default.md G1
    r = b.owner != nullptr ? lines{std::max(b.from, r.to), b.to} : lines{r.to, r.to};
  }
  void flush(Media& medium) {
    for (std::size_t i = 0; i < flushed_.size(); ++i)
      if (const lines r = flushed_[i]; r.from < r.to)
        lanes_.flush_lines(medium, lanes_[i], r.from, r.to);
  }
  void hardened() noexcept {}

  // Whether a ring is half full.
  bool is_low() const noexcept { return lanes_.any_half_full(); }
  void add_totals(engine_totals&) const noexcept {}

 private:
  struct lines {
    std::uint64_t from = 0, to = 0;
  };

  pool_medium<Media>& medium_;
  log_lanes<Media>& lanes_;
  log_truncation<Media>& truncation_;
  // One for each ring; under the lock of a flush of the deferred batches.
  std::vector<lines> flushed_ = std::vector<lines>(lanes_.size());
};

}  // namespace stele::detail
