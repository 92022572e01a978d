// Submits steps to the memory and counts completions.
#include <sim/feed/write_replay.h>

namespace stele::sim {
namespace {

class replayer final : public event_handler {
 public:
  replayer(event_queue& time, memory& to, persist_observer* watcher, std::size_t most)
      : time_(time), to_(to), watcher_(watcher), steps_(most) {
    for (std::size_t i = most; i > 0; --i) free_.push_back(i - 1);
  }

  bool room() const noexcept { return !free_.empty(); }
  bool idle() const noexcept { return free_.size() == steps_.size(); }
  bool stopped() const noexcept { return sums_.stopped; }
  const replay_result& sums() const noexcept { return sums_; }

  void submit(const trace_step& s) {
    if (watcher_ != nullptr) watcher_->submitted(s);
    if (s.what == trace_step::kind::barrier) ++sums_.barriers, to_.barrier(time_.now(), s.source);
    if (s.what != trace_step::kind::write) return;
    const std::size_t place = free_.back();
    free_.pop_back();
    steps_[place] = s;
    to_.submit(time_.now(), {.address = s.address,
                             .kind = access::write,
                             .source = s.source,
                             .reply_to = this,
                             .token = place});
  }

  void handle(picoseconds now, std::uint64_t place) override {
    ++sums_.writes;
    sums_.finished = now;
    free_.push_back(place);
    if (watcher_ != nullptr && !watcher_->persisted(steps_[place], now)) sums_.stopped = true;
  }

 private:
  event_queue& time_;
  memory& to_;
  persist_observer* watcher_;
  std::vector<trace_step> steps_;  // by token
  std::vector<std::size_t> free_;
  replay_result sums_;
};

}  // namespace

result<replay_result> replay_writes(write_trace& trace, event_queue& time, memory& to,
                                    persist_observer* watcher, std::size_t max_outstanding) {
  replayer p(time, to, watcher, max_outstanding);
  for (bool more = true; (more || !p.idle()) && !p.stopped();) {
    while (more && p.room()) {
      const auto s = trace.next();
      if (!s) return std::unexpected(s.error());
      more = s->has_value();
      if (more) p.submit(**s);
    }
    base::check(!time.empty() || p.idle(), "the memory forgot a write");
    if (!time.empty()) time.step();
  }
  return p.sums();
}

}  // namespace stele::sim
