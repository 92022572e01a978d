// From submission to completion: admission, commands, completion.
#include <base/check.h>
#include <sim/controller/channel.h>

#include <limits>

namespace stele::sim {
namespace {

channel_state state_of(const timing_table& timing) {
  return {request_queue(timing.banks()), timing, std::vector<std::uint32_t>(timing.banks(), no_row), 0};
}

}  // namespace

channel::channel(const channel_parts& p)
    : events_(p.events),
      owner_(p.owner),
      stream_(p.stream),
      state_(state_of(p.timing)),
      scheduler_(p.kind.make(state_, p.config, p.stream)),
      read_latency_(from_ns(p.config.read_latency_ns)),
      write_latency_(from_ns(p.config.write_latency_ns)),
      pulses_(p.pulses),
      read_limit_(p.config.read_queue_entries),
      write_limit_(p.config.write_queue_entries),
      bank_limit_(p.config.bank_queue_entries ? p.config.bank_queue_entries : std::numeric_limits<unsigned>::max()),
      open_page_(p.config.open_page),
      follows_barriers_(p.kind.follows_barriers),
      number_(p.number),
      refresh_interval_(from_ns(p.config.refresh_interval_ns)) {
  done_.bank_writes.assign(p.timing.banks(), 0);
  if (refresh_interval_ == 0) return;
  refresh_due_.assign(p.timing.ranks(), refresh_interval_);
  earliest_due_ = refresh_interval_;
}

// --- admission ---

void channel::submit(picoseconds now, const request& r, const place& where) {
  if (state_.queue.empty() && now >= earliest_due_) catch_up(now);
  if (unfinished_++ == 0) busy_since_ = now;
  const entry_index i = state_.queue.allocate();
  entry& e = state_.queue[i];
  e.asked = r;
  e.number = numbers_++;
  e.arrived = now;
  e.row = where.row;
  e.bank = static_cast<std::uint16_t>(where.bank);
  if (r.kind == access::write) {
    if (follows_barriers_)
      e.stream = stream_.enter(r.address);
    else
      e.stream.who = stream_.ranges().classify(r.address);
  }
  if (front_.head == no_entry && has_room(e))
    enqueue(i);
  else {
    (front_.head == no_entry ? front_.head : state_.queue[front_.tail].next) = i;
    front_.tail = i;
  }
  if (undecided_) wake_at(now);
}

bool channel::has_room(const entry& e) const noexcept {
  if (e.asked.kind == access::read) return state_.queue.of(access::read).size < read_limit_;
  return state_.queue.of(access::write).size < write_limit_ && state_.queue.of(access::write, e.bank).size < bank_limit_;
}

void channel::admit() {
  while (front_.head != no_entry && has_room(state_.queue[front_.head])) {
    const entry_index i = front_.head;
    front_.head = state_.queue[i].next;
    enqueue(i);
  }
}

// A read of a line that a queued write is about to change is served from the queue, at once.
void channel::enqueue(entry_index i) {
  const entry& e = state_.queue[i];
  if (e.asked.kind == access::read && state_.queue.youngest_write(e.asked.address) != no_entry) {
    ++done_.forwarded_reads;
    events_.at(events_.now(), *this, i);
    return;
  }
  state_.queue.enqueue(i);
  undecided_ |= scheduler_->enqueued(state_.queue[i]);
}

// --- commands ---

void channel::wake_at(picoseconds when) {
  if (when >= woken_at_) return;
  woken_at_ = when;
  events_.at(when, *this, wake_up);
}

void channel::order_changed(picoseconds now) {
  if (state_.queue.of(access::write).size == 0) return;
  scheduler_->order_changed();
  undecided_ = true;
  wake_at(now);
}

// Gives every command that may be given now, then sleeps until the next may be; with nothing queued, until woken.
void channel::serve(picoseconds now) {
  while (!state_.queue.empty()) {
    const picoseconds refresh_at = now >= earliest_due_ ? refresh(now) : earliest_due_;
    if (undecided_) decision_ = scheduler_->next(now), undecided_ = false;
    if (decision_.at > now) {
      const picoseconds next = std::min(decision_.at, refresh_at);
      if (next != never) wake_at(next);
      return;
    }
    give(decision_, now);
  }
}

void channel::give(const decision& d, picoseconds now) {
  entry& e = state_.queue[d.entry];
  if (d.what == command::activate) return give_activate(e, now);
  if (d.what != command::precharge) return give_column(d.entry, now);
  e.precharged = true;
  give_precharge(e.bank, now);
}

void channel::tell(command what, unsigned bank, picoseconds at) const {
  if (observer_) [[unlikely]]
    observer_->given({what, number_, state_.timing.rank_of(bank), bank, at});
}

void channel::give_activate(entry& e, picoseconds now) {
  e.activated = true;
  state_.timing.give(command::activate, e.bank, now);
  tell(command::activate, e.bank, now);
  state_.open_row[e.bank] = e.row;
  ++done_.activates;
  scheduler_->bank_changed(e.bank);
  undecided_ = true;
}

void channel::give_precharge(unsigned bank, picoseconds at) {
  state_.timing.give(command::precharge, bank, at);
  tell(command::precharge, bank, at);
  state_.open_row[bank] = no_row;
  ++done_.precharges;
  scheduler_->bank_changed(bank);
  undecided_ = true;
}

void channel::give_column(entry_index i, picoseconds now) {
  entry& e = state_.queue[i];
  const bool write = e.asked.kind == access::write;
  e.started = now;
  account_start(e);
  scheduler_->starting(e);
  state_.queue.dequeue(i);
  const command what = write ? command::write : command::read;
  state_.timing.give(what, e.bank, now);
  tell(what, e.bank, now);
  const picoseconds pulse = write ? pulse_of(e) : 0;
  const picoseconds end = now + (write ? write_latency_ + pulse : read_latency_);
  if (pulse) state_.timing.occupy(e.bank, end);
  events_.at(end, *this, i);
  if (!open_page_) close_unless_hit(e.bank);
  scheduler_->bank_changed(e.bank);
  undecided_ = true;
  admit();
}

// Closed-page policy: the row closes behind the last request that was queued for it.
void channel::close_unless_hit(unsigned bank) {
  const std::uint32_t row = state_.open_row[bank];
  for (const access kind : {access::read, access::write})
    for (entry_index i = state_.queue.of(kind, bank).head; i != no_entry; i = state_.queue[i].next_in_bank)
      if (state_.queue[i].row == row) return;
  const picoseconds at = state_.timing.earliest(command::precharge, bank);
  state_.timing.give_auto_precharge(bank, at);
  tell(command::precharge, bank, at);
  state_.open_row[bank] = no_row;
  ++done_.precharges;
}

picoseconds channel::pulse_of(const entry& e) const noexcept {
  return e.stream.who.what == write_class::data ? pulses_.data : pulses_.log;
}

void channel::account_start(const entry& e) {
  const bool write = e.asked.kind == access::write;
  ++(write ? done_.writes : done_.reads);
  ++(e.precharged ? done_.row_conflicts : e.activated ? done_.row_misses : done_.row_hits);
  (write ? done_.write_wait : done_.read_wait).add(e.started - e.arrived);
  done_.bytes += line_bytes;
  if (write) ++done_.bank_writes[e.bank];
}

// --- completion ---

void channel::act(picoseconds now, std::uint64_t what) {
  if (what != wake_up) return finish(static_cast<entry_index>(what), now);
  if (now != woken_at_) return;  // an earlier wake-up has taken its place
  woken_at_ = never;
  serve(now);
}

// Whoever is told may submit again, so the entry is free before anybody is.
void channel::finish(entry_index i, picoseconds now) {
  if (--unfinished_ == 0) done_.busy_ps += now - busy_since_;
  const entry& e = state_.queue[i];
  if (e.asked.kind == access::write) return finish_write(i, now);
  done_.read_latency.add(now - e.arrived);
  actor* const told = e.asked.told;
  const std::uint64_t token = e.asked.token;
  state_.queue.release(i);
  if (told) told->act(now, token);
}

void channel::finish_write(entry_index i, picoseconds now) {
  const entry e = state_.queue[i];
  state_.queue.release(i);
  done_.write_latency.add(now - e.arrived);
  owner_.persisted({e.asked, e.stream.who, number_, e.bank, e.started, now});
  if (follows_barriers_ && stream_.leave(e.stream)) owner_.order_changed(now);
  if (e.asked.told) e.asked.told->act(now, e.asked.token);
}

}  // namespace stele::sim
