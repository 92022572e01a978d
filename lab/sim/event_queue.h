// What is to happen, in the order of time; what is to happen at one time, in the order in which it was asked for.
//
// That order makes a run a function of its inputs. Time that nobody has asked for costs nothing. An event that happens leaves
// its place at the heap's top open: mostly it asks for another, which then sinks from there, once for both.
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
  picoseconds next() const noexcept {
    if (!open_) return heap_.empty() ? never : heap_.front().when;
    if (!rest_known_) find_rest();
    return rest_;
  }
  bool empty() const noexcept { return heap_.size() == (open_ ? 1 : 0); }

  // `when` is not before now.
  void at(picoseconds when, actor& who, std::uint64_t what = 0) {
    const event e{when, ++asked_, &who, what};
    if (open_) {
      open_ = false;
      return sink(e);
    }
    heap_.push_back(e);
    rise(heap_.size() - 1, e);
  }

  // Lets the earliest event happen. Not when empty.
  void step() {
    if (open_) close();
    const event e = heap_.front();
    open_ = true;
    rest_known_ = false;
    now_ = e.when;
    e.who->act(e.when, e.what);
  }

 private:
  static constexpr std::size_t fan = 4;  // children of a node: a shallow heap, whose siblings lie side by side

  struct event {
    picoseconds when;
    std::uint64_t number;
    actor* who;
    std::uint64_t what;
    bool before(const event& e) const noexcept { return when != e.when ? when < e.when : number < e.number; }
  };

  void find_rest() const noexcept {
    rest_known_ = true;
    rest_ = never;
    for (std::size_t child = 1; child < std::min(1 + fan, heap_.size()); ++child) rest_ = std::min(rest_, heap_[child].when);
  }

  void close() noexcept {
    open_ = false;
    const event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }

  // Puts `e` at `hole` or above.
  void rise(std::size_t hole, const event& e) noexcept {
    for (; hole > 0 && e.before(heap_[(hole - 1) / fan]); hole = (hole - 1) / fan) heap_[hole] = heap_[(hole - 1) / fan];
    heap_[hole] = e;
  }

  // Puts `e` at the top or below.
  void sink(const event& e) noexcept {
    std::size_t hole = 0;
    for (std::size_t child = 1; child < heap_.size(); child = hole * fan + 1) {
      const std::size_t end = std::min(child + fan, heap_.size());
      for (std::size_t other = child + 1; other < end; ++other)
        if (heap_[other].before(heap_[child])) child = other;
      if (!heap_[child].before(e)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = e;
  }

  std::vector<event> heap_;
  bool open_ = false;  // what is at the top has happened
  mutable bool rest_known_ = false;
  mutable picoseconds rest_ = never;  // while open: the earliest of the others
  std::uint64_t asked_ = 0;
  picoseconds now_ = 0;
};

}  // namespace stele::sim
