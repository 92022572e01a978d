// Options of the mechanisms archapt-undo and archapt-redo, for engine_options::tuning.
//
//   stele::use_published();  // stele/published.h
//   stele::pool_options options{.create_size = 64 << 20, .engine = {.mechanism = "archapt-redo"}};
//   options.engine.tuning.of<stele::archapt_options>().checkpoint_commits = 10'000;
//   auto pool = stele::pool<counter>::open("counter.stele", options);
//
// The paper's interface (table II): Archapt_Init is opening a pool with these options;
// Archapt_Tx_Start and Archapt_Tx_End are the begin and the end of an update's or a read's body;
// Archapt_Tx_LCommit, the logical commit, is the return of an update with durability::ordered,
// after which pool::wait and pool::when_durable tell of the physical one; Archapt_Malloc and
// Archapt_Free are stele::make and stele::destroy, with the memory policies of
// stele/coalescing.h.
//
// Their counters: skipped_lines, home lines that were covered and not flushed; checksum_lines,
// lines of checksums that were flushed; undo_logged_lines, lines whose old values went to the log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele {

// When a line is covered by checksums and not flushed, if the cache is estimated to have evicted it
// already.
enum class skipping : std::uint8_t {
  never,  // lines are flushed late, each once: the fastest on most mixes measured on DRAM
  // At first hardly: on one sixteenth of the places where checksums take less than flushing, until
  // the lines skipped there are seen to stay skipped. From then on wherever a gain is expected. For
  // media that are slow to write; durable commits in several threads wait where ordered ones
  // have skipped.
  when_it_pays,
  always,  // whenever possible: for tests, and to measure its cost
};

// Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019).
// A skipped line that the cache still held at a power failure is restored from checksums. If
// several such lines share a row and a column, they may be lost. Recovery always detects this. Then
// it falls back to the last checkpoint, and fallback_of() (stele/archapt_fallback.h) reports that
// until it is acknowledged.
// Without checkpoints open() fails (errc::lost) and changes nothing.
struct archapt_options {
  // Size of the last-level cache, which is the length of the queue of recently used lines. 0: this
  // machine's.
  std::size_t cache_bytes = 0;
  skipping skip = skipping::never;
  // Also keep checksums of the odd half of each row and column. They can restore one more stale
  // line in each. Only at creation.
  bool halves = false;
  // Keep a checkpoint copy of home in the pool and update it after this many commits, while lines
  // are skipped; commits wait meanwhile. A crash that the checksums cannot repair loses up to this
  // many commits. A log that is truncated less often than this skips no line. 0: no checkpoints.
  // Only at creation.
  std::uint64_t checkpoint_commits = 0;
};

}  // namespace stele
