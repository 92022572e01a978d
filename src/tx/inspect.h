// Looking at a pool file: what `stele pool info`, `check` and `dump` report, and the repairs that
// are provably safe.
//
// check() works on a private copy-on-write mapping: it recovers that copy if the pool was not
// closed, and walks it. The file is only read; a pool that is open elsewhere is refused, since a
// picture of it in motion proves nothing.
#pragma once

#include <format/pool_layout.h>
#include <pool/heap.h>
#include <stele/pool.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stele::detail {

struct pool_info {
  format::pool_header header{};
  bool left_open = false;  // by a process that ended, or by one that has it open now
  std::string logs_of;     // whose log format its logs have
  std::optional<std::uint64_t> in_use_by;  // pid
  std::string durability;                  // that a program gets which asks for no medium
  format::fallback fallback;               // to a checkpoint, not acknowledged yet
};

// Errors: those of opening, in_use excepted.
[[nodiscard]] result<pool_info> info_of(const std::string& path);

struct log_report {
  std::uint64_t records = 0;  // whole records that recovery would read
  std::uint64_t bytes = 0;
};

struct check_report {
  pool_info info;
  std::vector<log_report> logs;
  bool recovered = false;  // the copy had to be recovered
  std::string
      fallback_reason;  // for which the copy went back to a checkpoint, as opening the pool will
  std::uint64_t newest_commit = 0;
  std::uint64_t root_offset = 0, root_size = 0;
  storage::heap::usage heap;
  bool sums = false;                 // the pool has sums of home's blocks, and they were judged
  std::uint64_t verified_bytes = 0;  // by them
};

// Errors: in_use; corrupt, with what is wrong and where; those of opening; cancelled.
[[nodiscard]] result<check_report> check_pool(const std::string& path,
                                              const progress& on_progress = {});

// What a repair did, as sentences; empty: nothing was to be done. A header is restored from its
// copy; a pool that was not closed is recovered and closed; what is not known to be right is left
// alone. Errors: as check_pool, after which nothing more is repaired.
[[nodiscard]] result<std::vector<std::string>> repair_pool(const std::string& path);

// The pool in use on a private copy in memory, which goes with the runtime: the file stays as it
// is. Its root is not looked at. Errors: in_use, those of opening.
[[nodiscard]] result<std::unique_ptr<runtime>> open_copy_of(const std::string& path,
                                                            verification how);

}  // namespace stele::detail
