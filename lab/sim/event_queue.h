// The events of a simulation, ordered by time. Events of equal time are ordered by the order in
// which they were scheduled.
//
// This order makes a run a function of its inputs. Idle time costs nothing. Near events are in a
// wheel of slots of a nanosecond, each a short list in order (Varghese and Lauck, "Hashed and
// hierarchical timing wheels", 1987, scheme 5); events beyond the wheel are in a heap and stay
// there until they are due.
#pragma once

#include <base/check.h>
#include <sim/archive.h>
#include <sim/time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

namespace stele::sim {

class event_handler {
 public:
  // The scheduled time has come; `what` is the value that was given to schedule().
  virtual void handle(picoseconds now, std::uint64_t what) = 0;

 protected:
  ~event_handler() = default;
};

class event_queue {
 public:
  event_queue() = default;
  event_queue(const event_queue&) = delete;
  event_queue& operator=(const event_queue&) = delete;

  picoseconds now() const noexcept { return now_; }
  // The time of the earliest event; `never` when there is none.
  picoseconds next() const noexcept { return std::min(next_near_, next_far_); }
  bool empty() const noexcept { return next_near_ == never && far_.empty(); }

  // Precondition: `when` is not before now.
  void schedule(picoseconds when, event_handler& handler, std::uint64_t what = 0) {
    add(when, ++sequence_, &handler, what);
  }

  // For a handler that would schedule an event of its own for `when` and return: when no other
  // event comes before or at that time, it is `when` now, and the handler goes on as that event's
  // would. Saves the event.
  bool go_on_to(picoseconds when) noexcept {
    if (when > last_ || when >= next()) return false;
    now_ = when;
    return true;
  }

  // Handles the earliest event. Its handler may go on by itself, to `until` at the latest.
  // Precondition: not empty.
  void step(picoseconds until = 0) {
    last_ = until;
    const event e = is_near_first() ? take_near() : take_far();
    now_ = e.when;
    e.handler->handle(e.when, e.what);
  }

  // The events that are left, in the order in which they will be handled.
  void visit_state(archive& a) {
    std::vector<event> left = far_;
    for (const slot& s : slots_)
      for (const node* n = s.first; n != nullptr; n = n->next) left.push_back(n->e);
    std::ranges::sort(left, [](const event& x, const event& y) { return later{}(y, x); });
    a(now_, sequence_);
    picoseconds when = now_;
    std::uint64_t number = 0;
    a.list(left, [&](event& e) {
      a(e.when, e.number), a.link(e.handler, e.what, false);
      a.require(e.when > when || (e.when == when && e.number > number), "an event is out of order");
      a.require(e.number <= sequence_, "an event comes from the future");
      when = e.when, number = e.number;
    });
    if (!a.reads()) return;
    while (!empty()) is_near_first() ? take_near() : take_far();
    for (const event& e : left) add(e.when, e.number, e.handler, e.what);
  }

 private:
  static constexpr unsigned slot_shift = 10;  // a slot is 1,024 ps
  static constexpr std::size_t slots = 512, words = slots / 64;

  struct event {
    picoseconds when;
    std::uint64_t number;
    event_handler* handler;
    std::uint64_t what;
  };
  struct node {
    event e;
    node* next;
  };
  struct slot {
    node *first = nullptr, *last = nullptr;  // in order; last is of a slot that is not empty
  };
  // Of a heap whose top is the earliest event.
  struct later {
    bool operator()(const event& a, const event& b) const noexcept {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };

  static std::uint64_t slot_number(picoseconds when) noexcept { return when >> slot_shift; }

  bool is_near_first() const noexcept {
    if (next_near_ != next_far_) [[likely]]
      return next_near_ < next_far_;
    return slots_[slot_number(next_near_) % slots].first->e.number < far_.front().number;
  }

  // Writes members one by one: the host would wait, to copy an event, for all stores before it.
  [[gnu::always_inline]] void add(picoseconds when, std::uint64_t number, event_handler* handler,
                                  std::uint64_t what) {
    // An event of a time that has passed is as far as one of the far future.
    if (slot_number(when) - slot_number(now_) >= slots) [[unlikely]]
      return add_far({when, number, handler, what});
    if (free_ == nullptr) [[unlikely]]
      add_nodes();
    node* const n = std::exchange(free_, free_->next);
    n->e.when = when, n->e.number = number, n->e.handler = handler, n->e.what = what;
    add_near(n, when);
  }

  void add_near(node* n, picoseconds when) noexcept {
    const std::size_t number = slot_number(when) % slots;
    slot& s = slots_[number];
    next_near_ = std::min(next_near_, when);
    n->next = nullptr;
    if (s.first == nullptr) {
      occupied_[number / 64] |= std::uint64_t{1} << number % 64;
      occupied_words_ |= 1U << number / 64;
      s.first = s.last = n;
    } else if (s.last->e.when <= when) {  // behind all events of this time and of earlier ones
      s.last = s.last->next = n;
    } else {
      node** link = &s.first;
      while ((*link)->e.when <= when) link = &(*link)->next;
      n->next = std::exchange(*link, n);
    }
  }

  event take_near() noexcept {
    const std::size_t number = slot_number(next_near_) % slots;
    slot& s = slots_[number];
    node* const n = s.first;
    s.first = n->next;
    if (s.first != nullptr) {
      next_near_ = s.first->e.when;
    } else {
      occupied_[number / 64] &= ~(std::uint64_t{1} << number % 64);
      next_near_ = first_from(number);
    }
    n->next = std::exchange(free_, n);
    return n->e;
  }

  // The time of the earliest near event; none is in a slot of this turn before `number`.
  picoseconds first_from(std::size_t number) noexcept {
    std::size_t word = number / 64;
    std::uint64_t left = occupied_[word] & ~std::uint64_t{0} << number % 64;
    if (left == 0) {
      if (occupied_[word] == 0) occupied_words_ &= ~(1U << word);
      if (occupied_words_ == 0) return never;
      // This word comes again at the end, for the slots before `number`.
      const unsigned turns = occupied_words_ | occupied_words_ << words;
      word = (word + 1 + static_cast<std::size_t>(std::countr_zero(turns >> (word + 1)))) % words;
      left = occupied_[word];
    }
    return slots_[word * 64 + static_cast<std::size_t>(std::countr_zero(left))].first->e.when;
  }

  [[gnu::noinline]] void add_nodes() {
    std::vector<node>& more = nodes_.emplace_back(256);
    for (node& n : more) n.next = std::exchange(free_, &n);
  }

  [[gnu::noinline]] void add_far(event e) {
    far_.push_back(e);
    std::ranges::push_heap(far_, later{});
    next_far_ = far_.front().when;
  }

  [[gnu::noinline]] event take_far() noexcept {
    std::ranges::pop_heap(far_, later{});
    const event e = far_.back();
    far_.pop_back();
    next_far_ = far_.empty() ? never : far_.front().when;
    return e;
  }

  picoseconds now_ = 0;
  picoseconds next_near_ = never, next_far_ = never;
  picoseconds last_ = 0;  // that a handler may go on to
  std::uint64_t sequence_ = 0;
  node* free_ = nullptr;
  std::array<std::uint64_t, words> occupied_{};  // the slots with events, as bits
  unsigned occupied_words_ = 0;                  // those words that are not 0
  // The events of the times from now's slot on, by the slot number modulo `slots`.
  std::array<slot, slots> slots_;
  std::vector<event> far_;
  std::vector<std::vector<node>> nodes_;
};

}  // namespace stele::sim
