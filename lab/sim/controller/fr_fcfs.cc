// First-ready, first-come: a bank's choice, the choice among banks, and when reads give way to writes.
#include <sim/controller/fr_fcfs.h>
#include <sim/controller/schedulers.h>

#include <bit>
#include <cmath>

namespace stele::sim {
namespace {

bool moves_data(command c) { return c == command::read || c == command::write; }

unsigned share_of(unsigned entries, double share) { return static_cast<unsigned>(std::lround(entries * share)); }

}  // namespace

first_ready::first_ready(const channel_state& channel, const memory_config& c)
    : channel_(channel),
      drain_from_(std::max(1U, share_of(c.write_queue_entries, c.write_drain_from))),
      drain_to_(share_of(c.write_queue_entries, c.write_drain_to)),
      starvation_limit_(c.starvation_limit),
      pulsed_(c.technology == "pcm" || c.write_pulse_ns > 0) {
  for (auto& of_kind : choices_) of_kind.resize(channel.open_row.size());
  for (auto& of_kind : soonest_) of_kind.resize(channel.open_row.size(), never);
}

void first_ready::choose_mode() {
  const unsigned writes = channel_.queue.of(access::write).size;
  if (writes >= drain_from_) draining_ = true;
  if (writes <= drain_to_) draining_ = false;
}

// The first that hits the open row, or else the oldest.
entry_index first_ready::pick(access kind, unsigned bank) const {
  const std::uint32_t open = channel_.open_row[bank];
  entry_index oldest = no_entry;
  for (entry_index i = channel_.queue.of(kind, bank).head; i != no_entry; i = channel_.queue[i].next_in_bank) {
    const entry& e = channel_.queue[i];
    if (e.row != open && oldest != no_entry) continue;
    if (!startable(e)) continue;
    if (e.row == open || open == no_row) return i;
    oldest = i;
  }
  return oldest;
}

first_ready::choice first_ready::choice_of(entry_index i) const {
  const entry& e = channel_.queue[i];
  const command what = channel_.next_command(e);
  return {e.number | (moves_data(what) ? 0 : std::uint64_t{1} << 63), i, what};
}

void first_ready::refresh_choices(access kind) {
  const auto k = static_cast<unsigned>(kind);
  for (std::uint64_t banks = stale_[k] & (channel_.queue.banks_with(kind) | chosen_[k]); banks; banks &= banks - 1) {
    const auto bank = static_cast<unsigned>(std::countr_zero(banks));
    const entry_index i = pick(kind, bank);
    chosen_[k] &= ~bit(bank);
    ripe_[k] &= ~bit(bank);
    if (i == no_entry) continue;
    choices_[k][bank] = choice_of(i);
    soonest_[k][bank] = channel_.timing.earliest_in_bank(choices_[k][bank].what, bank);
    if (soonest_[k][bank] < next_ripe_[k]) next_ripe_[k] = soonest_[k][bank], likely_[k] = bank;
    chosen_[k] |= bit(bank);
  }
  stale_[k] = 0;
}

bool first_ready::starving(access kind) const {
  const entry_list& all = channel_.queue.of(kind);
  return all.size && startable(channel_.queue[all.head]);
}

decision first_ready::starved_decision(access kind, std::uint64_t banks, picoseconds now) const {
  const entry_index i = channel_.queue.of(kind).head;
  const entry& e = channel_.queue[i];
  if (!((banks & ~channel_.held) >> e.bank & 1)) return {};
  const command what = channel_.next_command(e);
  return {std::max(now, channel_.timing.earliest(what, e.bank)), i, what};
}

// Time has come to look again at the banks that were busy.
void first_ready::ripen(unsigned k, picoseconds now) {
  const picoseconds* const soonest = soonest_[k].data();
  next_ripe_[k] = never;
  for (std::uint64_t left = chosen_[k] & ~ripe_[k]; left; left &= left - 1) {
    const picoseconds at = soonest[std::countr_zero(left)];
    ripe_[k] |= at <= now ? left & -left : 0;
    const bool next = (at > now) & (at < next_ripe_[k]);
    next_ripe_[k] = next ? at : next_ripe_[k];
    likely_[k] = next ? static_cast<unsigned>(std::countr_zero(left)) : likely_[k];
  }
}

// Of these banks' choices the one that may be done first; of several, the one whose rank is lowest.
decision first_ready::best_of(access kind, std::uint64_t banks, picoseconds now) {
  const auto k = static_cast<unsigned>(kind);
  if (next_ripe_[k] <= now) ripen(k, now);
  const choice* const choices = choices_[k].data();
  const picoseconds* const soonest = soonest_[k].data();
  const choice none{};
  const choice* best = &none;
  picoseconds best_at = never;
  const auto weigh = [&](unsigned bank, picoseconds from) {  // without branches, for which bank wins cannot be foreseen
    const choice& c = choices[bank];
    const picoseconds at = std::max(from, channel_.timing.earliest_above(c.what, bank));
    const bool better = (at < best_at) | ((at == best_at) & (c.rank < best->rank));
    best = better ? &c : best;
    best_at = better ? at : best_at;
  };
  for (std::uint64_t left = banks & ripe_[k]; left; left &= left - 1) weigh(static_cast<unsigned>(std::countr_zero(left)), now);
  if (next_ripe_[k] > best_at) return {best_at, best->entry, best->what};  // a bank that is busy changes nothing
  std::uint64_t left = banks & ~ripe_[k];
  if (left & bit(likely_[k])) weigh(likely_[k], soonest[likely_[k]]);
  for (left &= ~bit(likely_[k]); left; left &= left - 1) {
    const auto bank = static_cast<unsigned>(std::countr_zero(left));
    if (soonest[bank] <= best_at) weigh(bank, soonest[bank]);
  }
  return {best_at, best->entry, best->what};
}

// The best decision for these banks, as far as they have a request that could start; returns those that have.
std::uint64_t first_ready::consider(access kind, std::uint64_t banks, picoseconds now, decision& best) {
  const auto k = static_cast<unsigned>(kind);
  if (channel_.queue.of(kind).size == 0) return 0;
  if (stale_[k]) refresh_choices(kind);
  const bool starved = passed_[k] >= starvation_limit_ && starving(kind);
  const std::uint64_t found = chosen_[k] & banks;
  const decision d = starved ? starved_decision(kind, banks, now) : best_of(kind, found & ~channel_.held, now);
  if (d.at < best.at) best = d;
  return found;
}

// Behind a choice of its bank's, a request matters only if it hits the open row and the choice does not, or starts a drain.
bool first_ready::enqueued(const entry& e) {
  const auto k = static_cast<unsigned>(e.asked.kind);
  const bool starts_drain = !draining_ && channel_.queue.of(access::write).size >= drain_from_;
  const bool has_choice = (chosen_[k] & ~stale_[k]) >> e.bank & 1;
  if (has_choice && (e.row != channel_.open_row[e.bank] || moves_data(choices_[k][e.bank].what))) return starts_drain;
  stale_[k] |= bit(e.bank);
  return true;
}

// The decision for the only request there is: what next() would come to, without looking at banks.
decision first_ready::alone(access kind, picoseconds now) const {
  const entry_index i = channel_.queue.of(kind).head;
  const entry& e = channel_.queue[i];
  if (channel_.is_held(e.bank) || !startable(e)) return {};
  const command what = channel_.next_command(e);
  return {std::max(now, channel_.timing.earliest(what, e.bank)), i, what};
}

decision first_ready::next(picoseconds now) {
  choose_mode();
  const unsigned reads = channel_.queue.of(access::read).size, writes = channel_.queue.of(access::write).size;
  if (reads + writes == 1) return alone(reads ? access::read : access::write, now);
  const access first = draining_ || reads == 0 ? access::write : access::read;
  const access second = first == access::write ? access::read : access::write;
  decision best;
  const std::uint64_t served = consider(first, ~std::uint64_t{0}, now, best);
  if (served == 0 || pulsed_) consider(second, ~served, now, best);
  return best;
}

void first_ready::starting(const entry& e) {
  unsigned& passed = passed_[static_cast<unsigned>(e.asked.kind)];
  const entry_index oldest = channel_.queue.of(e.asked.kind).head;
  passed = channel_.queue[oldest].number == e.number ? 0 : passed + 1;
}

std::unique_ptr<scheduler> make_fr_fcfs(const channel_state& channel, const memory_config& c, const write_stream&) {
  return std::make_unique<first_ready>(channel, c);
}

}  // namespace stele::sim
