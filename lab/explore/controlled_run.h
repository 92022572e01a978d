// One tape behind a memory controller: its writes with what each puts into memory, what is persistent so far, and what of
// the run that acknowledges.
//
// As cached_run is for the cache model.
#pragma once

#include <explore/downsets.h>
#include <explore/recorded_run.h>
#include <sim/feed/write_trace.h>

#include <memory>
#include <string>
#include <vector>

namespace stele::explore {

class controlled_run final : public recorded_run {
 public:
  controlled_run(subject& s, experience& e) : recorded_run(s, e) {}

  sim::write_trace trace() const;
  const media::tape_header& header() const noexcept { return header_; }
  // Back to the beginning.
  void rewind();
  void submitted(const sim::trace_step& s);
  void persisted(const sim::trace_step& s);
  // Some or many lines of the logs hold anything in one or more of their words, until they are put back.
  void expire_logs(std::uint64_t seed);
  void put_logs_back();
  // Has recovery refused `work`?
  bool refused(const judge::answer& a) const { return judging.of(a).problem.starts_with("recovery fails"); }
  // What is wrong with what recovery makes of `work`, having answered so; empty: nothing.
  std::string complaint(const judge::answer& a) const;
  // What is persistent of the operations under way, for people.
  std::string story() const;

  std::uint64_t writes_persisted = 0;

 private:
  struct line_write {
    std::uint64_t address, number;
    bool persistent;
  };
  struct progress {
    std::vector<line_write> writes;  // submitted
    std::uint64_t pending = 0;       // of these, not persistent
    bool ended = false;
    bool acknowledged() const noexcept { return ended && pending == 0; }
  };
  [[nodiscard]] result<> taken(subject& s) override;
  [[nodiscard]] result<> know_overlaps(subject& s);
  void acknowledge();
  const char* part_of(std::uint64_t address) const noexcept;

  using line_content = std::array<std::uint64_t, 8>;
  media::tape_header header_{};
  std::vector<line_content> contents_;  // by the write's number
  std::vector<std::pair<std::uint64_t, line_content>> expired_;
  std::unique_ptr<downsets> allowed_;
  std::vector<progress> operations_;
  std::uint64_t acknowledged_ = 0, invoked_ = 0;
  std::vector<std::uint64_t> beyond_;   // acknowledged ones after the first that is not
};

}  // namespace stele::explore
