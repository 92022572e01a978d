// Judges an image: recovers it with the real recovery, opens it, compares it with the model, uses
// it further, audits its heap.
//
// A verdict depends on the bytes alone, so it is cached by hash twice: for the crash state, and for
// the image after recovery. Recovering a recovered image must not change a byte. Recovery runs for
// each image. The expensive rest of a verdict is shared by images that differ only in their logs,
// which are void after recovery, and by log-structured images whose words of home are equal,
// wherever they lie in the log.
#pragma once

#include <explore/hash_index.h>
#include <explore/subject.h>

#include <functional>
#include <string>
#include <vector>

namespace stele::explore {

struct verdict {
  std::string problem;  // empty: recovered, undamaged, usable
  std::uint64_t digest = 0;
  bool lost = false;       // recovery returned errc::lost; `problem` is its sentence
  bool fell_back = false;  // the pool reports that recovery went back to a checkpoint
};

// What is wrong with the recovered state, when `acknowledged` operations had been acknowledged and
// `invoked` operations invoked; empty: nothing.
std::string violation_of(const verdict& v, const run_history& t, std::uint64_t acknowledged,
                         std::uint64_t invoked);

// The verdicts of all levels of an exploration.
struct verdict_cache {
  hash_index states, recovered, contents;  // by hash; values are verdicts
  std::vector<verdict> verdicts;
};

class judge {
 public:
  struct judgement {
    std::uint32_t verdict;
    bool new_state = false;
    bool new_recovered = false;  // the image after recovery is new
    bool used = false;           // the recovered pool was opened, changed and audited
    // Recovery changed home; this member and those below are set for new states only.
    bool replayed = false;
    // Lines that checksums found stale; lines of them that recovery could not restore.
    std::uint64_t stale_lines = 0, lost_lines = 0;
  };

  // `work` holds the states to be judged; evaluate() restores it each time.
  judge(subject& s, hashed_image& work, verdict_cache& e);

  judgement evaluate(run_history& t);
  // For runs whose operations overlap: `lookup` returns the history that leads to a digest, or
  // null. It replaces the history given to evaluate().
  void set_history_lookup(std::function<run_history*(std::uint64_t digest)> lookup) {
    lookup_history_ = std::move(lookup);
  }
  // What is wrong with the recovered state of `work`; empty: nothing. `stale()` returns the lines
  // of `work` that are not as they were stored last.
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
  // How many of these lines of `work` were skipped, as the parity blocks that count say.
  std::uint64_t count_skipped(std::span<const std::uint32_t> lines) const;
  const verdict& verdict_of(const judgement& a) const { return verdict_cache_.verdicts[a.verdict]; }
  const verdict& verdict_of(std::uint32_t v) const { return verdict_cache_.verdicts[v]; }

 private:
  // Recovery gave up something in `work`. Empty when it was allowed to: among the `stale` lines,
  // which are not as they were stored last, the skipped ones leave a matrix that its checksums
  // cannot restore.
  std::string loss_violation(std::span<const std::uint32_t> stale) const;
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
  std::unique_ptr<detail::engine> recovered_by_;  // null: home is in place
  detail::media_choice media_;
  std::function<run_history*(std::uint64_t)> lookup_history_;
  std::vector<std::uint64_t> used_, reached_;  // audit()'s; members so that their memory is reused
};

}  // namespace stele::explore
