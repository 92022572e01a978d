// What the runtime and its transactions call of a mechanism. Each pool that is open for writing has
// one engine: the protocol of a mechanism, compiled for a medium (mechanism_engine.h). One that is
// open for reading has none, but a reader_session.
#pragma once

#include <media/media.h>
#include <stele/error.h>
#include <stele/pool.h>
#include <tx/pool_state.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace stele::detail {

class load_observer;
class store_observer;
class transaction;
class virtual_home;

// The log format of a session; part of the session word on media.
enum class log_kind : std::uint8_t {
  none = 0,
  torn_bit = 1,
  lines_or_blocks = 3,  // rings of lines or of blocks; each head word says which
  chunks = 4,           // log_structured
  ordered_writes = 5,   // two slots a log; kind 2 had one slot and is not read any more
  archapt_redo = 6,     // torn-bit rings, and checksums over matrices of home
  archapt_undo = 7,
};

struct engine_totals {
  media::counters media;
  std::uint64_t truncations = 0, log_spills = 0;
  std::string_view mode = "";  // what the mechanism runs as now, if it has several modes
  mechanism_counters of_mechanism;
};

// Options of an engine.
struct engine_tuning {
  bool background = true;  // the engine may start a background thread
  // `default` only: all threads append to the same ring, then to the next one, and one thread
  // writes the records of all waiting threads. For a medium where the cost of a write depends on
  // the number of places, not of bytes (a file).
  bool shared_log = false;
  bulk_persistence bulk = bulk_persistence::automatic;
  mechanism_options of_mechanism = {};
  std::uint32_t media_latency_ns = 0;  // added to each line written
};

class engine {
 public:
  // What a transaction asks about its mechanism, once for a pool.
  struct traits {
    // Ordered commits return before they are durable.
    bool defers_ordered = false;
    // Ordered commits are otherwise different from durable ones.
    bool tells_ordered = false;
    // Transactions may store home as they run, when no other thread reads. Such a mechanism cannot
    // recover from a crash.
    bool stores_in_place = false;
  };

  virtual ~engine() = default;
  virtual traits what() const noexcept = 0;

  // Brings home to the state after the acknowledged commits, empties the logs and sets the clock.
  // After a crash at any point of it, it can run again. Errors: corrupt, io.
  [[nodiscard]] virtual result<> recover() = 0;
  // Takes over empty logs of the kind that the session word names, and marks the pool open on
  // media. Errors: corrupt, io.
  [[nodiscard]] virtual result<> start(std::uint8_t logs_were) = 0;

  // Null: none. Of the loads of a log's transactions.
  virtual detail::store_observer* store_observer() noexcept { return nullptr; }
  virtual detail::load_observer* load_observer(unsigned) noexcept { return nullptr; }

  // The home that this engine has in place of one at the pool's addresses; from recovery on. Null:
  // home is in place.
  virtual virtual_home* home() noexcept { return nullptr; }

  // The whole commit of a transaction whose stores are not home yet: t.commit_by(mechanism).
  virtual commit_status commit(transaction& t) = 0;

  // Makes ordered commits that have returned durable and stores them home.
  virtual void flush_deferred() {}
  // Every commit that has returned and has a TxID up to the result is durable already. no_commit:
  // all of them are.
  virtual std::uint64_t durable_through() const noexcept { return pool_state::no_commit; }
  // On return every commit that had returned before is durable.
  [[nodiscard]] virtual result<> sync() = 0;
  // On return home is durable, the logs are empty and the pool is marked closed on media. If the
  // pool is poisoned, media stays as it is. In either case no thread of the engine runs any more.
  [[nodiscard]] virtual result<> close() = 0;

  // If no transaction runs: on return home is durable and no log record counts any more. Not for a
  // home in the log. Errors: io.
  [[nodiscard]] virtual result<> checkpoint() = 0;
  // If the mechanism maintains block checksums and no transaction runs: on return they are those of
  // home. Errors: io.
  [[nodiscard]] virtual result<> refresh_block_checksums() = 0;
  // Gives the pool `to.chunk_count` chunks, durably. Preconditions: the file has the room, no
  // transaction runs, checkpoint() has returned. Errors: corrupt, io.
  [[nodiscard]] virtual result<> grow(const format::growth& to) = 0;
  // Writes one control word of the pool's header. Durable on return. Precondition: no transaction
  // runs. Errors: io.
  [[nodiscard]] virtual result<> write_control_word(std::uint64_t offset, std::uint64_t value) = 0;

  // In a child of fork: closes what the medium has open.
  virtual void leave_to_parent() noexcept {}

  virtual engine_totals totals() const noexcept = 0;
  virtual void note(unsigned log, media::tape_mark m, std::uint64_t argument) = 0;
};

}  // namespace stele::detail
