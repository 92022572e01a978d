// The prefetcher of a hardware thread in its second level: which lines to read ahead.
//
// next-line: tagged prefetching. A line that misses, or a prefetched line at its first use, fetches
// the lines behind it (A. J. Smith, "Cache Memories", 1982, section 2.1).
// stride: a table of strides with four states each, and prefetches in the steady one (J.-L. Baer
// and T.-F. Chen, "An Effective On-Chip Preloading Scheme to Reduce Data Access Penalty", 1991,
// section 3). Departures: a tape has no addresses of instructions, so an entry is of a page; it
// counts lines; it sees what misses the first level. Neither leaves the page of 4 KiB that the
// access is in. Which line is fetched, and when, is the hierarchy's (l2_reads.cc).
#pragma once

#include <sim/archive.h>
#include <sim/config.h>

#include <cstdint>
#include <vector>

namespace stele::sim {

class prefetcher {
 public:
  static constexpr std::uint64_t page_lines = 64;

  explicit prefetcher(const prefetch_config& c)
      : by_stride_(c.kind == "stride"),
        degree_(c.degree),
        distance_(c.distance),
        table_(by_stride_ ? c.entries : 0) {}

  // The thread has accessed this line in the second level. fetched: for its request, or for an
  // earlier prefetch of which this is the first use. Calls f(line) for each line to read ahead.
  template <class F>
  void observe(std::uint64_t line, bool fetched, F&& f) {
    if (!by_stride_) {
      if (fetched) ahead(line, 1, f);
      return;
    }
    stream& s = table_[line / page_lines % table_.size()];
    if (s.page != line / page_lines) {
      s = {line / page_lines, line, 0, state::initial};
      return;
    }
    if (s.last == line) return;
    learn(s, static_cast<std::int64_t>(line - s.last));
    s.last = line;
    if (s.is == state::steady) ahead(line, s.stride, f);
  }
  void visit_state(archive& a) { a.fixed(table_); }

 private:
  enum class state : std::uint8_t { initial, transient, steady, no_prediction };
  struct stream {
    std::uint64_t page = ~std::uint64_t{0}, last = 0;
    std::int64_t stride = 0;
    state is = state::initial;
    void visit_state(archive& a) {
      a(page, last, stride);
      a.choice(is, 4);
    }
  };

  // Figure 4 of the publication of 1991.
  static void learn(stream& s, std::int64_t step) noexcept {
    const bool correct = step == s.stride;
    switch (s.is) {
      case state::initial:
        s.is = correct ? state::steady : state::transient;
        break;
      case state::transient:
        s.is = correct ? state::steady : state::no_prediction;
        break;
      case state::steady:
        s.is = correct ? state::steady : state::initial;
        return;  // it keeps the stride: one step may be an exception
      case state::no_prediction:
        s.is = correct ? state::transient : state::no_prediction;
        break;
    }
    s.stride = step;
  }

  template <class F>
  void ahead(std::uint64_t line, std::int64_t stride, F&& f) const {
    for (unsigned n = 0; n < degree_; ++n) {
      const auto next = line + static_cast<std::uint64_t>(stride * (distance_ + n));
      if (next / page_lines != line / page_lines) return;
      f(next);
    }
  }

  bool by_stride_;
  std::int64_t degree_, distance_;
  std::vector<stream> table_;
};

}  // namespace stele::sim
