// FR-FCFS: the candidate of a bank, the choice among banks, and the switch between reads and
// writes.
#include <sim/branchless.h>
#include <sim/controller/fr_fcfs.h>
#include <sim/controller/schedulers.h>
#include <sim/device/retention.h>

#include <cmath>

namespace stele::sim {
namespace {

unsigned share_of(unsigned entries, double share) {
  return static_cast<unsigned>(std::lround(entries * share));
}

}  // namespace

template <unsigned Words>
fr_fcfs<Words>::fr_fcfs(const channel_state& channel, const memory_config& c)
    : channel_(channel),
      drain_from_(std::max(1U, share_of(c.write_queue_entries, c.write_drain_from))),
      drain_to_(share_of(c.write_queue_entries, c.write_drain_to)),
      starvation_limit_(c.starvation_limit),
      age_limit_(c.age_limit_ns == 0 ? never : from_ns(c.age_limit_ns)),
      pulsed_(tells_logs_from_data(c) || (c.write_pulse_ns > 0 && !c.write_back_rows)) {
  for (auto& of_kind : candidates_) of_kind.resize(channel.open_row.size());
}

// Writes at the age limit are served together: one by one, each would turn the bus twice.
template <unsigned Words>
void fr_fcfs<Words>::update_drain_mode(picoseconds now) {
  const entry_list& writes = channel_.queue.of(access::write);
  if (writes.size <= drain_to_)
    draining_ = false;
  else if (writes.size >= drain_from_ || now - channel_.queue[writes.head].arrived >= age_limit_)
    draining_ = true;
}

// The oldest request that hits the open row, else the oldest request.
template <unsigned Words>
inline entry_index fr_fcfs<Words>::pick(access kind, unsigned bank) const {
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

template <unsigned Words>
void fr_fcfs<Words>::update_candidates(access kind) {
  const auto k = static_cast<unsigned>(kind);
  const banks outdated = stale_[k] & (banks(channel_.queue.banks_with(kind)) | has_candidate_[k]);
  outdated.for_each([&] [[gnu::always_inline]] (unsigned bank) {
    const entry_index i = pick(kind, bank);
    if (i == no_entry) return has_candidate_[k].erase(bank);
    const entry& e = channel_.queue[i];
    const command what = channel_.next_command(e);
    const bool moves = moves_data(what);
    candidates_[k][bank] = {e.number | (moves ? 0 : std::uint64_t{1} << 63),
                            channel_.timing.earliest_in_bank(what, bank), i, what};
    has_candidate_[k].insert(bank);
    moves_data_[k].erase(bank);
    if (moves) moves_data_[k].insert(bank);
  });
  stale_[k] = {};
}

template <unsigned Words>
bool fr_fcfs<Words>::starving(access kind) const {
  const entry_list& all = channel_.queue.of(kind);
  return all.size && can_start(channel_.queue[all.head]);
}

template <unsigned Words>
decision fr_fcfs<Words>::decision_for(entry_index i, picoseconds now) const {
  const entry& e = channel_.queue[i];
  const command what = channel_.next_command(e);
  return {std::max(now, channel_.timing.earliest(what, e.bank)), i, what};
}

template <unsigned Words>
decision fr_fcfs<Words>::starved_decision(access kind, const banks& among, picoseconds now) const {
  const entry_index i = channel_.queue.of(kind).head;
  if (!among.has(channel_.queue[i].bank)) return {};
  return decision_for(i, now);
}

// The oldest request that could start, if it has waited for the age limit. The oldest of a kind
// never becomes older than the one before it, so none is looked at until the limit of the last.
template <unsigned Words>
entry_index fr_fcfs<Words>::find_oldest_at_age_limit(picoseconds now) {
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
template <unsigned Words>
template <class Above>
inline decision fr_fcfs<Words>::best_of(access kind, const banks& among, picoseconds now,
                                        const Above& above) const {
  const auto k = static_cast<unsigned>(kind);
  const candidate* const choices = candidates_[k].data();
  std::uint64_t best = 0, best_rank = 0;
  picoseconds best_at = never;
  const auto compare = [&] [[gnu::always_inline]] (unsigned bank) {
    const candidate& c = choices[bank];
    const picoseconds at = larger_of(larger_of(now, c.ready), above(c.what, bank));
    const bool better = (at < best_at) | ((at == best_at) & (c.rank < best_rank));
    best = select(better, bank, best);
    best_rank = select(better, c.rank, best_rank);
    best_at = select(better, at, best_at);
  };
  (among & moves_data_[k]).for_each(compare);
  if (best_at > now)  // else a row command comes later
    (among & ~moves_data_[k]).for_each(compare);
  if (best_at == never) return {};
  return {best_at, choices[best].entry, choices[best].what};
}

template <unsigned Words>
inline decision fr_fcfs<Words>::best_of(access kind, const banks& among, picoseconds now) const {
  if (channel_.timing.is_flat()) {
    const auto& ready = channel_.timing.channel_node();
    return best_of(kind, among, now,
                   [&] [[gnu::always_inline]] (command c, unsigned) -> const picoseconds& {
                     return ready[static_cast<unsigned>(c)];
                   });
  }
  return best_of(kind, among, now, [&] [[gnu::always_inline]] (command c, unsigned bank) {
    return channel_.timing.earliest_above(c, bank);
  });
}

// Improves `best` by the best decision for those of these banks that are usable. Returns the banks
// that have a request that could start.
template <unsigned Words>
inline bank_words<Words> fr_fcfs<Words>::consider(access kind, const banks& among,
                                                  const banks& usable, picoseconds now,
                                                  decision& best) {
  const auto k = static_cast<unsigned>(kind);
  if (channel_.queue.of(kind).size == 0) return {};
  if (!stale_[k].empty()) update_candidates(kind);
  const bool starved = bypassed_[k] >= starvation_limit_ && starving(kind);
  const banks found = has_candidate_[k] & among;
  const decision d =
      starved ? starved_decision(kind, among & usable, now) : best_of(kind, found & usable, now);
  if (d.at < best.at) best = d;
  return found;
}

// If its bank has a candidate, a new request matters only if it hits the open row and the candidate
// does not, or if it starts a drain.
template <unsigned Words>
bool fr_fcfs<Words>::enqueued(const entry& e) {
  const auto k = static_cast<unsigned>(e.req.kind);
  const bool starts_drain = !draining_ && channel_.queue.of(access::write).size >= drain_from_;
  const bool has_choice = (has_candidate_[k] & ~stale_[k]).has(e.bank);
  if (has_choice && (e.row != channel_.open_row[e.bank] || moves_data(candidates_[k][e.bank].what)))
    return starts_drain;
  stale_[k].insert(e.bank);
  return true;
}

// The decision when only one request is queued: that of the full search, without looking at banks.
template <unsigned Words>
decision fr_fcfs<Words>::single_decision(access kind, picoseconds now) const {
  const entry_index i = channel_.queue.of(kind).head;
  const entry& e = channel_.queue[i];
  if (channel_.is_blocked_by_refresh(e.bank) || !can_start(e)) return {};
  return decision_for(i, now);
}

template <unsigned Words>
decision fr_fcfs<Words>::next(picoseconds now) {
  update_drain_mode(now);
  const unsigned reads = channel_.queue.of(access::read).size,
                 writes = channel_.queue.of(access::write).size;
  if (reads + writes == 1) return single_decision(reads ? access::read : access::write, now);
  decision best;
  banks usable = ~banks(channel_.blocked_by_refresh);
  const entry_index oldest = now < next_at_age_limit_ ? no_entry : find_oldest_at_age_limit(now);
  if (oldest != no_entry) {
    best = decision_for(oldest, now);
    const unsigned bank = channel_.queue[oldest].bank;
    if (channel_.timing.earliest_in_bank(best.what, bank) <= now) return best;
    usable.erase(bank);
  }
  if (reads == 0 || writes == 0)
    consider(reads ? access::read : access::write, banks::all(), usable, now, best);
  else
    improve(usable, now, best);
  return best;
}

// Improves `best` by the best decision for the usable banks. Precondition: requests of both kinds
// are queued.
template <unsigned Words>
void fr_fcfs<Words>::improve(banks usable, picoseconds now, decision& best) {
  const access first = draining_ ? access::write : access::read;
  const access second = first == access::write ? access::read : access::write;
  const auto k = static_cast<unsigned>(first);
  const banks opened(channel_.opened_for[1 - k]);
  if (!opened.empty()) {
    if (!stale_[1 - k].empty()) update_candidates(second);
    const decision d = best_of(second, opened & has_candidate_[1 - k] & usable, now);
    if (d.at < best.at) best = d;
  }
  const banks served = consider(first, ~opened, usable, now, best);
  const banks waiting = draining_ ? served : served & ~banks(channel_.opened_for[k]);
  if (pulsed_ || waiting.empty()) consider(second, ~served & ~opened, usable, now, best);
}

template <unsigned Words>
void fr_fcfs<Words>::about_to_issue(const entry& e) {
  unsigned& passed = bypassed_[static_cast<unsigned>(e.req.kind)];
  const entry_index oldest = channel_.queue.of(e.req.kind).head;
  passed = channel_.queue[oldest].number == e.number ? 0 : passed + 1;
}

template class fr_fcfs<1>;
template class fr_fcfs<max_banks / 64>;

std::unique_ptr<scheduler> make_fr_fcfs(const channel_state& channel, const memory_config& c,
                                        const epoch_tracker&) {
  if (has_one_word(channel)) return std::make_unique<fr_fcfs<1>>(channel, c);
  return std::make_unique<fr_fcfs_scheduler>(channel, c);
}

}  // namespace stele::sim
