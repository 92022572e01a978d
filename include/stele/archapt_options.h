// How the mechanisms archapt-undo and archapt-redo do their work, where there is a choice; part of
// pool_options.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele {

// When a line that the cache is estimated to have lost already is covered by checksums in place of
// being flushed.
enum class skipping : std::uint8_t {
  when_it_pays,  // where the checksums are fewer lines than those that they cover
  always,        // wherever one can be skipped: for tests, and to see what it costs
  never,
};

// Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019).
// A line that was skipped and that the cache did hold, all the same, when power failed, is restored
// from checksums; several in one row and column may be lost. Recovery always finds that out. Then
// it goes back to the last checkpoint, and the pool says so until that is acknowledged
// (pool::fallback); without checkpoints it refuses (errc::lost) and changes nothing.
struct archapt_options {
  std::size_t cache_bytes = 0;  // of the last-level cache, which the queue of lines used last is as
                                // long as; 0: this machine's
  skipping skip = skipping::when_it_pays;
  // Sums of the odd half of each row and column as well: one stale line more in each can be
  // restored. Only when creating.
  bool halves = false;
  // A copy of home is kept in the pool, and brought up to date each so many commits while lines are
  // skipped; commits wait meanwhile. As many commits may be gone after a crash that checksums
  // cannot make good. A log that is cut more seldom than that skips nothing. 0: no checkpoints.
  // Only when creating.
  std::uint64_t checkpoint_commits = 0;
};

}  // namespace stele
