// Walks along a recording from crash point to crash point. At each, it has what is durable and what
// else a crash may leave (explore/crash_model.h).
//
// Crash points lie before each event that makes a store durable (a fence after a flush or a
// non-temporal store, a clflush, an msync) and at the end of the program. Between two of them the
// possible states only grow, so that no state is missed.
//
// clflush is ordered with all stores, other flushes are not (Raad, Wickerson, Neiger, Vafeiadis,
// Persistency Semantics of the Intel-x86 Architecture, 2020): it makes its line durable at once.
#pragma once

#include <explore/crash_model.h>
#include <foreign/trace.h>

#include <set>
#include <unordered_map>

namespace stele::foreign {

class crash_walk {
 public:
  // The trace must have a pool and outlive the walk.
  explicit crash_walk(const trace& t);

  // Goes to the next crash point. False: there is none.
  bool next();

  // Whether the program ended here. Every recording has such a point.
  bool is_last() const noexcept { return at_point_ && left_.front().kind == foreign_end; }
  std::uint64_t point() const noexcept { return point_; }  // the first has the number 1
  // The event just after the crash, in words.
  std::string place() const;
  const std::string& output() const noexcept { return output_; }

  std::span<const std::uint32_t> pending() const noexcept { return model_.pending(); }
  std::uint64_t options(std::uint32_t line) const noexcept { return model_.options(line); }
  // Gives a pending line of the image that content. At each point all lines begin with option 0.
  void choose(std::uint32_t line, std::uint64_t option) { model_.put(image_, line, option); }
  const explore::hashed_image& image() const noexcept { return image_; }
  std::uint64_t image_size() const noexcept { return trace_.pool_size(); }

  struct outcome {
    std::uint64_t offset;
    unsigned size;
    unsigned site;
    bool kept;
  };
  // The pending stores of a line under an option, in program order; one entry a word.
  std::vector<outcome> outcomes(std::uint32_t line, std::uint64_t option) const;

 private:
  bool ends_point(const event& e) const;
  void apply(const event& e);
  void store(const event& e);
  void make_durable(std::span<const std::uint32_t> changed);

  const trace& trace_;
  std::span<const event> left_;
  explore::hashed_image durable_, image_;
  explore::crash_model model_;
  std::unordered_map<std::uint32_t, std::vector<const event*>> stores_;  // by line, while pending
  std::set<unsigned> flushed_;  // threads with a flush or a stream since their last fence
  std::string output_;
  std::uint64_t point_ = 0;
  bool at_point_ = false;
};

}  // namespace stele::foreign
