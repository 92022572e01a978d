// Reads transactions back from block logs (docs/format/blocks.md). Trusts nothing that it reads.
#pragma once

#include <tx/log/record.h>

namespace stele::detail {

// An aborted transaction has an abort record in at least one of any so many blocks.
inline constexpr std::uint64_t default_abort_interval = 64, max_abort_interval = 1024;

// Reads the next committed transaction from `position` on, the line after the last commit record
// that was read, as one run for each record. Skips aborted transactions. Reads up to the line
// `end`, at most a lap after the head: beyond, holes hold blocks of earlier laps whose torn bits
// look right. False: nothing more is committed. Errors: corrupt.
inline constexpr std::uint64_t no_end = std::uint64_t{1} << 60;
[[nodiscard]] result<bool> read_block_record(const storage::pool_file& file, const ring_view& ring,
                                             std::uint64_t& position, std::uint64_t end,
                                             log_record& record);

extern const record_form block_form;

}  // namespace stele::detail
