// One tape behind a memory controller: its writes and the content of each, which of them are
// persistent, and which operations they acknowledge.
//
// cached_run does the same for the cache model.
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
  // Goes back to the beginning.
  void rewind();
  void submitted(const sim::trace_step& s);
  void persisted(const sim::trace_step& s);
  // A random part of the log lines gets random bits in one or more words, as if their retention had
  // expired. put_logs_back() reverts it.
  void expire_logs(std::uint64_t seed);
  void put_logs_back();
  // Whether recovery refused `work`.
  bool refused(const judge::judgement& a) const {
    return image_judge.verdict_of(a).problem.starts_with("recovery fails");
  }
  // What is wrong with the state that recovery made of `work`, given the judgement; empty: nothing.
  std::string violation_of(const judge::judgement& a) const;
  // For people: which writes of the unfinished operations are persistent.
  std::string explanation() const;

  std::uint64_t writes_persisted = 0;

 private:
  struct line_write {
    std::uint64_t address, number;
    bool persistent;
  };
  struct progress {
    std::vector<line_write> writes;  // submitted
    std::uint64_t pending = 0;       // how many of `writes` are not persistent
    bool ended = false;
    bool acknowledged() const noexcept { return ended && pending == 0; }
  };
  [[nodiscard]] result<> tape_changed(subject& s) override;
  [[nodiscard]] result<> compute_overlaps(subject& s);
  void acknowledge();
  const char* part_of(std::uint64_t address) const noexcept;

  using line_content = std::array<std::uint64_t, 8>;
  media::tape_header header_{};
  std::vector<line_content> contents_;  // by number of the write
  std::vector<std::pair<std::uint64_t, line_content>> expired_;
  std::unique_ptr<consistent_cuts> allowed_;
  std::vector<progress> operations_;
  std::uint64_t acknowledged_ = 0, invoked_ = 0;
  // Acknowledged operations after the first unacknowledged one.
  std::vector<std::uint64_t> acknowledged_out_of_order_;
};

}  // namespace stele::explore
