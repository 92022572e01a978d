// The events of a simulation, ordered by time. Events of equal time are ordered by the order in
// which they were scheduled.
//
// This order makes a run a function of its inputs. Idle time costs nothing. step() leaves the top
// of the heap vacant while the handler runs: most handlers schedule another event, which sinks from
// the top, so that removal and insertion cost one pass.
#pragma once

#include <base/check.h>
#include <sim/time.h>

#include <algorithm>
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
  picoseconds now() const noexcept { return now_; }
  // The time of the earliest event; `never` when there is none.
  picoseconds next() const noexcept {
    if (!top_vacant_) return heap_.empty() ? never : heap_.front().when;
    if (!second_known_) find_second();
    return second_;
  }
  bool empty() const noexcept { return heap_.size() == (top_vacant_ ? 1 : 0); }

  // Precondition: `when` is not before now.
  void schedule(picoseconds when, event_handler& handler, std::uint64_t what = 0) {
    const event e{when, ++sequence_, &handler, what};
    if (top_vacant_) {
      top_vacant_ = false;
      return sift_down(e);
    }
    heap_.push_back(e);
    sift_up(heap_.size() - 1, e);
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
    if (top_vacant_) remove_top();
    last_ = until;
    const event e = heap_.front();
    top_vacant_ = true;
    second_known_ = false;
    now_ = e.when;
    e.handler->handle(e.when, e.what);
  }

 private:
  static constexpr std::size_t arity =
      4;  // children of a node: the heap is shallow, and siblings lie side by side

  struct event {
    picoseconds when;
    std::uint64_t number;
    event_handler* handler;
    std::uint64_t what;
    bool before(const event& e) const noexcept {
      return when != e.when ? when < e.when : number < e.number;
    }
  };

  void find_second() const noexcept {
    second_known_ = true;
    second_ = never;
    for (std::size_t child = 1; child < std::min(1 + arity, heap_.size()); ++child)
      second_ = std::min(second_, heap_[child].when);
  }

  void remove_top() noexcept {
    top_vacant_ = false;
    const event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
  }

  // Puts `e` at `hole` or above.
  void sift_up(std::size_t hole, const event& e) noexcept {
    for (; hole > 0 && e.before(heap_[(hole - 1) / arity]); hole = (hole - 1) / arity)
      heap_[hole] = heap_[(hole - 1) / arity];
    heap_[hole] = e;
  }

  // Puts `e` at the top or below.
  void sift_down(const event& e) noexcept {
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = hole * arity + 1) {
      const std::size_t end = std::min(child + arity, heap_.size());
      for (std::size_t other = child + 1; other < end; ++other)
        if (heap_[other].before(heap_[child])) child = other;
      if (!heap_[child].before(e)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = e;
  }

  std::vector<event> heap_;
  bool top_vacant_ = false;  // the event at the top has been handled
  mutable bool second_known_ = false;
  mutable picoseconds second_ = never;  // while the top is vacant: the earliest time of the others
  std::uint64_t sequence_ = 0;
  picoseconds now_ = 0;
  picoseconds last_ = 0;  // that a handler may go on to
};

}  // namespace stele::sim
