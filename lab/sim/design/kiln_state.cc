// The state of Kiln's controllers for a checkpoint. A transaction is named by its slot.
//
// A transfer in use has one event or one request to memory that ends it, or waits for one
// transaction or one earlier version.
#include <sim/design/kiln.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace stele::sim {

namespace {

constexpr std::uint64_t without_transfer = 0xff'ffff'ffff'ffff;

template <class T>
bool contains(const T& all, const typename T::value_type& one) {
  return std::ranges::find(all, one) != all.end();
}

}  // namespace

void kiln_counts::visit_state(archive& a) {
  a(transactions, lines, arrived_before_end, queue_evictions, queue_waits, queue_aborts);
  a(unqueued_lines, tag_scans, superseded_kept, superseded_written, overflows, overflowed_lines);
  a(copied_again, overflowed_transactions, overflow_aborts, waits_for_older, max_pending);
  a(commit_latency);
}

void kiln::link(archive& a, transaction*& t) {
  std::size_t number = t == nullptr ? 0 : t->slot + 1;
  a.index(number, transactions_.size() + 1);
  if (a.reads()) t = number == 0 ? nullptr : &transactions_[number - 1];
}

void kiln::links(archive& a, std::vector<transaction*>& all) {
  a.list(all, [&](transaction*& t) {
    link(a, t);
    a.require(t != nullptr, "a transaction is missing");
  });
  if (a.reads() && !a.sound()) all.clear();
}

void kiln::transaction::visit_state(archive& a, unsigned threads, std::size_t frames) {
  a(id);
  a.index(thread, threads);
  a.choice(state, 4);
  a(in_order, sent, number, ended, arriving, tracked, tracked_lines, queue, oldest);
  a.require(oldest <= queue.size(), "a transaction's queue begins behind its end");
  a.list(lines, [&](pending_line& l) {
    a(l.line);
    a.index(l.at, frames);
  });
  a(queued, states_set, overflow, blocked_transfers);
  a.require(states_set <= lines.size(), "a transaction has fewer lines than are done");
}

void kiln::transactions_state(archive& a) {
  const auto threads = static_cast<unsigned>(open_by_thread_.size());
  a.list(transactions_, [&](transaction& t) { t.visit_state(a, threads, frame_states_.size()); });
  for (std::size_t i = 0; i < transactions_.size(); ++i) transactions_[i].slot = i;
  a.indexes(free_slots_, transactions_.size());
  a(next_id_, ended_, copies_made_, to_send_, unsent_, queued_, on_their_way_);
  for (auto* by : {&open_by_thread_, &uncleaned_by_thread_, &unsent_by_core_})
    for (auto& all : *by) links(a, all);
  a.fixed(tracked_lines_);
  for (requester*& r : waiting_for_commit_) a.link(r, true);
  for (auto& all : waiting_to_store_) a.list(all, [&](requester*& r) { a.link(r); });
  std::vector<transaction*> in_order(commit_queue_.begin(), commit_queue_.end());
  links(a, in_order);
  if (a.reads()) commit_queue_.assign(in_order.begin(), in_order.end());
}

void kiln::frames_state(archive& a) {
  a.sparse(
      frame_states_.size(), [&](std::size_t p) { return frame_states_[p].is_initial(); },
      [&](std::size_t p) {
        frame_state& c = frame_states_[p];
        std::uint32_t in_flight = c.writebacks_in_flight;
        bool newer = c.dirty != 0;
        a(c.value, in_flight, newer);
        link(a, c.tx);
        a.index_or(c.superseded, cache_array::none, frame_states_.size());
        const std::size_t ways = caches_.shared().ways();
        a.require(c.superseded == cache_array::none || c.superseded / ways == p / ways,
                  "a version is in another set than its line");
        c.writebacks_in_flight = in_flight & 0x7fff'ffff, c.dirty = newer;
      });
}

void kiln::transfers_state(archive& a) {
  a.list(transfers_, [&](transfer& t) {
    a.choice(t.what, 5);
    a(t.id, t.line, t.value);
    link(a, t.tx);
    a.index_or(t.at, cache_array::none, frame_states_.size());
  });
  a.indexes(free_transfers_, transfers_.size());
  a.sorted(version_writebacks_, [&](std::uint64_t, std::vector<std::size_t>& waiting) {
    a.indexes(waiting, transfers_.size());
  });
  a.sorted(copies_, [&](std::uint64_t, copy& c) {
    a(c.id, c.value, c.durable, c.committed);
    link(a, c.tx);
  });
}

void kiln::name_parts(archive& a) {
  const first_time is_first;
  a.name(static_cast<event_handler&>(*this), [this, is_first](std::uint64_t what) {
    return takes(what, true) && (what >> 56 != 0 || is_first(what));
  });
  a.name(static_cast<requester&>(*this), [this, is_first](std::uint64_t token) {
    return token == without_transfer || (takes(token, false) && is_first(token));
  });
}

// Events are: 0 an arrival, 1 and 2 of a transaction that commits, 3 and 4 of a line.
bool kiln::takes(std::uint64_t what, bool as_event) const {
  const std::uint64_t kind = what >> 56, slot = what & 0xff'ffff'ffff'ffff;
  if (kind > 2) return as_event && kind <= 4;
  if (kind > 0)
    return as_event && slot < transactions_.size() &&
           transactions_[slot].state == stage::flagging &&
           contains(commit_queue_, const_cast<transaction*>(&transactions_[slot]));
  return slot < transfers_.size() && !contains(free_transfers_, slot) &&
         as_event == (transfers_[slot].what == transfer::kind::to_cache);
}

void kiln::visit_state(archive& a) {
  transactions_state(a);
  frames_state(a);
  transfers_state(a);
  a(counts, pending_, fallback_pending_, futile_fallbacks_);
  if (!a.reads()) return;
  a.later([this, &a] {
    check_transactions(a);
    if (a.sound()) check_transfers(a);
  });
}

bool kiln::is_running(unsigned thread) const {
  const auto &open = open_by_thread_[thread], &uncleaned = uncleaned_by_thread_[thread];
  return !open.empty() && !uncleaned.empty() && open.back() == uncleaned.back() &&
         open.back()->state == stage::in_flight;
}

// Those that have ended are where send() and retire() will look for them.
void kiln::check_transactions(archive& a) const {
  a.require(unsent_ <= commit_queue_.size(), "more transactions are unsent than have ended");
  for (std::size_t i = 0; i < commit_queue_.size() && a.sound(); ++i) {
    transaction* const t = commit_queue_[i];
    const bool unsent = i + unsent_ >= commit_queue_.size();
    const bool ready = t->state == stage::ended || t->state == stage::flagging;
    a.require(ready && t->sent != unsent && std::ranges::count(commit_queue_, t) == 1 &&
                  !contains(free_slots_, t->slot) && contains(open_by_thread_[t->thread], t) &&
                  (!unsent || (contains(unsent_by_core_[t->thread % cores_], t) &&
                               contains(uncleaned_by_thread_[t->thread], t))),
              "a transaction that has ended is not where it commits");
  }
  for (unsigned thread = 0; thread < open_by_thread_.size(); ++thread) {
    const auto &open = open_by_thread_[thread], &uncleaned = uncleaned_by_thread_[thread];
    for (transaction* const t : open)
      a.require(t->thread == thread && std::ranges::count(open, t) == 1 &&
                    (t->state == stage::in_flight ? t == open.back() : contains(commit_queue_, t)),
                "an open transaction neither runs nor waits for its commit");
    for (transaction* const t : uncleaned)
      a.require(contains(open, t) && !t->sent && std::ranges::count(uncleaned, t) == 1,
                "a transaction that is over has lines in private caches");
  }
  for (unsigned core = 0; core < cores_; ++core)
    for (transaction* const t : unsent_by_core_[core])
      a.require(t->thread % cores_ == core && !t->sent && contains(commit_queue_, t) &&
                    std::ranges::count(unsent_by_core_[core], t) == 1,
                "a transaction that has not ended waits to be sent");
}

void kiln::check_transfers(archive& a) const {
  std::vector<bool> used(transfers_.size(), true), waits(transfers_.size());
  for (const std::size_t i : free_transfers_) used[i] = false;
  const auto wait = [&](std::size_t slot) {
    a.require(slot < used.size() && used[slot] && !waits[slot] &&
                  transfers_[slot].what == transfer::kind::to_cache,
              "a transfer that is over waits");
    if (a.sound()) waits[slot] = true;
  };
  const auto& shared = caches_.shared();
  for (const auto& [line, waiting] : version_writebacks_) {
    for (const std::size_t slot : waiting) wait(slot);
    a.require(waiting.empty() || shared.find(line) != cache_array::none,
              "a version is written for a line that has left");
  }
  for (std::size_t i = 0; i < transactions_.size(); ++i)
    if (!contains(free_slots_, i))
      for (const std::size_t slot : transactions_[i].blocked_transfers) wait(slot);
  std::unordered_map<frame, std::uint32_t> arriving;
  for (std::size_t i = 0; i < transfers_.size() && a.sound(); ++i) {
    const transfer& t = transfers_[i];
    if (!used[i]) continue;
    if (t.what == transfer::kind::to_cache) {
      a.require(t.at != cache_array::none && shared.holds_line(t.at, t.line),
                "a line arrives at a frame that it does not have");
      ++arriving[t.at];
    }
    const frame p = shared.find(t.line);
    if (t.what == transfer::kind::copy || t.what == transfer::kind::mapping)
      a.require(t.tx != nullptr && p != cache_array::none && frame_states_[p].tx != nullptr &&
                    copies_.contains(t.line),
                "a line that is copied has left");
  }
  for (frame p = 0; p < frame_states_.size() && a.sound(); ++p)
    if (frame_states_[p].writebacks_in_flight != 0 || !arriving.empty()) {
      const auto found = arriving.find(p);
      a.require(
          (found == arriving.end() ? 0 : found->second) == frame_states_[p].writebacks_in_flight,
          "a frame waits for other lines than are on their way");
    }
}

}  // namespace stele::sim
