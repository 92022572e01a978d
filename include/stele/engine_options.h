// pool_options::engine: which mechanism and medium a pool uses, and how. The defaults suit a pool
// in service; change them to measure, to test, and for a platform that `auto` does not know.
//
//   auto pool = stele::pool<counter>::open(
//       "counter.stele", {.create_size = 64 << 20, .engine = {.media = "file", .log_count = 4}});
//
// An option that the mechanism or the medium cannot follow makes open() fail (invalid_argument,
// unsupported), before a file is created.
#pragma once

#include <stele/mechanism_options.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stele {

// Which ordered commits of `default` return before they are durable.
enum class deferral : std::uint8_t {
  automatic,  // by medium: those on a file. On memory a durable commit is the faster one
  always,     // also on memory
};

// How mechanisms with a volatile checkpoint make home durable.
enum class bulk_persistence : std::uint8_t {
  // By medium: whole_cache on a file (one sync) and where a medium emulates it, else log_walk.
  automatic,
  log_walk,  // flushes each line that the logs name, once
  // Makes all stores so far durable at once; only on the media file, recording, delayed:...:cache=
  whole_cache,
};

// Block checksums of home. They detect bytes that another program changed and bits that the device
// lost, when the pool is opened or checked. After a crash they still do so as far as the mechanism
// keeps them current (docs/protocol/sums.md). Cost: 8 bytes for each 512, no fence, and a third of
// the commit time where a commit does not wait for a device.
enum class checksums : std::uint8_t {
  automatic,  // on for media file and process; off where each line costs: adr, eadr, delayed
  on,
  off,
};

// Whether open() verifies home by its block checksums, if the pool has them: 3 GB/s of used space.
enum class verification : std::uint8_t {
  automatic,  // for pools of up to 256 MiB; `stele pool check` verifies larger ones
  always,
  never,  // also for reading what is left of a damaged pool
};

// By its name, as options of front ends have it: auto, always, never. Null: another text.
std::optional<verification> verification_of(std::string_view name) noexcept;

struct engine_options {
  // "": default. "none": nothing is kept after a crash. Others: stele/published.h.
  std::string mechanism = "";
  std::string media = "auto";  // auto, adr, eadr, process, file,
                               // delayed:NS[:GBPS][:stream=once|:standalone][:cache=GBPS],
                               // pcm:strict|rules[:LOG_SPEEDUP][:waits]
  std::size_t log_size = 0;    // bytes of each thread's log; 0: by pool size. Only at creation
  // Number of logs: how many threads can commit at once. 0: by pool size. Only at creation.
  std::size_t log_count = 0;
  checksums block_checksums = checksums::automatic;  // of home. Only at creation
  verification verify = verification::automatic;     // of home by its block checksums, at open
  // Address to map the pool at, for objects that contain plain pointers. 0: any.
  std::uintptr_t map_at = 0;
  // Tape file that records every access to the pool's memory. Empty: none.
  std::string tape = "";
  bulk_persistence bulk = bulk_persistence::automatic;
  deferral defer_ordered = deferral::automatic;
  mechanism_options tuning = {};  // options of single mechanisms
  // Mechanisms may use a background thread. false: commits do its work.
  bool background = true;
  // Other processes may read the pool while it is open (open_read_only). A
  // thread serves them; it sleeps while there are none.
  bool readers = true;
};

}  // namespace stele
