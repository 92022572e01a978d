// Refresh: in each interval, each rank takes one refresh command, of all its banks or of the banks
// of one number in all its bank groups (same-bank refresh, JESD79-5, section 4.13), number after
// number. These banks are closed before it and take no other command during it.
//
// A refresh that is due goes before requests: its banks are blocked, closed as soon as the rules
// allow it, and unblocked by the command. In idle time the same happens without events: it is
// computed when a request arrives.
#include <sim/controller/channel.h>

namespace stele::sim {

// The banks of the rank's next refresh. In the mutant `without_last`, the last one is left out.
bank_set channel::refreshed_next(unsigned rank, controller_mutant without_last) const noexcept {
  // The n-th is due in the n-th interval or, not staggered, at its end.
  auto number =
      static_cast<unsigned>((refresh_due_[rank] - 1) / refresh_interval_ % refreshes_of_round_);
  if (mutant_ == controller_mutant::same_banks_again) number -= number % 2;
  bank_set banks = refreshes_of_round_ == 1 ? state_.timing.banks_of(rank)
                                            : state_.timing.same_banks_of(rank, number);
  if (mutant_ != controller_mutant::none && mutant_ == without_last) banks.erase(banks.last());
  return banks;
}

void channel::issue_refresh(unsigned rank, picoseconds at) {
  const bank_set banks = refreshed_next(rank);
  state_.timing.issue_refresh(banks, at);
  report(command::refresh, banks.first(), at);
  state_.blocked_by_refresh &= ~banks;
  banks.for_each([&](unsigned bank) { scheduler_->bank_changed(bank); });
  if (mutant_ == controller_mutant::refresh_drifts) refresh_due_[rank] = at;
  refresh_due_[rank] += refresh_interval_;
  earliest_due_ = *std::ranges::min_element(refresh_due_);
  ++statistics_.refreshes;
  decision_stale_ = true;
}

// Closes the rows of the rank's next refresh at the earliest allowed times from `due` on, if these
// are not after `now`. Returns the time at which the next row can be closed; never, when no row is
// left open.
picoseconds channel::close_rank(unsigned rank, picoseconds due, picoseconds now) {
  picoseconds next = never;
  refreshed_next(rank, controller_mutant::last_bank_left_open).for_each([&](unsigned bank) {
    if (state_.open_row[bank] == no_row) return;
    const picoseconds at = std::max(due, state_.timing.earliest(command::precharge, bank));
    if (at <= now)
      issue_precharge(bank, at);
    else
      next = std::min(next, at);
  });
  return next;
}

// Advances a due refresh as far as possible now. Returns the time at which it can continue, or at
// which the next one is due.
picoseconds channel::refresh_rank(unsigned rank, picoseconds now) {
  state_.blocked_by_refresh |= refreshed_next(rank, controller_mutant::last_bank_served);
  decision_stale_ = true;
  const picoseconds closing = close_rank(rank, now, now);
  if (closing != never) return closing;
  const picoseconds at = state_.timing.earliest_refresh(refreshed_next(rank));
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

// Issues a refresh of idle time, if it could have been issued by now. Returns whether it was.
bool channel::refresh_idle(unsigned rank, picoseconds now) {
  if (close_rank(rank, refresh_due_[rank], now) != never) return false;
  const picoseconds at =
      std::max(refresh_due_[rank], state_.timing.earliest_refresh(refreshed_next(rank)));
  if (at <= now) issue_refresh(rank, at);
  return at <= now;
}

// Counts the refreshes of whole idle intervals without issuing them, except the last interval's.
// All rows are closed, so every refresh was issued at its due time.
void channel::skip_idle(picoseconds now) {
  const picoseconds last_due = *std::ranges::max_element(refresh_due_);
  const std::uint64_t skipped = last_due <= now ? (now - last_due) / refresh_interval_ : 0;
  for (picoseconds& due : refresh_due_) due += skipped * refresh_interval_;
  earliest_due_ += skipped * refresh_interval_;
  statistics_.refreshes += skipped * refresh_due_.size();
}

// Issues the refreshes that would have been issued by now, in order of time, had the channel been
// awake. Precondition: nothing is queued.
void channel::catch_up_refreshes(picoseconds now) {
  for (std::size_t given = 0; earliest_due_ <= now; ++given) {
    if (given == refresh_due_.size() * refreshes_of_round_) skip_idle(now);
    const auto first = std::ranges::min_element(refresh_due_) - refresh_due_.begin();
    if (!refresh_idle(static_cast<unsigned>(first), now)) return;
  }
}

const memory_statistics& channel::statistics(picoseconds now) {
  if (state_.queue.empty() && now >= earliest_due_) catch_up_refreshes(now);
  statistics_.rank_ps = picosecond_sum{now} * open_rows_.size();
  statistics_.open_bank_ps = closed_less_opened_;
  for (unsigned rank = 0; rank < open_rows_.size(); ++rank)
    if (open_rows_[rank] != 0) {
      const picoseconds from = std::min(now, open_from_[rank]);
      statistics_.open_ps += now - from;
      open_from_[rank] += now - from;
      statistics_.open_bank_ps += picosecond_sum{now} * open_rows_[rank];
    }
  return statistics_;
}

}  // namespace stele::sim
