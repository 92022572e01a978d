// How a log-structured pool does its work, where there is a choice; part of pool_options.
#pragma once

#include <cstddef>

namespace stele {

// The mechanism log_structured: Hu, Ren, Badam, Shu and Moscibroda, "Log-Structured Non-Volatile
// Main Memory" (2017). The first four are the optimisations of its section 3.2, to be measured one
// by one.
struct log_structured_options {
  bool two_layers = true;  // a list for each 4 KiB of home; false: one for all
  bool group_update =
      true;  // stores to words side by side are one entry; false: an entry for each word
  bool node_cache = true;
  bool lock_free_readers = true;  // false: readers lock the list that they look in
  bool separate_logs =
      true;  // updates, allocations and frees of a thread go to three logs; false: to one
  bool fast_cleaning = true;  // a chunk without live data is freed without a look at the others
  bool join_when_cleaning = true;  // small entries side by side are moved together, as one
  std::size_t cache_entries = 0;   // of each thread's node cache; 0: by pool size
  double clean_from = 0.75;        // share of chunks in use from which on cleaning runs
  double victim_live_share =
      0.2;                // chunks with less live data are cleaned; more, when that does not do
  unsigned cleaners = 1;  // threads, where `background` allows
  unsigned recovery_threads = 0;  // 0: as many as the machine has cores
};

}  // namespace stele
