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
  return {channel_.timing.earliest_in_bank(what, e.bank), e.number, i, what};
}

void first_ready::refresh_choices(access kind) {
  const auto k = static_cast<unsigned>(kind);
  for (std::uint64_t banks = stale_[k] & (channel_.queue.banks_with(kind) | chosen_[k]); banks; banks &= banks - 1) {
    const auto bank = static_cast<unsigned>(std::countr_zero(banks));
    const entry_index i = pick(kind, bank);
    chosen_[k] &= ~bit(bank);
    if (i == no_entry) continue;
    choices_[k][bank] = choice_of(i);
    chosen_[k] |= bit(bank);
  }
  stale_[k] = 0;
}

bool first_ready::starving(access kind) const {
  const entry_list& all = channel_.queue.of(kind);
  return all.size && startable(channel_.queue[all.head]);
}

void first_ready::better(const choice& c, unsigned bank, picoseconds now, decision& best) const {
  if (c.at > best.at) return;
  const picoseconds at = std::max({now, c.at, channel_.timing.earliest_above(c.what, bank)});
  if (at > best.at) return;
  if (at == best.at && best.entry != no_entry) {
    if (moves_data(c.what) < moves_data(best.what)) return;
    if (moves_data(c.what) == moves_data(best.what) && c.number > channel_.queue[best.entry].number) return;
  }
  best = {at, c.entry, c.what};
}

// Betters `best` by the commands of these banks; returns the banks that have a request to serve.
std::uint64_t first_ready::consider(access kind, std::uint64_t banks, picoseconds now, decision& best) {
  const auto k = static_cast<unsigned>(kind);
  if (stale_[k]) refresh_choices(kind);
  if (passed_[k] >= starvation_limit_ && starving(kind)) {
    const entry_index starved = channel_.queue.of(kind).head;
    const unsigned bank = channel_.queue[starved].bank;
    if ((banks & ~channel_.held) >> bank & 1) better(choice_of(starved), bank, now, best);
    return banks & bit(bank);
  }
  const std::uint64_t found = chosen_[k] & banks;
  for (std::uint64_t left = found & ~channel_.held; left; left &= left - 1) {
    const auto bank = static_cast<unsigned>(std::countr_zero(left));
    better(choices_[k][bank], bank, now, best);
  }
  return found;
}

decision first_ready::next(picoseconds now) {
  choose_mode();
  const access first = draining_ || channel_.queue.of(access::read).size == 0 ? access::write : access::read;
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
