// What is to happen, in the order of time; what is to happen at one time, in the order in which it
// was asked for.
//
// That order makes a run a function of its inputs. Time that nobody has asked for costs nothing. An
// event that happens leaves its place at the heap's top open: mostly it asks for another, which
// then sinks from there, once for both.
#pragma once

#include <base/check.h>
#include <sim/time.h>

#include <algorithm>
#include <vector>

namespace stele::sim {

class event_handler {
 public:
  // What was asked for is due; `what` is what the event_handler gave with it.
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

  // `when` is not before now.
  void schedule(picoseconds when, event_handler& handler, std::uint64_t what = 0) {
    const event e{when, ++sequence_, &handler, what};
    if (top_vacant_) {
      top_vacant_ = false;
      return sift_down(e);
    }
    heap_.push_back(e);
    sift_up(heap_.size() - 1, e);
  }

  // Lets the earliest event happen. Not when empty.
  void step() {
    if (top_vacant_) remove_top();
    const event e = heap_.front();
    top_vacant_ = true;
    second_known_ = false;
    now_ = e.when;
    e.handler->handle(e.when, e.what);
  }

 private:
  static constexpr std::size_t arity =
      4;  // children of a node: a shallow heap, whose siblings lie side by side

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
  bool top_vacant_ = false;  // what is at the top has happened
  mutable bool second_known_ = false;
  mutable picoseconds second_ = never;  // while open: the earliest of the others
  std::uint64_t sequence_ = 0;
  picoseconds now_ = 0;
};

}  // namespace stele::sim
