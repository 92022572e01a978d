// Reads operations from the tape and lets them take turns.
#include <base/check.h>
#include <sim/feed/write_trace.h>

#include <algorithm>

namespace stele::sim {

using media::tape_op;
using kind = trace_step::kind;

namespace {

constexpr std::uint64_t line_size = media::line_size;
// A memory keeps a time for each line of the logs.
constexpr std::uint64_t max_logs_bytes = std::uint64_t{1} << 30;

media::tape_record record_of(const media::tape_event& e) noexcept {
  return {static_cast<std::uint8_t>(e.op), 0, static_cast<std::uint16_t>(e.thread), e.length,
          e.address};
}

bool share_a_line(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (*x == *y) return true;
    *x < *y ? ++x : ++y;
  }
  return false;
}

}  // namespace

result<std::vector<log_range>> log_ranges_of(const media::tape_header& h) {
  std::vector<log_range> ranges;
  const std::uint64_t slots = h.commit_size / line_size;
  const bool data_in_logs = h.home_offset == h.pool_size;
  if (h.log_size == 0 || data_in_logs) return ranges;
  const std::uint64_t records_at = std::uint64_t{h.commit_offset} + h.commit_size;
  if (h.home_offset > h.pool_size || h.log_offset > h.home_offset ||
      h.home_offset - h.log_offset > max_logs_bytes ||
      (h.log_offset | h.log_size) % line_size != 0 || h.log_size < records_at + slots * line_size)
    return base::fail(errc::corrupt,
                      "the tape's header has home outside the pool, or logs that do not fit in "
                      "front of home, are not of whole lines, have more than a gigabyte, or have "
                      "no room behind their commit lines; record it again");
  const std::uint64_t slot_size =
      slots == 0 ? 0 : (h.log_size - records_at) / slots / line_size * line_size;
  for (std::uint64_t log = h.log_offset; h.home_offset - log >= h.log_size; log += h.log_size) {
    if (slots == 0) ranges.push_back({.records_begin = log, .records_end = log + h.log_size});
    for (std::uint64_t slot = 0; slot < slots; ++slot) {
      const std::uint64_t records = log + records_at + slot * slot_size,
                          commit = log + h.commit_offset + slot * line_size;
      ranges.push_back({records, records + slot_size, commit, commit + line_size});
    }
  }
  return ranges;
}

result<log_ranges> log_classes_of(const media::tape_header& h) {
  const auto logs = log_ranges_of(h);
  if (!logs) return std::unexpected(logs.error());
  return log_ranges::of(*logs);
}

written_lines lines_written_by(const media::tape_event& e) noexcept {
  const bool writes = e.op == tape_op::flush || e.op == tape_op::stream || e.op == tape_op::bulk;
  if (!writes || e.length == 0) return {};
  const std::uint64_t first = e.address / line_size;
  return {first, (e.address + e.length - 1) / line_size - first + 1};
}

result<> write_trace::leave_out_truncations() {
  auto logs = log_classes_of(header());
  if (!logs) return std::unexpected(logs.error());
  logs_without_truncations_ = std::move(*logs);
  return {};
}

result<std::optional<trace_step>> write_trace::next() {
  for (;;) {
    if (auto admitted = admit(); !admitted) return std::unexpected(admitted.error());
    if (active_.empty()) return std::nullopt;
    next_active_ %= active_.size();
    segment& p = active_[next_active_];
    if (p.at == p.steps.size()) {
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(next_active_));
      continue;
    }
    const trace_step s = p.steps[p.at++];
    if (s.what == kind::barrier) ++next_active_;
    return s;
  }
}

result<> write_trace::admit() {
  for (;;) {
    if (!next_segment_ && !ended_) {
      segment p;
      const auto read = read_segment(p);
      if (!read) return std::unexpected(read.error());
      if (*read) next_segment_ = std::move(p);
    }
    if (!next_segment_ || !may_begin(*next_segment_)) return {};
    active_.push_back(std::move(*next_segment_));
    next_segment_.reset();
  }
}

bool write_trace::may_begin(const segment& p) const {
  if (active_.empty()) return true;
  if (!overlap_ || p.outside_operations()) return false;
  return std::ranges::none_of(active_, [&](const segment& a) {
    return a.outside_operations() || a.source == p.source ||
           share_a_line(a.home_lines, p.home_lines);
  });
}

// Returns false at the end of the tape.
result<bool> write_trace::read_segment(segment& p) {
  for (;;) {
    const std::uint64_t number = tape_.tell().event;
    const auto event = tape_.next();
    if (!event) return std::unexpected(event.error());
    ended_ = !*event;
    const result<> sound =
        ended_ ? order_.finish() : order_.see(record_of(**event), (*event)->thread, number);
    if (!sound) return std::unexpected(sound.error());
    if (ended_) return !p.steps.empty();
    if (!append_event(**event, p)) continue;
    std::ranges::sort(p.home_lines);
    return true;
  }
}

bool write_trace::append_event(const media::tape_event& e, segment& p) {
  if (e.op == tape_op::invoked) {
    p.operation = e.address;
    p.steps.insert(p.steps.begin(), {kind::began, 0, 0, e.address, e.address});
    return false;
  }
  if (e.op == tape_op::returned) {
    for (trace_step& s : p.steps) s.source = p.source;
    p.steps.push_back({kind::ended, p.source, 0, e.address, p.operation});
    return true;
  }
  const written_lines lines = lines_written_by(e);
  for (std::uint64_t i = 0; i < lines.count; ++i) write(lines.first + i, e.thread, p);
  const bool orders = e.op == tape_op::fence || e.op == tape_op::bulk;
  return orders && fence(e.thread, p) && p.outside_operations();
}

// As the controller tells them apart: a commit has records before it (controller/barriers.cc).
bool write_trace::is_truncation(std::uint64_t address, segment& p) const {
  const write_origin origin = logs_without_truncations_->classify(address);
  const auto log = std::ranges::find(p.uncommitted, origin.log);
  if (origin.what == write_class::log_record && log == p.uncommitted.end())
    p.uncommitted.push_back(origin.log);
  if (origin.what != write_class::commit_record) return false;
  if (log == p.uncommitted.end()) return true;
  p.uncommitted.erase(log);
  return false;
}

void write_trace::write(std::uint64_t line, unsigned source, segment& p) {
  if (logs_without_truncations_ && is_truncation(line * line_size, p)) return;
  p.source = static_cast<std::uint16_t>(source);
  p.steps.push_back({kind::write, p.source, line * line_size, writes_++, p.operation});
  if (line * line_size >= header().home_offset) p.home_lines.push_back(line);
  if (unfenced_.size() <= source) unfenced_.resize(source + 1);
  unfenced_[source] = true;
}

bool write_trace::fence(unsigned source, segment& p) {
  if (source >= unfenced_.size() || !unfenced_[source]) return false;
  unfenced_[source] = false;
  p.steps.push_back({kind::barrier, static_cast<std::uint16_t>(source), 0, 0, p.operation});
  return true;
}

}  // namespace stele::sim
