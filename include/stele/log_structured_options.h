// Options of the mechanism log_structured, for engine_options::tuning.
//
//   stele::use_published();  // stele/published.h
//   stele::pool_options options{
//       .create_size = 64 << 20, .engine = {.mechanism = "log_structured"}};
//   options.engine.tuning = stele::log_structured_options{.clean_from = 0.5, .cleaners = 2};
//   auto pool = stele::pool<counter>::open("counter.stele", options);
//   if (pool)
//     std::printf("cleaned %lu chunks\n", pool->counters().of_mechanism["cleaned_chunks"]);
//
// Its counters: cleaned_chunks and fast_cleaned_chunks, chunks freed by cleaning, and those of them
// that held no live data; moved_bytes, moved by cleaning; map_bytes, the home map in memory;
// map_hits and map_misses, lookups that a thread's node cache answered, and did not; cached_words,
// loads that the word cache answered, without a lookup.
#pragma once

#include <cstddef>

namespace stele {

// Hu, Ren, Badam, Shu and Moscibroda, "Log-Structured Non-Volatile Main Memory" (2017). The first
// four are the optimisations of its section 3.2; each can be switched off to measure it.
struct log_structured_options {
  bool two_layers = true;  // one list for each 4 KiB of home; false: one list for all
  // Stores to adjacent words make one entry; false: one entry for each word.
  bool group_update = true;
  bool node_cache = true;
  bool lock_free_readers = true;  // false: readers lock the list that they search
  // Words that are loaded often are kept in ordinary memory: 64 bytes for 8 KiB of the file, at
  // most 16 MiB. Faster where loads follow pointers through a large structure, else a little
  // slower.
  bool word_cache = false;
  // A thread's updates, allocations and frees go to three logs (section 3.4); false: to one, which
  // writes less, since a small transaction is one block.
  bool separate_logs = false;
  bool level_wear = true;  // the chunk with the fewest writes is used next; false: the last freed
  bool fast_cleaning = true;  // chunks without live data are freed before others are considered
  bool join_when_cleaning = true;  // adjacent small entries are moved together, as one
  std::size_t cache_entries = 0;   // of each thread's node cache; 0: by pool size
  double clean_from = 0.75;        // cleaning runs when this share of the chunks is in use
  // Chunks with a smaller share of live data are cleaned; others only if that is not enough.
  double victim_live_share = 0.2;
  unsigned cleaners = 1;          // threads, if `background` is true
  unsigned recovery_threads = 0;  // 0: one for each core
};

}  // namespace stele
