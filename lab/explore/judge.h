// What an image is worth: recovered by the real recovery, opened, compared with the model, used on,
// audited.
//
// A verdict depends on the bytes alone, so it is remembered by their hash, twice over: for the
// crash state, and for what recovery made of it. Recovering a recovered image must not change a
// byte. Images that differ in their logs only share the expensive part of the verdict (logs are
// void after recovery), log-structured ones those whose words of home are the same, wherever they
// are kept; the recovery itself is run for each.
#pragma once

#include <explore/hash_index.h>
#include <explore/subject.h>

#include <functional>
#include <string>
#include <vector>

namespace stele::explore {

struct verdict {
  std::string problem;  // empty: recovered, whole, usable
  std::uint64_t digest = 0;
  bool lost = false;       // recovery says so (errc::lost); `problem` is its sentence
  bool fell_back = false;  // the pool says that recovery went back to a checkpoint
};

// What is wrong with a state that was recovered so, when `acknowledged` operations had been
// acknowledged and `invoked` invoked; empty: nothing.
std::string violation_of(const verdict& v, const run_history& t, std::uint64_t acknowledged,
                         std::uint64_t invoked);

// What all levels of an exploration have learnt.
struct verdict_cache {
  hash_index states, recovered, contents;  // by hash; values are verdicts
  std::vector<verdict> verdicts;
};

class judge {
 public:
  struct judgement {
    std::uint32_t verdict;
    bool new_state = false;
    bool new_recovered = false;  // what recovery made of it had not been seen
    bool replayed =
        false;  // recovery changed home; this and what follows are told of new states only
    std::uint64_t stale_lines = 0, lost_lines = 0;  // that checksums told recovery of; of them,
                                                    // those that they could not restore
  };

  // `work` holds the states to be judged; it is as it was after each.
  judge(subject& s, hashed_image& work, verdict_cache& e);

  judgement evaluate(run_history& t);
  // Of runs whose operations overlap: the history that leads to a digest, or null. In place of
  // ask's.
  void set_history_lookup(std::function<run_history*(std::uint64_t digest)> lookup) {
    lookup_history_ = std::move(lookup);
  }
  // What is wrong with having recovered `work` so, when its lines `stale()` are not as they were
  // stored last; empty: nothing.
  template <class Stale>
  std::string violation_of(const verdict& v, const run_history& t, std::uint64_t acknowledged,
                           std::uint64_t invoked, Stale&& stale) const {
    if (v.lost)
      return subject_.run_plan().checkpoint_commits != 0
                 ? "recovery refuses, though there is a checkpoint"
                 : loss_violation(stale());
    std::string wrong = explore::violation_of(v, t, acknowledged, invoked);
    return wrong.empty() || !may_have_fallen_back(v, t, acknowledged, invoked)
               ? wrong
               : loss_violation(stale());
  }
  // How many of these lines of `work` were skipped by blocks that count.
  std::uint64_t count_skipped(std::span<const std::uint32_t> lines) const;
  const verdict& verdict_of(const judgement& a) const { return verdict_cache_.verdicts[a.verdict]; }
  const verdict& verdict_of(std::uint32_t v) const { return verdict_cache_.verdicts[v]; }

 private:
  // Recovery has given up something in `work`: may it, with these lines of the pool not as they
  // were stored last? Empty: those among them that were skipped leave a matrix which its checksums
  // cannot restore.
  std::string loss_violation(std::span<const std::uint32_t> stale) const;
  // each(lines of a covered matrix that are among these and were skipped)
  template <class Each>
  void for_each_skipped(std::span<const std::uint32_t> lines, Each&& each) const;
  bool may_have_fallen_back(const verdict& v, const run_history& t, std::uint64_t acknowledged,
                            std::uint64_t invoked) const;
  bool reports_fallback() const;
  std::uint32_t add_verdict(verdict v);
  std::uint32_t recover_and_judge(run_history& t, judgement& a);
  bool home_changed() const;
  std::uint64_t content_hash(const image_hash& s) const;
  [[nodiscard]] result<> recover();
  verdict exercise(run_history& t);
  [[nodiscard]] result<std::uint64_t> check_recovered(run_history& t);
  [[nodiscard]] result<> apply_further(run_history& t, std::uint64_t position);
  [[nodiscard]] result<> audit();

  subject& subject_;
  hashed_image& work_;
  verdict_cache& verdict_cache_;
  media::image_view view_;
  detail::pool_state recoverer_;
  detail::media_choice media_;
  std::function<run_history*(std::uint64_t)> lookup_history_;
  std::vector<std::uint64_t> used_, reached_;  // audit's, kept for their memory
};

}  // namespace stele::explore
