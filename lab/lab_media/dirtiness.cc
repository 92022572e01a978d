// Masks of dirty bytes, from stores to write-backs.
#include <lab_media/dirtiness.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace stele::media {

namespace {

static_assert(line_size == 64, "a line's bytes are the bits of a word");

// Calls part(line, mask of its bytes) for each line of a range.
template <class Part>
void for_each_line(std::uint64_t address, std::uint64_t length, Part&& part) {
  for (std::uint64_t at = address; at < address + length;) {
    const std::uint64_t first = at % line_size,
                        count = std::min<std::uint64_t>(line_size - first, address + length - at);
    part(at / line_size, (count == line_size ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1)
                             << first);
    at += count;
  }
}

}  // namespace

std::uint64_t dirtiness::total() const noexcept {
  return std::accumulate(lines.begin(), lines.end(), std::uint64_t{0});
}

double dirtiness::mean() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t n = 0; n < lines.size(); ++n) bytes += n * lines[n];
  const std::uint64_t all = total();
  return all == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(all * line_size);
}

std::array<std::uint64_t, 9> dirtiness::eighths() const noexcept {
  std::array<std::uint64_t, 9> sums{};
  for (std::size_t n = 0; n < lines.size(); ++n) sums[(n + 7) / 8] += lines[n];
  return sums;
}

dirtiness& dirtiness::operator+=(const dirtiness& other) noexcept {
  for (std::size_t n = 0; n < lines.size(); ++n) lines[n] += other.lines[n];
  return *this;
}

dirtiness dirtiness_by_part::all() const noexcept {
  dirtiness sum = home;
  sum += log;
  sum += control;
  return sum;
}

dirtiness& dirtiness_meter::sum_of(tape_tag tag) noexcept {
  if (tag == tape_tag::data) return sums_.home;
  return tag == tape_tag::log_record || tag == tape_tag::commit_record ? sums_.log : sums_.control;
}

// For a range with more lines than have dirty bytes: walks the dirty lines instead.
void dirtiness_meter::write_back_long(const tape_event& e, std::uint64_t lines, bool clean_too) {
  const std::uint64_t first = e.address / line_size;
  const std::size_t before = stored_.size();
  std::erase_if(stored_, [&](const auto& s) {
    if (s.first - first >= lines) return false;
    ++sum_of(e.tag).lines[static_cast<std::size_t>(std::popcount(s.second))];
    return true;
  });
  if (clean_too) sum_of(e.tag).lines[0] += lines - (before - stored_.size());
}

void dirtiness_meter::write_back(const tape_event& e, bool clean_too) {
  if (e.length == 0) return;
  const std::uint64_t lines = (e.address + e.length - 1) / line_size - e.address / line_size + 1;
  if (lines > stored_.size()) return write_back_long(e, lines, clean_too);
  for_each_line(e.address, e.length, [&](std::uint64_t line, std::uint64_t) {
    const auto found = stored_.find(line);
    if (found == stored_.end()) {
      sum_of(e.tag).lines[0] += clean_too;
      return;
    }
    ++sum_of(e.tag).lines[static_cast<std::size_t>(std::popcount(found->second))];
    stored_.erase(found);
  });
}

// Of the bytes in the mask, those that the store gives another value.
std::uint64_t dirtiness_meter::changed_bytes(const tape_event& e, std::uint64_t line,
                                             std::uint64_t mask) const {
  if (content_.empty()) return mask;
  std::uint64_t changed = 0;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t at = line * line_size + static_cast<unsigned>(std::countr_zero(rest));
    if (content_[at] != e.bytes[at - e.address]) changed |= rest & -rest;
  }
  return changed;
}

void dirtiness_meter::store(const tape_event& e) {
  for_each_line(e.address, e.length, [&](std::uint64_t line, std::uint64_t mask) {
    stored_[line] |= changed_bytes(e, line, mask);
  });
}

void dirtiness_meter::take(const tape_event& e) {
  if (e.thread >= streamed_.size()) streamed_.resize(e.thread + 1);
  auto& streamed = streamed_[e.thread];
  if (e.op == tape_op::store) {
    store(e);
  } else if (e.op == tape_op::stream) {
    for_each_line(e.address, e.length, [&](std::uint64_t line, std::uint64_t mask) {
      auto& s = streamed[line];
      s.mask |= mask;
      s.tag = e.tag;
    });
  } else if (e.op == tape_op::flush) {
    write_back(e, true);
  } else if (e.op == tape_op::bulk) {
    write_back(e, false);
  } else if (e.op == tape_op::fence) {
    for (const auto& [line, s] : streamed)
      ++sum_of(s.tag).lines[static_cast<std::size_t>(std::popcount(s.mask))];
    streamed.clear();
  }
  if (!content_.empty() && !e.bytes.empty())
    std::ranges::copy(e.bytes, content_.begin() + static_cast<std::ptrdiff_t>(e.address));
}

result<dirtiness_by_part> dirtiness_of(tape_reader& tape, const std::function<bool()>& cancelled,
                                       dirty_bytes what) {
  dirtiness_meter meter(what, tape.header().pool_size);
  while (!cancelled()) {
    const auto event = tape.next();
    if (!event) return std::unexpected(event.error());
    if (!*event) break;
    meter.take(**event);
  }
  return meter.totals();
}

}  // namespace stele::media
