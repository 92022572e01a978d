// The state of hardware threads and of their isolation for a checkpoint. A thread's events come
// from the feed again.
#include <sim/core/thread.h>

#include <algorithm>

namespace stele::sim {

namespace {

// The bytes of stores are for observers of contents, and such runs have no checkpoints.
void event_of_attempt(archive& a, tape_item& item, const feed& tape) {
  a(item.record.op, item.record.tag, item.record.thread, item.record.length, item.record.address);
  a.require(tape.may_have(item.record), "an event of an attempt is not of the tape");
}

}  // namespace

void hardware_thread::window::visit_state(archive& a) {
  a(first, next, joined);
  a.require(next - first <= ring.size() && joined <= next - first,
            "a window has too many accesses");
  for (std::uint64_t n = first; a.sound() && n != next; ++n) a(at(n));
}

void hardware_thread::name_parts(archive& a) {
  a.name(static_cast<event_handler&>(*this), [](std::uint64_t what) { return what == 0; });
  constexpr std::uint64_t tokens = 3;
  a.name(static_cast<requester&>(*this), [](std::uint64_t token) { return token >> 56 < tokens; });
}

void hardware_thread::visit_state(archive& a) {
  a(counts, outran_time_, time_, instruction_, loads_, stores_, persists_, persisted_);
  a(pointer_first_, pointer_next_, pointer_hit_, dependent_);
  a.require(pointer_next_ <= loads_.next, "a thread waits for loads that it has not issued");
  a(asleep_, blocked_, aborted_, finished_, translated_);
  a.require(tlb_ != nullptr || !translated_, "a machine without translation has translated");

  if (a.reads()) items_ = environment_.tape.current(number_);
  a(item_, attempt_begin_, lines_done_);
  a.require(attempt_begin_ <= item_ && item_ <= items_.size(),
            "a thread is beyond its part of the tape");
  a.choice(phase_, 4);
  a(plan_requested_, store_deferred_, plan_, next_action_);
  a.require(next_action_ <= plan_.size(), "a thread is beyond its plan");
  a(ended_at_);

  a.list(attempt_events_, [&](tape_item& item) { event_of_attempt(a, item, environment_.tape); });
  a(replayed_, replaying_, unfenced_);
  const bool may_replay = may_abort_ && (aborted_ || phase_ == phase::inside);
  a.require((may_abort_ || !aborted_) &&
                (!may_replay || attempt_events_.size() + (item_ - attempt_begin_) != 0),
            "an attempt has no events");
  a.require(!replaying_ || replayed_ < attempt_events_.size(), "a thread is beyond its attempt");
}

// --- translation ---

void tlb::walk::visit_state(archive& a, unsigned threads, unsigned walk_levels,
                            std::uint64_t pages) {
  a(used);
  if (!used) return;
  a(begun, refused);
  a.index(level, walk_levels), a.index(page, pages);
  a.list(waiting, [&](auto& who) {
    a.index(who.first, threads);
    a.link(who.second);
  });
  a.require(!waiting.empty(), "a walk of page tables is for no thread");
}

void tlb::name_parts(archive& a) {
  // A walk has one event or one load in progress, unless its load was refused.
  const auto takes = [this, is_first = first_time()](std::uint64_t slot) {
    return slot < walks_.size() && walks_[slot].used && !walks_[slot].refused && is_first(slot);
  };
  a.name(static_cast<event_handler&>(*this),
         [takes](std::uint64_t what) { return takes(what & ~loaded); });
  a.name(static_cast<requester&>(*this), takes);
}

void tlb::visit_state(archive& a, unsigned threads) {
  first_.visit_state(a), second_.visit_state(a);
  const std::uint64_t pages = page_tables_at / line_bytes >> page_shift_;
  a.list(walks_, [&](walk& w) { w.visit_state(a, threads, levels_, pages); });
  a.list(granted_, [&](std::uint64_t& page) { a(page); }, threads);
  if (a.reads())
    grants_ = static_cast<unsigned>(granted_.size()) -
              static_cast<unsigned>(std::ranges::count(granted_, 0u));
  a(counts);
}

void isolation_control::visit_state(archive& a) {
  const std::size_t count = threads_.size();
  for (auto& t : threads_) a(t.lines, t.speculative, t.aborts);
  a.indexes(waiting_, count), a.indexes(waiting_to_begin_, count);
  auto owner = static_cast<unsigned>(owner_);
  a.index_or(owner, ~0u, count);
  owner_ = static_cast<int>(owner);
  a(counts);
}

}  // namespace stele::sim
