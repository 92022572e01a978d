// Collects the quantities of each epoch of a run.
//
// The run asks for the end of the current epoch and closes it between events. Nothing is scheduled,
// so a run with epochs is the run without them. Each is kept, so their number has a limit.
#pragma once

#include <base/check.h>
#include <sim/archive.h>
#include <sim/result.h>

#include <functional>

namespace stele::sim {

class epochs {
 public:
  // `next` returns the quantities from the time of its last call, of restart() or 0, to `until`:
  // always the same ones, in the same order.
  epochs(picoseconds interval, std::function<std::vector<quantity>(picoseconds until)> next)
      : next_(std::move(next)) {
    line_.interval = interval;
  }

  // The end of the current epoch; never, when no epochs are asked for.
  picoseconds end() const noexcept { return line_.interval == 0 ? never : from_ + line_.interval; }

  void close() { close(end()); }

  // Whether there are more epochs until `now` than there may be. Then finish() is an error, and the
  // run may end at once.
  bool exceeded_at(picoseconds now) const noexcept {
    return line_.interval != 0 && line_.samples.size() + (now - from_) / line_.interval > most;
  }

  // Forgets the epochs so far: the first one begins now.
  void restart(picoseconds now) {
    line_.samples.clear();
    begin_ = from_ = now;
  }

  // Ends the run. The last epoch may be shorter than the others. Errors: invalid_argument, when
  // there are more epochs than there may be.
  [[nodiscard]] result<time_series> finish(picoseconds now) {
    if (exceeded_at(now))
      return base::fail(errc::invalid_argument, "the time line has more than " +
                                                    std::to_string(most) +
                                                    " epochs; give longer ones (--timeline-ns)");
    while (end() <= now) close();
    if (line_.interval != 0 && now > from_) close(now);
    return std::move(line_);
  }

  void visit_state(archive& a) {
    a(begin_, from_, line_.names);
    a.list(line_.samples, [&](std::vector<double>& sample) {
      a(sample);
      a.require(sample.size() == line_.names.size(),
                "an epoch has other quantities than the first");
    });
    a.require(begin_ <= from_ && from_ <= latest, "an epoch begins before the first one");
  }

 private:
  static constexpr std::size_t most = 1'000'000;

  void close(picoseconds until) {
    const std::vector<quantity> part = next_(until);
    if (line_.names.empty()) {
      line_.names = {"end_ns"};
      for (const quantity& q : part) line_.names.push_back(q.path);
    }
    std::vector<double>& sample = line_.samples.emplace_back();
    sample.push_back(static_cast<double>(until - begin_) / 1000);
    for (const quantity& q : part) sample.push_back(q.value);
    from_ = until;
  }

  std::function<std::vector<quantity>(picoseconds until)> next_;
  picoseconds begin_ = 0, from_ = 0;  // of the first epoch, of the current one
  time_series line_;
};

}  // namespace stele::sim
