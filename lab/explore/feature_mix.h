// Scenarios that nobody picked: a seed draws one value for each feature of a pool and of a run. Two
// features meet in a mix because the seed says so, not because somebody thought of the pair.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stele::explore {

struct feature_mix {
  // What the operations change: few words, words of whole lines in a short ring, lines far apart,
  // a tree whose records outgrow a log, records of extreme shapes, blocks of the heap, records as
  // long as a log.
  enum class load : std::uint8_t { words, lines, scattered, tree, shapes, heap, rings };
  enum class commits : std::uint8_t {
    durable,
    synced_often,
    synced_seldom,
    mixed,
    last_durable,
    told
  };

  load what = load::words;
  commits how = commits::durable;
  unsigned threads = 2, logs = 2;
  bool sums = false, shared_log = false, on_file = false;
  bool attached = false, background = false, one_writer = false;
  bool each_load_a_point = false;
  std::vector<std::string_view> beside;  // works of concurrency_plan::beside
  bool works_apart = false;              // in threads of their own

  // The features, each with its value: ("sums", "1"), ("beside", "grow") once for each work.
  std::vector<std::pair<std::string_view, std::string>> features() const;
};

// The mix of this number under a seed. On a file no other process is attached and no pool grows.
feature_mix draw_mix(std::uint64_t seed, unsigned number);

}  // namespace stele::explore
