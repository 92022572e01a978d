// The state of a memory for a checkpoint: requests, schedulers, channels.
//
// Queued requests are stored in the order of their arrival and queued again, so lists and indexes
// of lines are not stored. A request in service has one event, which ends it.
#include <sim/controller/controller.h>
#include <sim/controller/fr_fcfs.h>

#include <algorithm>
#include <memory>
#include <set>

namespace stele::sim {

// --- requests ---

void entry::visit_state(archive& a, unsigned banks) {
  a(req, number, arrived, started, row, activated, precharged, stream);
  a.index(bank, banks);
}

std::vector<entry_index> request_queue::list_of(entry_index head) const {
  std::vector<entry_index> all;
  for (entry_index i = head; i != no_entry; i = entries_[i].next) all.push_back(i);
  return all;
}

std::vector<bool> request_queue::not_queued() const {
  std::vector<bool> rest(entries_.size(), true);
  for (const entry_index head : {free_, all_[0].head, all_[1].head})
    for (const entry_index i : list_of(head)) rest[i] = false;
  return rest;
}

bool request_queue::has(access kind, unsigned bank, entry_index i) const {
  entry_index at = of(kind, bank).head;
  while (at != no_entry && at != i) at = entries_[at].next_in_bank;
  return at != no_entry;
}

void request_queue::visit_state(archive& a) {
  std::vector<entry_index> free = list_of(free_);
  std::array<std::vector<entry_index>, 2> queued = {list_of(all_[0].head), list_of(all_[1].head)};
  std::vector<bool> is_free(entries_.size());
  std::size_t size = entries_.size();
  // Each entry takes a byte at least, here or in the list of free ones.
  a.require((a(size), !a.reads() || size <= a.left()), "there are more requests than bytes");
  if (!a.sound()) return;
  if (a.reads()) entries_.assign(size, {}), is_free.resize(size);
  a.indexes(free, size);
  for (const entry_index i : free) is_free[i] = true;
  const auto banks = static_cast<unsigned>(banks_[0].size());
  for (std::size_t i = 0; i < size; ++i)
    if (!is_free[i]) entries_[i].visit_state(a, banks);
  for (std::size_t k = 0; k < 2; ++k) a.indexes(queued[k], size);
  if (!a.reads() || !a.sound()) return;
  for (auto i = free.rbegin(); i != free.rend(); ++i) release(*i);
  for (std::size_t k = 0; k < 2; ++k)
    for (const entry_index i : queued[k]) {
      a.require(!is_free[i] && index(entries_[i].req.kind) == k, "a free request is queued");
      if (!a.sound()) return;
      enqueue(i);
    }
}

// --- schedulers ---

template <unsigned Words>
void fr_fcfs<Words>::fr_fcfs_state(archive& a) {
  const std::size_t entries = channel_.queue.entries();
  a(next_at_age_limit_, draining_, has_candidate_, stale_, moves_data_, bypassed_);
  for (auto& of_kind : candidates_)
    a.fixed(of_kind, [&](candidate& c) {
      a(c.rank, c.ready);
      a.index_or(c.entry, no_entry, entries);
      a.choice(c.what, commands);
    });
  if (!a.reads()) return;
  for (unsigned k = 0; k < 2; ++k)
    has_candidate_[k].for_each([&](unsigned bank) {
      a.require(bank < channel_.open_row.size(),
                "a request is for a bank that the channel does not have");
      if (!a.sound() || stale_[k].has(bank)) return;
      a.require(channel_.queue.has(static_cast<access>(k), bank, candidates_[k][bank].entry),
                "a bank's next request is not queued");
    });
}

template void fr_fcfs<1>::fr_fcfs_state(archive& a);
template void fr_fcfs<max_banks / 64>::fr_fcfs_state(archive& a);

// --- channels ---

void channel::name_parts(archive& a) {
  // For each request in service: its event has not been met yet.
  const auto left = std::make_shared<std::optional<std::vector<bool>>>();
  a.name(*this, [this, left](std::uint64_t what) {
    if (what == wake_up) return true;
    if (!left->has_value()) *left = in_service();
    return what < (*left)->size() && (**left)[what] && ((**left)[what] = false, true);
  });
}

std::vector<bool> channel::in_service() const {
  std::vector<bool> served = state_.queue.not_queued();
  for (const entry_list& held : held_back_)
    for (const entry_index i : state_.queue.list_of(held.head)) served[i] = false;
  return served;
}

std::vector<epoch_position> channel::unfinished_writes() const {
  std::vector<epoch_position> found;
  const auto add = [&](entry_index i) {
    if (state_.queue[i].req.kind == access::write) found.push_back(state_.queue[i].stream);
  };
  const std::vector<bool> rest = state_.queue.not_queued();
  for (entry_index i = 0; i < rest.size(); ++i)
    if (rest[i]) add(i);
  for (const entry_index i : state_.queue.list_of(state_.queue.of(access::write).head)) add(i);
  return found;
}

void channel::requests_state(archive& a) {
  state_.queue.visit_state(a);
  std::vector<bool> free_to_hold = state_.queue.not_queued();
  for (unsigned k = 0; k < 2; ++k) {
    std::vector<entry_index> held = state_.queue.list_of(held_back_[k].head);
    a.indexes(held, state_.queue.entries());
    if (!a.reads()) continue;
    held_back_[k] = {};
    for (const entry_index i : held) {
      const bool fits = free_to_hold[i] && static_cast<unsigned>(state_.queue[i].req.kind) == k;
      a.require(fits, "a request that waits for the queue is free, or in it");
      if (!a.sound()) return;
      hold_back(i);
    }
  }
}

void channel::visit_state(archive& a) {
  requests_state(a);
  state_.timing.visit_state(a);
  a.fixed(state_.open_row);
  a(state_.blocked_by_refresh, state_.opened_for);
  scheduler_->visit_state(a);
  decision_.visit_state(a, state_.queue.entries());
  a(decision_stale_, wake_up_at_, outstanding_, arrivals_);
  a.fixed(activated_at_), a.fixed(bank_busy_until_);
  a.fixed(opener_, [&](entry_index& i) { a.index_or(i, no_entry, state_.queue.entries()); });
  a.fixed(row_written_at_), a.fixed(open_rows_), a.fixed(open_from_), a.fixed(open_until_);
  a(closed_less_opened_, statistics_, waiting_);
  a.fixed(refresh_due_);
  if (a.reads() && !refresh_due_.empty()) earliest_due_ = *std::ranges::min_element(refresh_due_);
  a.later([this, &a] { check_restored(a); });
}

void channel::check_restored(archive& a) const {
  for (unsigned k = 0; k < 2; ++k) {
    const std::size_t waiting = state_.queue.of(static_cast<access>(k)).size +
                                state_.queue.list_of(held_back_[k].head).size();
    a.require(waiting_[k].length() == waiting, "a queue is not as long as the requests in it");
  }
  // Refreshes of an awake channel are issued one by one; idle ones are skipped.
  constexpr picoseconds most_behind = 1024;
  for (const picoseconds due : refresh_due_)
    a.require(state_.queue.empty() || due + most_behind * refresh_interval_ >= events_.now(),
              "a rank is far behind with its refreshes");
  // A time of a memory is below a second, and rules add up few of them.
  constexpr picoseconds far = 4'000'000'000'000;
  const picoseconds until = events_.now() + far;
  for (unsigned bank = 0; bank < state_.timing.banks(); ++bank) {
    for (const command c : {command::activate, command::precharge, command::read, command::write})
      a.require(state_.timing.earliest(c, bank) <= until, "a bank is blocked for ever");
    a.require(state_.timing.earliest_refresh(bank_set::of(bank)) <= until,
              "a bank is blocked for ever");
  }
  a.require(decision_.at == never || decision_.at <= until, "the next command never comes");
  const std::vector<bool> rest = state_.queue.not_queued();
  const bool usable = decision_.entry == no_entry
                          ? decision_.at == never
                          : state_.queue.has(state_.queue[decision_.entry].req.kind,
                                             state_.queue[decision_.entry].bank, decision_.entry);
  a.require(decision_stale_ || usable, "the next command is for no queued request");
  const auto sound = [&](entry_index i) {
    const entry& e = state_.queue[i];
    const write_origin is =
        e.req.kind == access::write ? stream_.ranges().classify(e.req.address) : write_origin{};
    a.require(e.stream.origin.what == is.what && e.stream.origin.log == is.log,
              "a write is of another log than its address");
  };
  for (entry_index i = 0; i < rest.size(); ++i)
    if (rest[i]) sound(i);
  for (const access kind : {access::read, access::write})
    for (const entry_index i : state_.queue.list_of(state_.queue.of(kind).head)) sound(i);
}

// --- a link ---

void cxl_link::entry::visit_state(archive& a) {
  a(used);
  if (!used) return;
  a(barrier, answered, credited, submitted, arrived, req);
  a.choice(where, 3);
  a.require(!(answered && credited) && (!barrier || where != place::in_device),
            "a message is over and still on its way");
}

void cxl_link::name_parts(archive& a) {
  // Each part of a message ends once.
  a.name(*this, [this, is_first = first_time()](std::uint64_t what) {
    return takes(what) && is_first(what);
  });
}

bool cxl_link::takes(std::uint64_t what) const noexcept {
  if (what >> 2 >= entries_.size()) return false;
  const entry& e = entries_[what >> 2];
  if (!e.used || e.where == place::host) return false;
  switch (static_cast<event>(what & 3)) {
    case event::arrived:
      return e.where == place::to_device;
    case event::completed:
      return e.where == place::in_device && !e.credited;
    case event::answered:
      return e.where == place::in_device && !e.answered;
    case event::credited:
      return gpf_ && e.where == place::in_device && e.req.kind == access::write && !e.credited;
  }
  return false;
}

void cxl_link::visit_state(archive& a) {
  a.list(entries_, [&](entry& e) { e.visit_state(a); });
  a.indexes(free_, entries_.size()), a.indexes(waiting_, entries_.size());
  a(to_device_, to_host_, read_latency_, write_latency_, credit_wait_);
  if (!a.reads()) return;
  std::size_t used = 0, at_host = 0;
  for (const entry& e : entries_) {
    if (!e.used) continue;
    ++used, at_host += e.where == place::host;
    if (e.barrier) continue;
    ++outstanding_;
    if (e.where == place::host || e.credited) continue;
    a.require(credits_ != 0, "a device has more requests than its queue has entries");
    if (a.sound()) --credits_;
  }
  for (const std::size_t i : free_) a.require(!entries_[i].used, "a message in use is free");
  for (const std::size_t i : waiting_)
    a.require(entries_[i].used && entries_[i].where == place::host,
              "a message that has left waits for a credit");
  a.require(used + free_.size() == entries_.size() && at_host == waiting_.size(),
            "a message is neither free nor in use");
}

// --- a memory ---

void memory_system::name_parts(archive& a) {
  for (const auto& c : channels_) c->name_parts(a);
  if (link_) link_->name_parts(a);
}

void memory_system::visit_state(archive& a) {
  a(stream_);
  for (const auto& c : channels_) c->visit_state(a);
  if (link_) link_->visit_state(a);
  a.fixed(log_lines_);
  a(wear_);
  a.sorted(line_writes_, [&](std::uint64_t, std::uint64_t& writes) { a(writes); });
  if (!a.reads() || !(*find_scheduler(config_.scheduler))->follows_barriers) return;
  std::vector<epoch_position> unfinished;
  for (const auto& c : channels_)
    for (const epoch_position& p : c->unfinished_writes()) unfinished.push_back(p);
  stream_.check_restored(a, unfinished);
  std::set<std::pair<unsigned, std::uint64_t>> commits;
  for (const epoch_position& p : unfinished)
    a.require(p.origin.what != write_class::commit_record ||
                  commits.emplace(p.origin.log, p.commits_before).second,
              "two writes to a commit record have one place");
}

}  // namespace stele::sim
