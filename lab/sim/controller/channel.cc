// Requests from submission to completion: admission, commands, completion.
#include <base/check.h>
#include <sim/controller/channel.h>

#include <limits>
#include <utility>

namespace stele::sim {
namespace {

channel_state state_of(const timing_table& timing) {
  return {request_queue(timing.banks()),
          timing,
          std::vector<std::uint32_t>(timing.banks(), no_row),
          {},
          {}};
}

// When the first refresh of each rank is due: the last rank's after an interval.
std::vector<picoseconds> first_refreshes(const memory_config& c, unsigned ranks) {
  const picoseconds interval = from_ns(c.refresh_interval_ns), clock = from_ns(c.clock_ns);
  picoseconds apart = c.staggered_refresh ? interval / ranks : 0;
  if (clock != 0) apart -= apart % clock;
  std::vector<picoseconds> due(ranks);
  for (unsigned rank = 0; rank < ranks; ++rank) due[rank] = interval - (ranks - 1 - rank) * apart;
  return due;
}

}  // namespace

channel::channel(const channel_context& p)
    : events_(p.events),
      channel_observer_(p.observer),
      stream_(p.stream),
      state_(state_of(p.timing)),
      scheduler_(p.kind.make(state_, p.config, p.stream)),
      read_latency_(from_ns(p.config.read_latency_ns)),
      write_latency_(from_ns(p.config.write_latency_ns)),
      pulses_(p.pulses),
      read_limit_(p.config.read_queue_entries),
      write_limit_(p.config.write_queue_entries),
      bank_limit_(p.config.bank_queue_entries ? p.config.bank_queue_entries
                                              : std::numeric_limits<unsigned>::max()),
      open_page_(p.config.open_page),
      follows_barriers_(p.kind.follows_barriers),
      write_back_rows_(p.config.write_back_rows),
      truncates_as_data_(p.config.truncation_retention == "data"),
      number_(p.number),
      mutant_(p.mutant),
      refresh_interval_(from_ns(p.config.refresh_interval_ns)),
      refreshes_of_round_(p.config.refresh == "same-bank" ? p.config.banks : 1) {
  statistics_.bank_writes.assign(p.timing.banks(), 0);
  activated_at_.assign(p.timing.banks(), 0);
  bank_busy_until_.assign(p.timing.banks(), 0);
  opener_.assign(p.timing.banks(), no_entry);
  row_written_at_.assign(p.timing.banks(), never);
  for (unsigned bank = 0; bank < p.timing.banks(); ++bank)
    rank_of_.push_back(static_cast<std::uint8_t>(p.timing.rank_of(bank)));
  open_rows_.assign(p.timing.ranks(), 0);
  open_from_.assign(p.timing.ranks(), 0);
  open_until_.assign(p.timing.ranks(), 0);
  if (refresh_interval_ == 0) return;
  refresh_due_ = first_refreshes(p.config, p.timing.ranks());
  earliest_due_ = refresh_due_.front();
}

// --- admission ---

void channel::submit(picoseconds now, const request& r, const device_address& where) {
  if (state_.queue.empty() && now >= earliest_due_) catch_up_refreshes(now);
  ++outstanding_;
  const entry_index i = state_.queue.allocate();
  entry& e = state_.queue[i];
  e.req = r;
  e.number = arrivals_++;
  e.arrived = now;
  e.row = where.row;
  e.bank = static_cast<std::uint16_t>(where.bank);
  if (r.kind == access::write)
    e.stream = follows_barriers_ ? stream_.submitted(r.address) : stream_.unordered(r.address);
  if (is_forwarded(r)) {
    forward(i);
  } else {
    waiting_[static_cast<unsigned>(r.kind)].grow();
    has_room_for(r.kind, e.bank) ? enqueue(i) : hold_back(i);
  }
  if (decision_stale_) wake_at(now);
}

bool channel::has_room(access kind, unsigned bank) const noexcept {
  if (kind == access::read) return state_.queue.of(access::read).size < read_limit_;
  return state_.queue.of(access::write).size < write_limit_ &&
         state_.queue.of(access::write, bank).size < bank_limit_;
}

// A read of a line with a write that has not started is served from that write, at once.
bool channel::is_forwarded(const request& r) const noexcept {
  return r.kind == access::read && (state_.queue.youngest_write(r.address) != no_entry ||
                                    held_back_lines_.find(r.address) != no_entry);
}

void channel::forward(entry_index i) {
  ++statistics_.forwarded_reads;
  events_.schedule(events_.now(), *this, i);
}

void channel::hold_back(entry_index i) {
  const request& r = state_.queue[i].req;
  entry_list& held = held_back_[static_cast<unsigned>(r.kind)];
  (held.head == no_entry ? held.head : state_.queue[held.tail].next) = i;
  held.tail = i;
  if (r.kind == access::write) held_back_lines_.put(r.address, i);
}

void channel::admit(access kind) {
  entry_list& held = held_back_[static_cast<unsigned>(kind)];
  while (held.head != no_entry) {
    const entry_index i = held.head;
    const entry& e = state_.queue[i];
    if (!has_room(kind, e.bank)) return;
    held.head = e.next;
    if (kind == access::write && held_back_lines_.find(e.req.address) == i)
      held_back_lines_.erase(e.req.address);
    // A write to the line of a read may have come since the read was held back.
    if (is_forwarded(e.req)) {
      waiting_[static_cast<unsigned>(kind)].shrink(events_.now());
      forward(i);
    } else {
      enqueue(i);
    }
  }
}

void channel::enqueue(entry_index i) {
  state_.queue.enqueue(i);
  decision_stale_ |= scheduler_->enqueued(state_.queue[i]);
}

// --- commands ---

void channel::wake_at(picoseconds when) {
  if (when >= wake_up_at_) return;
  wake_up_at_ = when;
  events_.schedule(when, *this, wake_up);
}

void channel::order_changed(picoseconds now) {
  if (state_.queue.of(access::write).size == 0) return;
  scheduler_->order_changed();
  decision_stale_ = true;
  wake_at(now);
}

// Issues every command that is allowed now, then schedules a wake-up for the next one. With nothing
// queued, the channel sleeps until a request arrives.
void channel::issue_ready_commands(picoseconds now) {
  while (!state_.queue.empty()) {
    const picoseconds refresh_at = now >= earliest_due_ ? refresh(now) : earliest_due_;
    if (decision_stale_) decision_ = scheduler_->next(now), decision_stale_ = false;
    if (decision_.at > now) {
      const picoseconds next = std::min(decision_.at, refresh_at);
      if (!events_.go_on_to(next)) return wake_at(next);
      now = next;
      continue;
    }
    issue(decision_, now);
  }
}

void channel::issue(const decision& d, picoseconds now) {
  entry& e = state_.queue[d.entry];
  if (d.what == command::activate) return issue_activate(d.entry, now);
  if (d.what != command::precharge) return issue_column(d.entry, now);
  e.precharged = true;
  issue_precharge(e.bank, now);
}

void channel::report(command what, unsigned bank, picoseconds at, std::uint32_t row, bool automatic,
                     std::uint64_t address) const {
  if (observer_) [[unlikely]]
    observer_->issued(
        {what, number_, state_.timing.rank_of(bank), bank, at, row, automatic, address});
}

void channel::issue_activate(entry_index i, picoseconds now) {
  entry& e = state_.queue[i];
  e.activated = true;
  opener_[e.bank] = i;
  state_.opened_for[static_cast<unsigned>(e.req.kind)].insert(e.bank);
  state_.timing.issue(command::activate, e.bank, now);
  report(command::activate, e.bank, now, e.row);
  state_.open_row[e.bank] = e.row;
  activated_at_[e.bank] = now;
  count_open_row(e.bank, now);
  ++statistics_.activates;
  scheduler_->bank_changed(e.bank);
  decision_stale_ = true;
}

void channel::issue_precharge(unsigned bank, picoseconds at) {
  state_.timing.issue(command::precharge, bank, at);
  report(command::precharge, bank, at);
  if (const picoseconds end = write_back_row(bank, at); end != at)
    state_.timing.issue_auto_precharge(bank, end);
  close_row(bank, at);
  scheduler_->bank_changed(bank);
  decision_stale_ = true;
}

void channel::issue_column(entry_index i, picoseconds now) {
  entry& e = state_.queue[i];
  const bool write = e.req.kind == access::write;
  e.started = now;
  count_issue(e);
  waiting_[static_cast<unsigned>(e.req.kind)].shrink(now);
  scheduler_->about_to_issue(e);
  state_.queue.dequeue(i);
  if (opener_[e.bank] == i) state_.opened_for[static_cast<unsigned>(e.req.kind)].erase(e.bank);
  const command what = write ? command::write : command::read;
  state_.timing.issue(what, e.bank, now);
  report(what, e.bank, now, e.row, false, e.req.address);
  const picoseconds pulse = write ? pulse_of(e) : 0;
  const picoseconds end = now + (write ? write_latency_ + pulse : read_latency_);
  if (pulse) state_.timing.occupy(e.bank, end);
  if (write && write_back_rows_) row_written_at_[e.bank] = end;
  count_busy_bank(e.bank, e.activated ? activated_at_[e.bank] : now, end);
  events_.schedule(end, *this, i);
  if (!open_page_) close_unless_hit(e.bank);
  scheduler_->bank_changed(e.bank);
  decision_stale_ = true;
  admit(e.req.kind);
}

// The cells get the bank's open row, which is about to be closed, if it was written. Returns when
// they have it.
picoseconds channel::write_back_row(unsigned bank, picoseconds at) {
  const picoseconds written = std::exchange(row_written_at_[bank], never);
  if (written == never || mutant_ == controller_mutant::rows_dropped) return at;
  const picoseconds from = std::max(at, written), end = from + pulses_.data;
  state_.timing.occupy(bank, end);
  count_busy_bank(bank, from, end);
  return end;
}

// Closed-page policy: the row closes after the last request that is queued for it.
void channel::close_unless_hit(unsigned bank) {
  const std::uint32_t row = state_.open_row[bank];
  for (const access kind : {access::read, access::write})
    for (entry_index i = state_.queue.of(kind, bank).head; i != no_entry;
         i = state_.queue[i].next_in_bank)
      if (state_.queue[i].row == row) return;
  const picoseconds allowed =
      mutant_ == controller_mutant::precharged_at_once
          ? events_.now()
          : std::max(events_.now(), state_.timing.earliest(command::precharge, bank));
  const picoseconds at = write_back_row(bank, allowed);
  state_.timing.issue_auto_precharge(bank, at);
  report(command::precharge, bank, at, no_row, true);
  close_row(bank, at);
}

void channel::count_open_row(unsigned bank, picoseconds at) {
  const unsigned rank = rank_of_[bank];
  closed_less_opened_ -= at;
  // A row that closes by itself is counted until then already.
  if (open_rows_[rank]++ == 0) open_from_[rank] = std::max(at, open_until_[rank]);
}

void channel::close_row(unsigned bank, picoseconds at) {
  state_.open_row[bank] = no_row;
  for (bank_set& of_kind : state_.opened_for) of_kind.erase(bank);
  ++statistics_.precharges;
  closed_less_opened_ += at;
  const unsigned rank = rank_of_[bank];
  open_until_[rank] = std::max(open_until_[rank], at);
  if (--open_rows_[rank] == 0 && open_until_[rank] > open_from_[rank])
    statistics_.open_ps += open_until_[rank] - open_from_[rank];
}

picoseconds channel::pulse_of(const entry& e) const noexcept {
  if (write_back_rows_) return 0;
  const bool as_data =
      e.stream.origin.what == write_class::data || (truncates_as_data_ && e.stream.is_truncation());
  return as_data ? pulses_.data : pulses_.log;
}

void channel::count_issue(const entry& e) {
  const bool write = e.req.kind == access::write;
  ++(write ? statistics_.writes : statistics_.reads);
  ++(e.precharged  ? statistics_.row_conflicts
     : e.activated ? statistics_.row_misses
                   : statistics_.row_hits);
  (write ? statistics_.write_wait : statistics_.read_wait).add(e.started - e.arrived);
  statistics_.bytes += line_bytes;
  if (write) ++statistics_.bank_writes[e.bank];
}

void channel::count_busy_bank(unsigned bank, picoseconds from, picoseconds end) {
  picoseconds& until = bank_busy_until_[bank];
  const picoseconds begin = std::max(until, from);
  if (end <= begin) return;
  statistics_.bank_busy_ps += end - begin;
  until = end;
}

// --- completion ---

void channel::handle(picoseconds now, std::uint64_t what) {
  if (what != wake_up) return finish(static_cast<entry_index>(what), now);
  if (now != wake_up_at_) return;  // an earlier wake-up has replaced it
  wake_up_at_ = never;
  issue_ready_commands(now);
}

// The requester may submit again when it is called, so the entry is released first.
void channel::finish(entry_index i, picoseconds now) {
  --outstanding_;
  const entry& e = state_.queue[i];
  if (e.req.kind == access::write) return finish_write(i, now);
  statistics_.read_latency.add(now - e.arrived);
  statistics_.read_latencies.add(now - e.arrived);
  event_handler* const reply_to = e.req.reply_to;
  const std::uint64_t token = e.req.token;
  state_.queue.release(i);
  if (reply_to) reply_to->handle(now, token);
}

void channel::finish_write(entry_index i, picoseconds now) {
  const entry e = state_.queue[i];
  state_.queue.release(i);
  statistics_.write_latency.add(now - e.arrived);
  statistics_.write_latencies.add(now - e.arrived);
  channel_observer_.persisted(
      {e.req, e.stream.origin, number_, e.bank, e.started, now, e.stream.is_truncation()});
  if (follows_barriers_ && stream_.persisted(e.stream)) channel_observer_.order_changed(now);
  if (e.req.reply_to) e.req.reply_to->handle(now, e.req.token);
}

}  // namespace stele::sim
