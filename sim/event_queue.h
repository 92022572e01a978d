// What is to happen, in the order of time; what is to happen at one time, in the order in which it was asked for.
//
// That order makes a run a function of its inputs. Time that nobody has asked for costs nothing.
#pragma once

#include <base/check.h>
#include <sim/time.h>

#include <algorithm>
#include <vector>

namespace stele::sim {

class actor {
 public:
  // What was asked for is due; `what` is what the actor gave with it.
  virtual void act(picoseconds now, std::uint64_t what) = 0;

 protected:
  ~actor() = default;
};

class event_queue {
 public:
  picoseconds now() const noexcept { return now_; }
  // The time of the earliest event; `never` when there is none.
  picoseconds next() const noexcept { return heap_.empty() ? never : heap_.front().when; }
  bool empty() const noexcept { return heap_.empty(); }

  // `when` is not before now.
  void at(picoseconds when, actor& who, std::uint64_t what = 0) {
    heap_.push_back({when, ++asked_, &who, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  // Lets the earliest event happen. Not when empty.
  void step() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const event e = heap_.back();
    heap_.pop_back();
    now_ = e.when;
    e.who->act(e.when, e.what);
  }

 private:
  struct event {
    picoseconds when;
    std::uint64_t number;
    actor* who;
    std::uint64_t what;
  };
  static bool later(const event& a, const event& b) noexcept { return a.when != b.when ? a.when > b.when : a.number > b.number; }

  std::vector<event> heap_;
  std::uint64_t asked_ = 0;
  picoseconds now_ = 0;
};

}  // namespace stele::sim
