// The order in which writes were asked for, cut into epochs by persist barriers, and how much of it is persistent.
//
// There is one stream, of all sources and channels. Barrier schedulers ask it whether a write may start: which epochs are
// wholly persistent, which epochs still lack log records, which logs still have a write to their commit record under way.
// Barriers without a write between them are one barrier.
#pragma once

#include <sim/controller/ranges.h>

#include <deque>

namespace stele::sim {

// A write's place in the stream.
struct stream_place {
  std::uint64_t epoch = 0;
  classified who;
  std::uint64_t commits_before = 0;  // writes to its log's commit record that came before it
  bool after_records = false;        // of a commit record: its log has had a record written since the last such write
};

class write_stream {
 public:
  explicit write_stream(log_ranges ranges = {}) : ranges_(std::move(ranges)), logs_(ranges_.logs()) { epochs_.emplace_back(); }

  const log_ranges& ranges() const noexcept { return ranges_; }

  void barrier() {
    if (epochs_.back().asked) epochs_.emplace_back();
  }

  stream_place enter(std::uint64_t address) {
    stream_place p{first_ + epochs_.size() - 1, ranges_.classify(address)};
    epoch& e = epochs_.back();
    e.asked = true;
    ++e.missing;
    if (p.who.what == write_class::data) return p;
    log& l = logs_[p.who.log];
    p.commits_before = l.first + l.commits.size();
    if (p.who.what == write_class::log_record) {
      ++e.missing_records;
      l.after_records = true;
    } else {
      l.commits.push_back(false);
      p.after_records = std::exchange(l.after_records, false);
    }
    return p;
  }

  // The write is persistent. True: writes that had to wait may now start.
  bool leave(const stream_place& p) {
    epoch& e = epochs_[p.epoch - first_];
    bool news = --e.missing == 0;
    if (p.who.what == write_class::log_record) news |= --e.missing_records == 0;
    if (p.who.what == write_class::commit_record) news |= logs_[p.who.log].commit_persisted(p.commits_before);
    while (epochs_.size() > 1 && epochs_.front().missing == 0) epochs_.pop_front(), ++first_;
    return news;
  }

  // Every write of every epoch before `e` is persistent.
  bool persistent_before(std::uint64_t e) const noexcept { return e <= first_; }
  // Every log record of epoch `e` is persistent.
  bool records_persistent(std::uint64_t e) const noexcept { return e < first_ || epochs_[e - first_].missing_records == 0; }
  // Every write to the log's commit record that came before the write at `p` is persistent.
  bool commits_persistent_before(const stream_place& p) const noexcept { return p.commits_before <= logs_[p.who.log].first; }

 private:
  struct epoch {
    std::uint32_t missing = 0, missing_records = 0;  // asked for and not persistent
    bool asked = false;
  };
  struct log {
    std::deque<bool> commits;  // persistent or not, from the first that is not
    std::uint64_t first = 0;
    bool after_records = false;

    bool commit_persisted(std::uint64_t number) {
      commits[number - first] = true;
      const std::uint64_t before = first;
      while (!commits.empty() && commits.front()) commits.pop_front(), ++first;
      return first != before;
    }
  };

  log_ranges ranges_;
  std::vector<log> logs_;
  std::deque<epoch> epochs_;  // from the first that is not wholly persistent, or the newest
  std::uint64_t first_ = 0;
};

}  // namespace stele::sim
