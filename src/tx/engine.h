// What stands between transactions and media: one engine a pool, a mechanism's protocol compiled for a medium.
//
// The runtime asks it for room before a commit's point of no return, then to commit. A mechanism is a class template over
// Media that derives from engine_on<Media>; see mechanism/redo.h for the shape, and CONTRIBUTING.md for the steps.
#pragma once

#include <format/pool_layout.h>
#include <media/media.h>
#include <pool/heap.h>
#include <pool/pool_file.h>
#include <stele/error.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace stele::detail {

class transaction;

struct engine_totals {
  media::counters media;
  std::uint64_t truncations = 0, log_spills = 0;
};

// What every engine of a pool works on.
struct pool_state {
  storage::pool_file file;
  storage::heap heap;
  std::atomic<std::uint64_t> clock{0};      // TxID of the newest commit; counts up by one a commit
  std::atomic<bool> poisoned{false};        // an I/O error at commit: nothing is acknowledged any more
  // For each log, the clock's value before its running commit drew a TxID: a lower bound, or no_commit.
  static constexpr std::uint64_t no_commit = ~std::uint64_t{0};
  struct alignas(64) announcement {
    std::atomic<std::uint64_t> value{no_commit};
  };
  std::vector<announcement> committing;

  explicit pool_state(storage::pool_file f) : file(std::move(f)), heap(file), committing(file.header().log_count) {}

  // Every commit up to this TxID has stored its values home.
  std::uint64_t completed() const noexcept {
    std::uint64_t through = clock.load(std::memory_order_seq_cst);
    for (const auto& a : committing) through = std::min(through, a.value.load(std::memory_order_seq_cst));
    return through;
  }
};

class engine {
 public:
  virtual ~engine() = default;

  // Brings home to the state after the acknowledged commits and empties the logs; sets the clock. May be interrupted anywhere
  // and run again. Errors: corrupt, io.
  virtual result<> recover() = 0;
  // Takes over empty logs of the kind that the session word names, and marks the pool open on media. Errors: corrupt, io.
  virtual result<> start(std::uint8_t logs_were) = 0;

  // Makes sure that the log has room for t's record; may wait. Nothing has changed when it fails. Errors: full, poisoned.
  virtual result<> prepare(transaction& t) = 0;
  // The point of no return: t's stores become durable and reach home. False: the medium failed; the pool is poisoned.
  virtual bool commit(transaction& t, std::uint64_t txid) = 0;

  // Every commit that has returned is durable when this returns.
  virtual result<> sync() = 0;
  // Home durable, logs empty, pool marked closed.
  virtual result<> close() = 0;

  // Whether transactions may store home as they run when nobody else looks (no crash is ever recovered from).
  virtual bool stores_in_place() const noexcept { return false; }

  virtual engine_totals totals() const noexcept = 0;
  virtual void note(unsigned log, media::mark m, std::uint64_t argument) = 0;
};

}  // namespace stele::detail
