// One tape behind a cache: played from its beginning to any of its events, for a crash there.
//
// As explored_tape is for the crash model. A crash puts into `work` what arrived besides.
#pragma once

#include <explore/cache_model.h>
#include <explore/recorded_run.h>

#include <string>
#include <vector>

namespace stele::explore {

class cached_run final : public recorded_run {
 public:
  cached_run(subject& s, verdict_cache& e) : recorded_run(s, e) {}

  // Back to the beginning, with an empty cache.
  void rewind(cache_model& cache, std::uint64_t seed);
  // Passes one event to the cache.
  void play(cache_model& cache, const media::tape_event& e);
  // What is wrong with what recovery makes of `work`, having answered so; empty: nothing.
  std::string violation_of(const cache_model& cache, const judge::judgement& a) const;
  // How many lines that were skipped `work` does not have as they were stored last.
  std::uint64_t skipped_and_stale(const cache_model& cache) const {
    return image_judge.count_skipped(stale(cache));
  }
  bool lost(const judge::judgement& a) const { return image_judge.verdict_of(a).lost; }

  // Where it is, and what the run has stored that is not on media, for people.
  std::string explanation(const cache_model& cache, std::uint64_t event) const;

  std::vector<media::tape_event> events;

 private:
  // The lines that `work` does not have as they were stored last.
  std::vector<std::uint32_t> stale(const cache_model& cache) const;
  [[nodiscard]] result<> tape_changed(subject& s) override;

  std::uint64_t acknowledged_ = 0, invoked_ = 0;  // operations acknowledged as durable; invoked
};

}  // namespace stele::explore
