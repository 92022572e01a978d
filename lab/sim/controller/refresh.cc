// Refresh: every interval, each rank closes its rows and takes one refresh command, for whose time
// it takes no other.
//
// A refresh that is due goes before requests: the rank's banks are held, closed as soon as the
// rules let them be, and freed by the command. In idle time the same happens without events: it is
// worked out when work comes.
#include <sim/controller/channel.h>

#include <bit>

namespace stele::sim {

std::uint64_t channel::banks_of(unsigned rank) const noexcept {
  const unsigned banks = state_.timing.banks() / state_.timing.ranks();
  return (banks == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << banks) - 1) << rank * banks;
}

void channel::issue_refresh(unsigned rank, picoseconds at) {
  state_.timing.issue_refresh(rank, at);
  report_command(command::refresh, rank * (state_.timing.banks() / state_.timing.ranks()), at);
  state_.blocked_by_refresh &= ~banks_of(rank);
  refresh_due_[rank] += refresh_interval_;
  earliest_due_ = *std::ranges::min_element(refresh_due_);
  ++statistics_.refreshes;
  decision_stale_ = true;
}

// Closes the rank's rows at the first allowed times that are not before `due`, as far as these are
// not after `now`. Returns when the next can be closed; never, when none is left open.
picoseconds channel::close_rank(unsigned rank, picoseconds due, picoseconds now) {
  picoseconds next = never;
  for (std::uint64_t banks = banks_of(rank); banks; banks &= banks - 1) {
    const auto bank = static_cast<unsigned>(std::countr_zero(banks));
    if (state_.open_row[bank] == no_row) continue;
    const picoseconds at = std::max(due, state_.timing.earliest(command::precharge, bank));
    if (at <= now)
      issue_precharge(bank, at);
    else
      next = std::min(next, at);
  }
  return next;
}

// Brings a refresh that is due on as far as it can be now. Returns when it can go on, or the next
// is due.
picoseconds channel::refresh_rank(unsigned rank, picoseconds now) {
  state_.blocked_by_refresh |= banks_of(rank);
  decision_stale_ = true;
  const picoseconds closing = close_rank(rank, now, now);
  if (closing != never) return closing;
  const picoseconds at = state_.timing.earliest_refresh(rank);
  if (at > now) return at;
  issue_refresh(rank, now);
  return std::max(now, refresh_due_[rank]);
}

picoseconds channel::refresh(picoseconds now) {
  picoseconds next = never;
  for (unsigned rank = 0; rank < refresh_due_.size(); ++rank)
    next = std::min(next, refresh_due_[rank] <= now ? refresh_rank(rank, now) : refresh_due_[rank]);
  return next;
}

// A refresh of idle time, if it could have been given by now.
bool channel::refresh_idle(unsigned rank, picoseconds now) {
  if (close_rank(rank, refresh_due_[rank], now) != never) return false;
  const picoseconds at = std::max(refresh_due_[rank], state_.timing.earliest_refresh(rank));
  if (at <= now) issue_refresh(rank, at);
  return at <= now;
}

// Whole intervals in which every rank, its rows closed, was refreshed at its time; all but the
// last.
void channel::skip_idle(picoseconds now) {
  const picoseconds last_due = *std::ranges::max_element(refresh_due_);
  const std::uint64_t skipped = last_due <= now ? (now - last_due) / refresh_interval_ : 0;
  for (picoseconds& due : refresh_due_) due += skipped * refresh_interval_;
  earliest_due_ += skipped * refresh_interval_;
  statistics_.refreshes += skipped * refresh_due_.size();
}

// The refreshes that would have been given by now, in order of time, had the channel been awake.
// Nothing is queued.
void channel::catch_up_refreshes(picoseconds now) {
  for (std::size_t given = 0; earliest_due_ <= now; ++given) {
    if (given == refresh_due_.size()) skip_idle(now);
    const auto first = std::ranges::min_element(refresh_due_) - refresh_due_.begin();
    if (!refresh_idle(static_cast<unsigned>(first), now)) return;
  }
}

const memory_statistics& channel::statistics(picoseconds now) {
  if (state_.queue.empty() && now >= earliest_due_) catch_up_refreshes(now);
  if (outstanding_ != 0) statistics_.busy_ps += now - busy_since_, busy_since_ = now;
  return statistics_;
}

}  // namespace stele::sim
