// First come, first served: every command is for the channel's oldest request, read or write.
// Barriers are ignored: requests do not pass each other, so a barrier would only order the time
// from a write's start to its persistence.
#include <sim/controller/schedulers.h>

namespace stele::sim {
namespace {

class first_come final : public scheduler {
 public:
  explicit first_come(const channel_state& channel) : channel_(channel) {}

  decision next(picoseconds now) override {
    const entry_index read = channel_.queue.of(access::read).head,
                      write = channel_.queue.of(access::write).head;
    if (read == no_entry && write == no_entry) return {};
    const bool read_first =
        write == no_entry ||
        (read != no_entry && channel_.queue[read].number < channel_.queue[write].number);
    const entry_index oldest = read_first ? read : write;
    const entry& e = channel_.queue[oldest];
    if (channel_.is_blocked_by_refresh(e.bank)) return {};
    const command what = channel_.next_command(e);
    return {std::max(now, channel_.timing.earliest(what, e.bank)), oldest, what};
  }
  bool enqueued(const entry&) override {  // a new request is the youngest
    return channel_.queue.of(access::read).size + channel_.queue.of(access::write).size == 1;
  }
  void bank_changed(unsigned) override {}
  void order_changed() override {}
  void about_to_issue(const entry&) override {}
  void visit_state(archive&) override {}

 private:
  const channel_state& channel_;
};

}  // namespace

std::unique_ptr<scheduler> make_fcfs(const channel_state& channel, const memory_config&,
                                     const epoch_tracker&) {
  return std::make_unique<first_come>(channel);
}

}  // namespace stele::sim
