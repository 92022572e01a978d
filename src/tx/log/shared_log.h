// One log for all threads: docs/protocol/default.md, steps L0 to L4. For a medium where the cost of
// a write depends on the number of places, not of bytes (a file): all threads append to one ring
// after the other, and one thread makes everything in the ring durable for the others (group
// commit).
//
// The same calls as log/private_log.h.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/log/deferred_batch.h>
#include <tx/log/group_commit.h>
#include <tx/log/log_reservations.h>
#include <tx/log/truncation.h>

#include <deque>
#include <mutex>
#include <vector>

namespace stele::detail {

template <class Media>
class shared_log {
 public:
  using mutant = base::mutant;
  using lane = typename log_lanes<Media>::lane;
  static constexpr bool has_one_writer = false;  // of each log

  shared_log(pool_medium<Media>& medium, log_lanes<Media>& lanes, log_truncation<Media>& truncation)
      : medium_(medium), lanes_(lanes), truncation_(truncation) {
    for (unsigned i = 0; i < lanes.size(); ++i)
      media_.emplace_back(*medium.shared, medium.state.file.header().log_count + 2 + i);
  }
  void attached() {
    STELE_ASSERT_ALWAYS(groups_.size() == lanes_.size() && media_.size() == lanes_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].reset(lanes_[i].log.tail());
  }

  // L0: lines for the record in the ring in use, or in the next one that has room. Errors: full,
  // poisoned, io.
  [[nodiscard]] result<> reserve(transaction& t) {
    lane& own = lanes_.of(t);
    lanes_.release_reserved(own);
    std::uint64_t lines = lanes_.lines_needed(t, lanes_.capacity() / 2);
    if (lines > lanes_.capacity()) {
      if (auto made = truncation_.reserve_spill(own, t, medium_of(t)); !made) return made;
      lines = lines_for_words(5);  // TxID, predecessor; offset, length and checksum of the payload
    }
    STELE_ASSERT(lines != 0 && lines <= lanes_.capacity());  // default.md L0
    while (!try_reserve(t.log(), lines)) {
      truncation_.truncate();
      if (medium_.state.poisoned.load()) return medium_.check();
      if (try_reserve(t.log(), lines)) break;
      medium_.state.await_announced(t.log());
    }
    return {};
  }

  // L1: TxIDs grow within a ring, because each is drawn where its place in the ring is taken. A
  // truncation through H therefore finds all records up to H before all others.
  template <class PredecessorOf>
  bool assign_txid(transaction& t, std::uint64_t& txid, PredecessorOf&& predecessor_of) {
    const bool txid_first = planted<Media>(mutant::default_txid_before_place);
    std::unique_lock one(mutex_, std::defer_lock);
    if (!txid_first) one.lock();
    if (!t.assign_txid(txid)) return false;
    if (txid_first) one.lock();
    store_record(t, t.in_order() ? format::record_kind::redo_dependent : format::record_kind::redo,
                 txid, predecessor_of(t));
    return true;
  }
  // The record is in the ring since its TxID was drawn.
  void append(transaction&, format::record_kind, std::uint64_t, std::uint64_t = 0) noexcept {}
  void append_deferred(transaction&, std::uint64_t, std::uint64_t, deferred_batch&) noexcept {}
  bool is_spilled(const transaction& t) const noexcept { return appended_[t.log()].spilled; }

  // L2, L3: the record, and those before it in the ring, are durable. False: a write failed.
  bool harden(transaction& t) {
    const appended_record& at = appended_[t.log()];
    STELE_ASSERT(at.end != 0 && at.lane < lanes_.size());
    const bool durable = groups_[at.lane].make_durable(at.end, [&](group_commit::range r) {
      if (planted<Media>(mutant::default_shared_alone)) r.from = std::max(r.from, at.end - 1);
      lanes_.flush_lines(medium_of(t), lanes_[at.lane], r.from, r.to);
      return medium_.fence_ok(medium_of(t));
    });
    return durable && !medium_.state.poisoned.load(std::memory_order_relaxed);
  }
  void publish(transaction&) noexcept {}
  // With which t's owner fences and stores home.
  Media& medium_of(const transaction& t) noexcept { return media_[t.log()]; }

  // A flush of the deferred batches: each ring from its last durable line to its end at
  // begin_flush(). Durable with the medium's next fence, and then hardened() is called. Only
  // begin_flush() needs the batches locked.
  void begin_flush(unsigned log, const deferred_batch&) {
    flushed_[log] = groups_[log].pending_range();
    STELE_ASSERT(flushed_[log].to - flushed_[log].from <= lanes_.capacity());
  }
  void flush(Media& medium) {
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (const group_commit::range r = flushed_[i]; r.from < r.to)
        lanes_.flush_lines(medium, lanes_[i], r.from, r.to);
  }
  void hardened() {
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].set_durable(flushed_[i].to);
  }

  // Whether about half of the log is in use.
  bool is_low() const {
    std::uint64_t room = 0;
    for (lane& l : lanes_) room += l.log.free_lines_seen();
    return room < lanes_.size() * lanes_.capacity() / 2;
  }
  void add_totals(engine_totals& t) const noexcept {
    for (const Media& m : media_) t.media += m.count;
  }

 private:
  struct appended_record {
    unsigned lane = 0;
    std::uint64_t end = 0;
    bool spilled = false;
  };

  bool try_reserve(unsigned log, std::uint64_t lines) {
    const std::lock_guard one(mutex_);
    (void)reservations_.release(log);
    lane* const l = lane_with_room(lines);
    if (l != nullptr) reservations_.reserve(log, l->number, lines);
    STELE_ASSERT(l == nullptr || l->log.free_lines() >= reservations_.lines_in(l->number));
    return l != nullptr;
  }
  // The ring in use, or the next ring with room; null if none has room. Under mutex_.
  lane* lane_with_room(std::uint64_t lines) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const std::size_t n = (current_ + i) % lanes_.size();
      if (lanes_[n].log.free_lines() < reservations_.lines_in(n) + lines) continue;
      if (i != 0 && is_low()) truncation_.wake();
      return &lanes_[current_ = n];
    }
    return nullptr;
  }
  // Stored, not streamed: the thread that writes the ring makes the record durable. Under mutex_.
  void store_record(transaction& t, format::record_kind of_kind, std::uint64_t txid,
                    std::uint64_t predecessor) {
    lane& own = lanes_.of(t);
    lane& l = lanes_[reservations_.release(t.log())];
    const bool spilled = own.reserved_bytes != 0;
    STELE_ASSERT(predecessor < txid && t.in_order() == format::has_prefix_word(of_kind));
    lanes_.template append<store_mode::cached>(
        own, l, of_kind, txid, t, typename home_writer<Media>::new_word{}, predecessor);
    lanes_.queue_dirty_lines(l, t, txid);
    l.log.publish();
    // default.md L0: what the other threads have reserved is still free
    STELE_ASSERT(l.log.free_lines() >= reservations_.lines_in(l.number));
    groups_[l.number].set_appended(l.log.tail());
    appended_[t.log()] = {l.number, l.log.tail(), spilled};
  }

  pool_medium<Media>& medium_;
  log_lanes<Media>& lanes_;
  log_truncation<Media>& truncation_;
  std::mutex mutex_;  // guards rings, lanes' media, members down to current_
  log_reservations reservations_{lanes_.size()};
  // For each log, the record of its running commit. Only the log's owner uses its entry.
  std::vector<appended_record> appended_ = std::vector<appended_record>(lanes_.size());
  std::size_t current_ = 0;
  std::deque<group_commit> groups_{lanes_.size()};  // one for each ring
  std::deque<Media> media_;                         // one for each log's owner
  // One for each ring; under the lock of a flush of the deferred batches.
  std::vector<group_commit::range> flushed_ = std::vector<group_commit::range>(lanes_.size());
};

}  // namespace stele::detail
