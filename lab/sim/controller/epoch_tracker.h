// The order in which writes were submitted, divided into epochs by persist barriers, and how much
// of it is persistent.
//
// There is one stream for all sources and channels. Barrier schedulers ask it whether a write may
// start: which epochs are wholly persistent, which epochs still lack log records, and which logs
// have a write to their commit record in progress. Barriers without a write between them count as
// one barrier.
#pragma once

#include <sim/archive.h>
#include <sim/controller/log_ranges.h>

#include <deque>

namespace stele::sim {

// The position of a write in the stream.
struct epoch_position {
  std::uint64_t epoch = 0;
  write_origin origin;
  std::uint64_t commits_before = 0;  // earlier writes to its log's commit record
  bool after_records =
      false;  // for a commit record: its log had a record since the last such write

  // Such a write commits nothing, so it gives up records.
  bool is_truncation() const noexcept {
    return origin.what == write_class::commit_record && !after_records;
  }
  void visit_state(archive& a) { a(epoch, origin, commits_before, after_records); }
};

class epoch_tracker {
 public:
  explicit epoch_tracker(log_ranges ranges = {})
      : ranges_(std::move(ranges)), logs_(ranges_.logs()) {
    epochs_.emplace_back();
  }

  const log_ranges& ranges() const noexcept { return ranges_; }

  void barrier() {
    if (!epochs_.back().has_writes) return;
    epochs_.emplace_back();
    drop_persistent();  // all writes before the barrier may be persistent already
  }

  // What the write is, for a controller that keeps no order between writes.
  epoch_position unordered(std::uint64_t address) {
    epoch_position p{0, ranges_.classify(address)};
    if (p.origin.what == write_class::log_record) logs_[p.origin.log].after_records = true;
    if (p.origin.what == write_class::commit_record)
      p.after_records = std::exchange(logs_[p.origin.log].after_records, false);
    return p;
  }

  epoch_position submitted(std::uint64_t address) {
    epoch_position p = unordered(address);
    p.epoch = first_ + epochs_.size() - 1;
    epoch& e = epochs_.back();
    e.has_writes = true;
    ++e.pending;
    if (p.origin.what == write_class::data || p.origin.what == write_class::log_line) return p;
    log& l = logs_[p.origin.log];
    p.commits_before = l.first + l.commits.size();
    if (p.origin.what == write_class::log_record)
      ++e.pending_records;
    else
      l.commits.push_back(false);
    return p;
  }

  // The write is persistent. Returns true when writes that had to wait may now start.
  bool persisted(const epoch_position& p) {
    epoch& e = epochs_[p.epoch - first_];
    bool unblocked = --e.pending == 0;
    if (p.origin.what == write_class::log_record) unblocked |= --e.pending_records == 0;
    if (p.origin.what == write_class::commit_record)
      unblocked |= logs_[p.origin.log].commit_persisted(p.commits_before);
    drop_persistent();
    return unblocked;
  }

  // Every write of every epoch before `e` is persistent.
  bool persistent_before(std::uint64_t e) const noexcept { return e <= first_; }
  // Every log record of epoch `e` is persistent.
  bool records_persistent(std::uint64_t e) const noexcept {
    return e < first_ || epochs_[e - first_].pending_records == 0;
  }
  // Every write to the log's commit record that came before the write at `p` is persistent.
  bool commits_persistent_before(const epoch_position& p) const noexcept {
    return p.commits_before <= logs_[p.origin.log].first;
  }

  void visit_state(archive& a) {
    a.fixed(logs_);
    a(first_);
    a.list(epochs_, [&](epoch& e) { a(e.pending, e.pending_records, e.has_writes); });
    a.require(!epochs_.empty(), "the stream of writes has no epoch");
  }
  // Reading: `unfinished` are the positions of all writes that are submitted and not persistent.
  void check_restored(archive& a, const std::vector<epoch_position>& unfinished) const {
    std::vector<epoch> left(epochs_.size());
    for (const epoch_position& p : unfinished) {
      const bool commit = p.origin.what == write_class::commit_record;
      const auto* const l = p.origin.log < logs_.size() ? &logs_[p.origin.log] : nullptr;
      if (p.epoch - first_ >= left.size() ||
          (commit && (l == nullptr || p.commits_before - l->first >= l->commits.size() ||
                      l->commits[p.commits_before - l->first])))
        return a.fail("a write is in no epoch of its stream");
      ++left[p.epoch - first_].pending;
      left[p.epoch - first_].pending_records += p.origin.what == write_class::log_record;
    }
    for (std::size_t i = 0; i < left.size(); ++i)
      a.require(left[i].pending == epochs_[i].pending &&
                    left[i].pending_records == epochs_[i].pending_records,
                "an epoch waits for other writes than there are");
  }

 private:
  struct epoch {
    std::uint32_t pending = 0, pending_records = 0;  // submitted and not yet persistent
    bool has_writes = false;
  };
  struct log {
    std::deque<bool> commits;  // whether persistent, from the first that is not
    std::uint64_t first = 0;
    bool after_records = false;

    void visit_state(archive& a) { a(commits, first, after_records); }
    bool commit_persisted(std::uint64_t number) {
      commits[number - first] = true;
      const std::uint64_t before = first;
      while (!commits.empty() && commits.front()) commits.pop_front(), ++first;
      return first != before;
    }
  };

  void drop_persistent() {
    while (epochs_.size() > 1 && epochs_.front().pending == 0) epochs_.pop_front(), ++first_;
  }

  log_ranges ranges_;
  std::vector<log> logs_;
  std::deque<epoch> epochs_;  // from the first that is not wholly persistent, or only the newest
  std::uint64_t first_ = 0;
};

}  // namespace stele::sim
