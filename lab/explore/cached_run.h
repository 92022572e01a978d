// One tape behind a cache: it can be played from its beginning to any of its events, for a crash
// there.
//
// explored_tape does the same for the crash model. A crash puts into `work` the in-flight writes
// that arrived.
#pragma once

#include <explore/cache_model.h>
#include <explore/recorded_run.h>

#include <string>
#include <vector>

namespace stele::explore {

class cached_run final : public recorded_run {
 public:
  cached_run(subject& s, verdict_cache& e) : recorded_run(s, e) {}

  // Goes back to the beginning, with an empty cache.
  void rewind(cache_model& cache, std::uint64_t seed);
  // Passes one event to the cache.
  void play(cache_model& cache, const media::tape_event& e);
  // What is wrong with the state that recovery made of `work`, given the judgement; empty: nothing.
  std::string violation_of(const cache_model& cache, const judge::judgement& a) const;
  // How many skipped lines are not in `work` as they were stored last.
  std::uint64_t skipped_and_stale(const cache_model& cache) const {
    return image_judge.count_skipped(stale(cache));
  }
  bool lost(const judge::judgement& a) const { return image_judge.verdict_of(a).lost; }

  // For people: the place of the crash, and which stores of the run are not on media.
  std::string explanation(const cache_model& cache, std::uint64_t event) const;

  std::vector<media::tape_event> events;

 private:
  // The lines that are not in `work` as they were stored last.
  std::vector<std::uint32_t> stale(const cache_model& cache) const;
  [[nodiscard]] result<> tape_changed(subject& s) override;

  std::uint64_t acknowledged_ = 0, invoked_ = 0;  // counts of operations
};

}  // namespace stele::explore
