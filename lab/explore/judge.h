// What an image is worth: recovered by the real recovery, opened, compared with the model, used on, audited.
//
// A verdict depends on the bytes alone, so it is remembered by their hash, twice over: for the crash state, and for what
// recovery made of it. Recovering a recovered image must not change a byte. Images that differ in their logs only
// share the expensive part of the verdict (logs are void after recovery), log-structured ones those whose words of home are the same,
// wherever they are kept; the recovery itself is run for each.
#pragma once

#include <explore/known.h>
#include <explore/subject.h>

#include <functional>
#include <string>
#include <vector>

namespace stele::explore {

struct verdict {
  std::string problem;  // empty: recovered, whole, usable
  std::uint64_t digest = 0;
  bool lost = false;    // recovery says so (errc::lost); `problem` is its sentence
  bool fell_back = false;  // the pool says that recovery went back to a checkpoint
};

// What is wrong with a state that was recovered so, when `floor` operations had been acknowledged and `ceiling` invoked;
// empty: nothing.
std::string complaint(const verdict& v, const timeline& t, std::uint64_t floor, std::uint64_t ceiling);

// What all levels of an exploration have learnt.
struct experience {
  known states, recovered, contents;  // by hash; values are verdicts
  std::vector<verdict> verdicts;
};

class judge {
 public:
  struct answer {
    std::uint32_t verdict;
    bool new_state = false;
    bool new_recovered = false;  // what recovery made of it had not been seen
    bool replayed = false;       // recovery changed home; this and what follows are told of new states only
    std::uint64_t stale_lines = 0, lost_lines = 0;  // that checksums told recovery of; of them, those that they could not restore
  };

  // `work` holds the states to be judged; it is as it was after each.
  judge(subject& s, hashed_image& work, experience& e);

  answer ask(timeline& t);
  // Of runs whose operations overlap: the history that leads to a digest, or null. In place of ask's.
  void look_up(std::function<timeline*(std::uint64_t digest)> history_of) { history_of_ = std::move(history_of); }
  // What is wrong with having recovered `work` so, when its lines `stale()` are not as they were stored last; empty: nothing.
  template <class Stale>
  std::string complaint(const verdict& v, const timeline& t, std::uint64_t floor, std::uint64_t ceiling, Stale&& stale) const {
    if (v.lost) return subject_.named_by().checkpoint_commits != 0 ? "recovery refuses, though there is a checkpoint" : complaint_of_loss(stale());
    std::string wrong = explore::complaint(v, t, floor, ceiling);
    return wrong.empty() || !may_have_gone_back(v, t, floor, ceiling) ? wrong : complaint_of_loss(stale());
  }
  // How many of these lines of `work` were skipped by blocks that count.
  std::uint64_t skipped_among(std::span<const std::uint32_t> lines) const;
  const verdict& of(const answer& a) const { return experience_.verdicts[a.verdict]; }
  const verdict& of(std::uint32_t v) const { return experience_.verdicts[v]; }

 private:
  // Recovery has given up something in `work`: may it, with these lines of the pool not as they were stored last? Empty: those among them
  // that were skipped leave a matrix which its checksums cannot restore.
  std::string complaint_of_loss(std::span<const std::uint32_t> stale) const;
  // each(lines of a covered matrix that are among these and were skipped)
  template <class Each>
  void for_each_skipped(std::span<const std::uint32_t> lines, Each&& each) const;
  bool may_have_gone_back(const verdict& v, const timeline& t, std::uint64_t floor, std::uint64_t ceiling) const;
  bool says_that_it_fell_back() const;
  std::uint32_t remember(verdict v);
  std::uint32_t recover_and_judge(timeline& t, answer& a);
  bool home_changed() const;
  std::uint64_t content(const signature& s) const;
  [[nodiscard]] result<> recover();
  verdict use(timeline& t);
  [[nodiscard]] result<std::uint64_t> try_out(timeline& t);
  [[nodiscard]] result<> go_on(timeline& t, std::uint64_t position);
  [[nodiscard]] result<> audit();

  subject& subject_;
  hashed_image& work_;
  experience& experience_;
  media::image_view view_;
  detail::pool_state recoverer_;
  detail::media_choice media_;
  std::function<timeline*(std::uint64_t)> history_of_;
  std::vector<std::uint64_t> used_, reached_;  // audit's, kept for their memory
};

}  // namespace stele::explore
