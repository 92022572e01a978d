// Inspection of a pool file: what `stele pool info`, `check` and `dump` report, and the repairs
// that are provably right.
//
// check_pool() works on a private copy-on-write mapping. It recovers that copy if the pool was not
// closed, and walks it; the file is only read. Of a pool that is open in another process, that
// process makes the copy (tx/readers/), whose block checksums are new and so are not verified.
#pragma once

#include <format/pool_layout.h>
#include <pool/heap.h>
#include <pool/repair.h>
#include <stele/pool.h>
#include <tx/engine.h>
#include <tx/log/record.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stele::detail {

struct pool_info {
  format::pool_header header{};
  bool left_open = false;  // not closed: its process has ended, or still has it open
  std::string logs_of;     // the name of the log format
  std::optional<std::uint64_t> in_use_by;  // pid
  bool serves_readers = false;             // that process answers readers of others
  durability_level durability;             // what commits survive with media "auto"
  format::fallback fallback;               // to a checkpoint, not acknowledged yet
};

// Errors: those of opening except in_use.
[[nodiscard]] result<pool_info> info_of(const std::string& path);

struct log_report {
  std::uint64_t records = 0;  // whole records that recovery would read
  std::uint64_t bytes = 0;
};

struct check_report {
  pool_info info;
  std::vector<log_report> logs;
  bool recovered = false;  // the copy had to be recovered
  // Why recovery of the copy went back to a checkpoint, as an open will. Empty: it did not.
  std::string fallback_reason;
  std::uint64_t newest_commit = 0;
  std::uint64_t root_offset = 0, root_size = 0;
  storage::heap::usage heap;
  bool sums = false;                 // home was verified by its block checksums
  std::uint64_t verified_bytes = 0;  // by block checksums
};

// Copies a pool to `to`, a new file, if a process has it open. Returns false if none has. Contract
// and errors: pool<Root>::backup; in_use, when that process serves no readers.
[[nodiscard]] result<bool> back_up_if_open(const std::string& path, const std::string& to,
                                           const progress& on_progress);

// Verifies a pool. Errors: in_use; corrupt, with what is wrong and where; those of opening;
// cancelled.
[[nodiscard]] result<check_report> check_pool(const std::string& path,
                                              const progress& on_progress = {});

// The blocks with a wrong checksum of a pool that is sound but for checksums that a growth by an
// older program has left wrong (storage::block_checksums::first_tail). Empty: it has none, or other
// blocks do not match either. Precondition: the caller has the pool locked. Errors: as
// check_pool().
[[nodiscard]] result<std::vector<std::uint64_t>> find_wrong_checksums(const std::string& path);

// Repairs a pool. Returns what was done; empty: nothing was needed. It restores a damaged header
// from its copy and the copy from the header, marks logs of a closed pool as empty whose heads or
// lines are damaged, gives up checksums that a growth by an older program has left wrong, and
// recovers and closes a pool that was not closed. What is not known to be
// right is left alone (docs/protocol/repair.md). Errors: as check_pool; what was repaired before an
// error is in `done`.
[[nodiscard]] result<> repair_pool(const std::string& path,
                                   std::vector<storage::repair_step>& done);

// Fails if a process has the pool open: what is read of a pool while it changes proves nothing.
// Errors: in_use.
[[nodiscard]] result<> check_unused(const std::string& path);

// After a close the ring is empty: all its lines are of an earlier lap than the head's. other: as
// for read_record_by_head(); a log of a form that is not known is taken for empty. Errors: corrupt.
[[nodiscard]] result<> check_closed_ring(const storage::pool_file& file, const ring_view& ring,
                                         std::uint64_t head, const record_form* other);
// The ring of a log of torn bits.
ring_view ring_of_log(const storage::pool_file& file, std::uint32_t log) noexcept;
// Whether logs of this kind are rings with a head word.
bool has_log_heads(log_kind kind) noexcept;

// Opens a private copy of the pool in memory. The copy ends with the runtime, and the file does not
// change. The root is not checked. Errors: in_use, those of opening.
[[nodiscard]] result<std::unique_ptr<runtime>> open_copy_of(const std::string& path,
                                                            verification how);

}  // namespace stele::detail
