// One tape behind a cache: played from its beginning to any of its events, for a crash there.
//
// As scene is for the crash model. `work` is media as far as it has been played; a crash puts there what arrived besides.
#pragma once

#include <explore/cache_model.h>
#include <explore/judge.h>

#include <string>
#include <vector>

namespace stele::explore {

class cached_run {
 public:
  cached_run(subject& s, experience& e) : work(s.blank()), judging(s, work, e), start_(s.blank()) {}

  // The run that the subject's plan names. Errors: what the run itself reports.
  result<> record(subject& s);
  // What follows the crash that `before` is at: recovery to the state after `position` operations, and so many more.
  result<> record_recovery(subject& s, cached_run& before, std::uint64_t position, std::size_t operations);

  // Back to the beginning, with an empty cache.
  void rewind(cache_model& cache, std::uint64_t seed);
  // Passes one event to the cache.
  void play(cache_model& cache, const media::tape_event& e);
  // What is wrong with what recovery makes of `work`, having answered so; empty: nothing.
  std::string complaint(const judge::answer& a) const {
    return explore::complaint(judging.of(a), history, floor_, ceiling_);
  }

  // Where it is, and what the run has stored that is not on media, for people.
  std::string story(const cache_model& cache, std::uint64_t event) const;

  hashed_image work;
  judge judging;
  timeline history;
  std::vector<media::tape_event> events;

 private:
  void take(std::vector<std::byte> tape);

  hashed_image start_;
  std::vector<std::byte> tape_;
  std::uint64_t position_ = 0;             // operations acknowledged before its beginning
  std::uint64_t floor_ = 0, ceiling_ = 0;  // operations acknowledged as durable; invoked
};

}  // namespace stele::explore
