// The state of each thread, and the sentences.
#include <base/check.h>
#include <fmt/format.h>
#include <sim/feed/tape_order.h>

namespace stele::sim {
namespace {

using media::tape_op;

std::unexpected<error> wrong(std::uint64_t event, unsigned thread, const std::string& why) {
  return base::fail(errc::corrupt,
                    fmt::format("event {} of the tape, of thread {}, {}", event, thread, why));
}

}  // namespace

result<> tape_order::see_mark(const media::tape_record& r, unsigned thread, std::uint64_t event) {
  const auto op = static_cast<tape_op>(r.op);
  if (op == tape_op::tx_abort)
    return wrong(
        event, r.thread,
        "aborts a transaction, and a machine decides by itself which attempts abort; record "
        "the tape with the transactions that commit alone");
  if (begun_.size() <= thread) begun_.resize(thread + 1);
  std::uint64_t& begun = begun_[thread];
  if (op == tape_op::tx_begin && begun != 0)
    return wrong(event, r.thread,
                 fmt::format("begins a transaction within the one that event {} began; record the "
                             "outer one alone",
                             begun - 1));
  if (op == tape_op::tx_commit && begun == 0)
    return wrong(event, r.thread, "commits a transaction that has not begun; record its begin too");
  begun = op == tape_op::tx_begin ? event + 1 : 0;
  return {};
}

result<> tape_order::finish() const {
  for (unsigned thread = 0; thread < begun_.size(); ++thread)
    if (begun_[thread] != 0)
      return wrong(begun_[thread] - 1, thread,
                   "begins a transaction that does not commit before the tape ends; record its "
                   "commit too");
  return {};
}

}  // namespace stele::sim
