// What a fence of slower memory costs: the charging rules of publications.
//
//   usual         Without a bandwidth each line pays the latency: Lu, Shu and Sun, "Blurred
//                 Persistence" (2016), section 5.1, "in each memory flush operation". With one, a
//                 fence pays max(latency, bytes / bandwidth): Hu et al., "Log-Structured
//                 Non-Volatile Main Memory" (2017), section 5.1, all its lines being one write.
//   streams_once  The streamed lines of a fence pay one latency together, as one write-combined
//                 write. Each flushed line pays its own.
//   each_run      Each run of adjacent lines of a fence pays max(latency, bytes / bandwidth): the
//                 same section of Hu et al., where a "standalone" write pays the latency and only
//                 sequential writes share one.
//
// Runs are those of the set of lines, in whatever order they were written, so that there are as few
// as can be. A charge is a function of the lines alone. It does not contain the wait for what other
// threads transfer.
#pragma once

#include <media/media.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace stele::media {

enum class charging : std::uint8_t { usual, streams_once, each_run };

struct delay {
  std::uint32_t latency_ns = 0;
  double bytes_per_ns = 0;          // 0: not limited
  double cache_bytes_per_ns = 0;    // 0: the whole cache cannot be persisted at once
  charging rule = charging::usual;  // streams_once only without a bandwidth
};

struct charge {
  std::size_t latencies = 0;
  double own_ns = 0, transfer_ns = 0;  // without other threads; its part of the bandwidth
};

// The lines that one thread has flushed and streamed since its last fence.
class uncharged_lines {
 public:
  explicit uncharged_lines(const delay& cost) noexcept : cost_(cost) {}

  void flush(const void* at, std::size_t size) {
    flushed_ += line_count(at, size);
    add_run(at, size);
  }
  void stream(const void* to, std::size_t size) {
    streamed_ += size / line_size;
    add_run(to, size);
  }
  bool none() const noexcept { return flushed_ + streamed_ == 0; }
  // The charge of a fence now. Nothing is uncharged afterwards.
  charge take() {
    const std::size_t lines = flushed_ + streamed_;
    charge c = cost_.rule == charging::each_run ? charge_of_runs() : charge_of(lines);
    c.transfer_ns = transfer_ns_of(lines);
    flushed_ = streamed_ = 0;
    runs_.clear();
    return c;
  }

 private:
  struct run {
    std::uintptr_t begin, end;  // numbers of lines
  };

  double transfer_ns_of(std::size_t lines) const noexcept {
    if (cost_.bytes_per_ns == 0) return 0;
    return static_cast<double>(lines * line_size) / cost_.bytes_per_ns;
  }
  void add_run(const void* at, std::size_t size) {
    if (cost_.rule != charging::each_run || size == 0) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(at) / line_size;
    const std::uintptr_t end = begin + line_count(at, size);
    if (!runs_.empty() && runs_.back().end == begin)
      runs_.back().end = end;
    else
      runs_.push_back({begin, end});
  }
  charge charge_of(std::size_t lines) const noexcept {
    if (lines == 0) return {};
    if (cost_.bytes_per_ns != 0) return {1, slowest(lines)};
    const std::size_t paying =
        cost_.rule == charging::streams_once ? flushed_ + (streamed_ != 0 ? 1 : 0) : lines;
    return {paying, static_cast<double>(paying) * cost_.latency_ns};
  }
  charge charge_of_runs() {
    charge c;
    std::ranges::sort(runs_, {}, &run::begin);
    for (std::size_t i = 0; i < runs_.size();) {
      std::uintptr_t end = runs_[i].end;
      std::size_t lines = 0;  // one that is written twice is transferred twice, as by other rules
      for (; i < runs_.size() && (lines == 0 || runs_[i].begin <= end); ++i) {
        lines += runs_[i].end - runs_[i].begin;
        end = std::max(end, runs_[i].end);
      }
      ++c.latencies;
      c.own_ns += slowest(lines);
    }
    return c;
  }
  double slowest(std::size_t lines) const noexcept {
    return std::max<double>(cost_.latency_ns, transfer_ns_of(lines));
  }

  delay cost_;
  std::size_t flushed_ = 0, streamed_ = 0;
  std::vector<run> runs_;  // of each_run alone
};

}  // namespace stele::media
