// One tape behind a memory controller: its writes with what each puts into memory, what is
// persistent so far, and what of the run that acknowledges.
//
// As cached_run is for the cache model.
#pragma once

#include <explore/consistent_cuts.h>
#include <explore/recorded_run.h>
#include <sim/feed/write_trace.h>

#include <memory>
#include <string>
#include <vector>

namespace stele::explore {

class controlled_run final : public recorded_run {
 public:
  controlled_run(subject& s, verdict_cache& e) : recorded_run(s, e) {}

  sim::write_trace trace() const;
  const media::tape_header& header() const noexcept { return header_; }
  // Back to the beginning.
  void rewind();
  void submitted(const sim::trace_step& s);
  void persisted(const sim::trace_step& s);
  // Some or many lines of the logs hold anything in one or more of their words, until they are put
  // back.
  void expire_logs(std::uint64_t seed);
  void put_logs_back();
  // Has recovery refused `work`?
  bool refused(const judge::judgement& a) const {
    return image_judge.verdict_of(a).problem.starts_with("recovery fails");
  }
  // What is wrong with what recovery makes of `work`, having answered so; empty: nothing.
  std::string violation_of(const judge::judgement& a) const;
  // What is persistent of the operations under way, for people.
  std::string explanation() const;

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
  [[nodiscard]] result<> tape_changed(subject& s) override;
  [[nodiscard]] result<> compute_overlaps(subject& s);
  void acknowledge();
  const char* part_of(std::uint64_t address) const noexcept;

  using line_content = std::array<std::uint64_t, 8>;
  media::tape_header header_{};
  std::vector<line_content> contents_;  // by the write's number
  std::vector<std::pair<std::uint64_t, line_content>> expired_;
  std::unique_ptr<consistent_cuts> allowed_;
  std::vector<progress> operations_;
  std::uint64_t acknowledged_ = 0, invoked_ = 0;
  std::vector<std::uint64_t>
      acknowledged_out_of_order_;  // acknowledged ones after the first that is not
};

}  // namespace stele::explore
