// Tells writes of logs from writes of data by the line's address alone, as a memory controller can
// (no bits on the bus).
//
// A log has its records in one range of addresses and its commit record in another. The commit
// record may be a pointer whose write commits or truncates. A truncation is a write to the commit
// record too; only the writes before it tell the two apart. A log that has its commit records among
// its other records has one range, and none of its writes may pass a barrier: nothing tells which
// of them commits.
#pragma once

#include <base/check.h>
#include <sim/archive.h>
#include <sim/controller/memory.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace stele::sim {

// Addresses from `begin`, excluding `end`, in whole lines. A log without commit records of its own
// has an empty commit range.
struct log_range {
  std::uint64_t records_begin = 0, records_end = 0;
  std::uint64_t commit_begin = 0, commit_end = 0;

  bool has_commits() const noexcept { return commit_begin != commit_end; }
};

// log_line: of a log without commit records of its own. The order is that of data, the retention
// that of logs.
enum class write_class : std::uint8_t { data, log_line, log_record, commit_record };

inline constexpr unsigned no_log = std::numeric_limits<unsigned>::max();

struct write_origin {
  write_class what = write_class::data;
  unsigned log = no_log;
  void visit_state(archive& a) {
    a.choice(what, 4);
    a(log);
  }
};

class log_ranges {
 public:
  [[nodiscard]] static result<log_ranges> of(const std::vector<log_range>& logs) {
    log_ranges r;
    for (unsigned log = 0; log < logs.size(); ++log) {
      const auto records =
          logs[log].has_commits() ? write_class::log_record : write_class::log_line;
      r.add({logs[log].records_begin, logs[log].records_end, {records, log}});
      r.add({logs[log].commit_begin, logs[log].commit_end, {write_class::commit_record, log}});
    }
    r.logs_ = static_cast<unsigned>(logs.size());
    std::sort(r.ranges_.begin(), r.ranges_.end(),
              [](const range& a, const range& b) { return a.begin < b.begin; });
    if (auto sound = r.check(); !sound) return std::unexpected(sound.error());
    return r;
  }

  bool empty() const noexcept { return ranges_.empty(); }
  unsigned logs() const noexcept { return logs_; }

  write_origin classify(std::uint64_t address) const noexcept {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](std::uint64_t a, const range& p) { return a < p.begin; });
    if (after == ranges_.begin() || address >= std::prev(after)->end) return {};
    return std::prev(after)->origin;
  }

 private:
  struct range {
    std::uint64_t begin, end;
    write_origin origin;
  };

  void add(range p) {
    if (p.begin != p.end) ranges_.push_back(p);
  }

  [[nodiscard]] result<void> check() const {
    std::uint64_t before = 0;
    for (const range& p : ranges_) {
      const std::string where =
          "log " + std::to_string(p.origin.log) + ": the range from " + std::to_string(p.begin);
      if (p.begin > p.end)
        return base::fail(errc::invalid_argument,
                          where + " ends before it begins; swap its bounds");
      if ((p.begin | p.end) % line_bytes)
        return base::fail(errc::invalid_argument,
                          where + " is not of whole lines; align its bounds to 64 bytes");
      if (p.begin < before)
        return base::fail(errc::invalid_argument,
                          where + " overlaps another; keep log ranges apart");
      before = p.end;
    }
    return {};
  }

  std::vector<range> ranges_;
  unsigned logs_ = 0;
};

}  // namespace stele::sim
