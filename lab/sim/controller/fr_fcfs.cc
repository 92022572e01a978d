// FR-FCFS: the candidate of a bank, the choice among banks, and the switch between reads and
// writes.
#include <sim/controller/fr_fcfs.h>
#include <sim/controller/schedulers.h>
#include <sim/device/retention.h>

#include <bit>
#include <cmath>

namespace stele::sim {
namespace {

unsigned share_of(unsigned entries, double share) {
  return static_cast<unsigned>(std::lround(entries * share));
}

}  // namespace

fr_fcfs_scheduler::fr_fcfs_scheduler(const channel_state& channel, const memory_config& c)
    : channel_(channel),
      drain_from_(std::max(1U, share_of(c.write_queue_entries, c.write_drain_from))),
      drain_to_(share_of(c.write_queue_entries, c.write_drain_to)),
      starvation_limit_(c.starvation_limit),
      age_limit_(c.age_limit_ns == 0 ? never : from_ns(c.age_limit_ns)),
      pulsed_(tells_logs_from_data(c) || (c.write_pulse_ns > 0 && !c.write_back_rows)) {
  for (auto& of_kind : candidates_) of_kind.resize(channel.open_row.size());
}

// Writes at the age limit are served together: one by one, each would turn the bus twice.
void fr_fcfs_scheduler::update_drain_mode(picoseconds now) {
  const entry_list& writes = channel_.queue.of(access::write);
  if (writes.size <= drain_to_)
    draining_ = false;
  else if (writes.size >= drain_from_ || now - channel_.queue[writes.head].arrived >= age_limit_)
    draining_ = true;
}

// The oldest request that hits the open row, else the oldest request.
inline entry_index fr_fcfs_scheduler::pick(access kind, unsigned bank) const {
  const std::uint32_t open = channel_.open_row[bank];
  entry_index oldest = no_entry;
  for (entry_index i = channel_.queue.of(kind, bank).head; i != no_entry;
       i = channel_.queue[i].next_in_bank) {
    const entry& e = channel_.queue[i];
    if (e.row != open && oldest != no_entry) continue;
    if (!can_start(e)) continue;
    if (e.row == open || open == no_row) return i;
    oldest = i;
  }
  return oldest;
}

void fr_fcfs_scheduler::update_candidates(access kind) {
  const auto k = static_cast<unsigned>(kind);
  for (std::uint64_t banks = stale_[k] & (channel_.queue.banks_with(kind) | has_candidate_[k]);
       banks; banks &= banks - 1) {
    const auto bank = static_cast<unsigned>(std::countr_zero(banks));
    const entry_index i = pick(kind, bank);
    if (i == no_entry) {
      has_candidate_[k] &= ~bank_bit(bank);
      continue;
    }
    const entry& e = channel_.queue[i];
    const command what = channel_.next_command(e);
    const bool moves = moves_data(what);
    candidates_[k][bank] = {e.number | (moves ? 0 : std::uint64_t{1} << 63),
                            channel_.timing.earliest_in_bank(what, bank), i, what};
    has_candidate_[k] |= bank_bit(bank);
    moves_data_[k] = (moves_data_[k] & ~bank_bit(bank)) | (moves ? bank_bit(bank) : 0);
  }
  stale_[k] = 0;
}

bool fr_fcfs_scheduler::starving(access kind) const {
  const entry_list& all = channel_.queue.of(kind);
  return all.size && can_start(channel_.queue[all.head]);
}

decision fr_fcfs_scheduler::decision_for(entry_index i, picoseconds now) const {
  const entry& e = channel_.queue[i];
  const command what = channel_.next_command(e);
  return {std::max(now, channel_.timing.earliest(what, e.bank)), i, what};
}

decision fr_fcfs_scheduler::starved_decision(access kind, std::uint64_t banks,
                                             picoseconds now) const {
  const entry_index i = channel_.queue.of(kind).head;
  if (!(banks >> channel_.queue[i].bank & 1)) return {};
  return decision_for(i, now);
}

// The oldest request that could start, if it has waited for the age limit. The oldest of a kind
// never becomes older than the one before it, so none is looked at until the limit of the last.
entry_index fr_fcfs_scheduler::find_oldest_at_age_limit(picoseconds now) {
  picoseconds arrived = now;
  entry_index oldest = no_entry;
  for (const access kind : {access::read, access::write}) {
    const entry_index i = channel_.queue.of(kind).head;
    if (i == no_entry) continue;
    const entry& e = channel_.queue[i];
    arrived = std::min(arrived, e.arrived);
    if (now - e.arrived < age_limit_ || channel_.is_blocked_by_refresh(e.bank) || !can_start(e))
      continue;
    if (oldest == no_entry || e.number < channel_.queue[oldest].number) oldest = i;
  }
  next_at_age_limit_ = age_limit_ == never ? never : arrived + age_limit_;
  return oldest;
}

// Of the candidates of these banks, the one that may be issued first; of equals, the one of lowest
// rank. above(command, bank): when the rules above the bank's own node allow it.
template <class Above>
inline decision fr_fcfs_scheduler::best_of(access kind, std::uint64_t banks, picoseconds now,
                                           const Above& above) const {
  const auto k = static_cast<unsigned>(kind);
  const candidate* const choices = candidates_[k].data();
  const candidate none{};
  const candidate* best = &none;
  std::uint64_t best_rank = none.rank;
  picoseconds best_at = never;
  // Branchless: the winning bank is unpredictable.
  const auto compare = [&] [[gnu::always_inline]] (unsigned bank) {
    const candidate& c = choices[bank];
    const picoseconds at = std::max(std::max(now, c.ready), above(c.what, bank));
    const bool better = (at < best_at) | ((at == best_at) & (c.rank < best_rank));
    best = better ? &c : best;
    best_rank = better ? c.rank : best_rank;
    best_at = better ? at : best_at;
  };
  for (std::uint64_t left = banks & moves_data_[k]; left; left &= left - 1)
    compare(static_cast<unsigned>(std::countr_zero(left)));
  if (best_at > now)  // else a row command comes later
    for (std::uint64_t left = banks & ~moves_data_[k]; left; left &= left - 1) {
      const auto bank = static_cast<unsigned>(std::countr_zero(left));
      if (choices[bank].ready <= best_at) compare(bank);
    }
  return {best_at, best->entry, best->what};
}

inline decision fr_fcfs_scheduler::best_of(access kind, std::uint64_t banks,
                                           picoseconds now) const {
  if (channel_.timing.is_flat()) {
    const auto& ready = channel_.timing.channel_node();
    return best_of(kind, banks, now, [&](command c, unsigned) -> const picoseconds& {
      return ready[static_cast<unsigned>(c)];
    });
  }
  return best_of(kind, banks, now,
                 [&](command c, unsigned bank) { return channel_.timing.earliest_above(c, bank); });
}

// Improves `best` by the best decision for those of these banks that are usable. Returns the banks
// that have a request that could start.
inline std::uint64_t fr_fcfs_scheduler::consider(access kind, std::uint64_t banks,
                                                 std::uint64_t usable, picoseconds now,
                                                 decision& best) {
  const auto k = static_cast<unsigned>(kind);
  if (channel_.queue.of(kind).size == 0) return 0;
  if (stale_[k]) update_candidates(kind);
  const bool starved = bypassed_[k] >= starvation_limit_ && starving(kind);
  const std::uint64_t found = has_candidate_[k] & banks;
  const decision d =
      starved ? starved_decision(kind, banks & usable, now) : best_of(kind, found & usable, now);
  if (d.at < best.at) best = d;
  return found;
}

// If its bank has a candidate, a new request matters only if it hits the open row and the candidate
// does not, or if it starts a drain.
bool fr_fcfs_scheduler::enqueued(const entry& e) {
  const auto k = static_cast<unsigned>(e.req.kind);
  const bool starts_drain = !draining_ && channel_.queue.of(access::write).size >= drain_from_;
  const bool has_choice = (has_candidate_[k] & ~stale_[k]) >> e.bank & 1;
  if (has_choice && (e.row != channel_.open_row[e.bank] || moves_data(candidates_[k][e.bank].what)))
    return starts_drain;
  stale_[k] |= bank_bit(e.bank);
  return true;
}

// The decision when only one request is queued: that of the full search, without looking at banks.
decision fr_fcfs_scheduler::single_decision(access kind, picoseconds now) const {
  const entry_index i = channel_.queue.of(kind).head;
  const entry& e = channel_.queue[i];
  if (channel_.is_blocked_by_refresh(e.bank) || !can_start(e)) return {};
  return decision_for(i, now);
}

decision fr_fcfs_scheduler::next(picoseconds now) {
  update_drain_mode(now);
  const unsigned reads = channel_.queue.of(access::read).size,
                 writes = channel_.queue.of(access::write).size;
  if (reads + writes == 1) return single_decision(reads ? access::read : access::write, now);
  decision best;
  std::uint64_t usable = ~channel_.blocked_by_refresh;
  const entry_index oldest = now < next_at_age_limit_ ? no_entry : find_oldest_at_age_limit(now);
  if (oldest != no_entry) {
    best = decision_for(oldest, now);
    const unsigned bank = channel_.queue[oldest].bank;
    if (channel_.timing.earliest_in_bank(best.what, bank) <= now) return best;
    usable &= ~bank_bit(bank);
  }
  if (reads == 0 || writes == 0)
    consider(reads ? access::read : access::write, ~std::uint64_t{0}, usable, now, best);
  else
    improve(usable, now, best);
  return best;
}

// Improves `best` by the best decision for the usable banks. Precondition: requests of both kinds
// are queued.
void fr_fcfs_scheduler::improve(std::uint64_t usable, picoseconds now, decision& best) {
  const access first = draining_ ? access::write : access::read;
  const access second = first == access::write ? access::read : access::write;
  const auto k = static_cast<unsigned>(first);
  const std::uint64_t opened = channel_.opened_for[1 - k];
  if (opened) {
    if (stale_[1 - k]) update_candidates(second);
    const decision d = best_of(second, opened & has_candidate_[1 - k] & usable, now);
    if (d.at < best.at) best = d;
  }
  const std::uint64_t served = consider(first, ~opened, usable, now, best);
  const std::uint64_t waiting = draining_ ? served : served & ~channel_.opened_for[k];
  if (pulsed_ || waiting == 0) consider(second, ~served & ~opened, usable, now, best);
}

void fr_fcfs_scheduler::about_to_issue(const entry& e) {
  unsigned& passed = bypassed_[static_cast<unsigned>(e.req.kind)];
  const entry_index oldest = channel_.queue.of(e.req.kind).head;
  passed = channel_.queue[oldest].number == e.number ? 0 : passed + 1;
}

std::unique_ptr<scheduler> make_fr_fcfs(const channel_state& channel, const memory_config& c,
                                        const epoch_tracker&) {
  return std::make_unique<fr_fcfs_scheduler>(channel, c);
}

}  // namespace stele::sim
