// Repairs every checksum of a mutated pool, so that the library judges the mutated content and does
// not stop at a checksum.
//
// Repairs the header and its copy, guarded words (session, watermark, growth, ..., heads of logs,
// chunk descriptors), records of every log format, parity blocks of home, chunks and blocks of
// log-structured pools, and block checksums of home. It follows the bytes, trusts none of them, and
// takes time bounded by their number. Bytes that are no pool stay as they are.
#pragma once

#include <tests/fuzz/image.h>

namespace stele::fuzz {

void repair_pool(image pool);

// The parts of repair_pool(), in this order: later ones sum over what earlier ones have changed.
void repair_header(image pool);
void repair_words(image pool);
void repair_logs(image pool);
void repair_parity(image pool);
void repair_chunks(image pool);  // of a log-structured pool
void repair_sums(image pool);

// Repairs a guarded word: keeps its value and computes its check bits.
void guard_again(image pool, std::uint64_t offset, std::uint64_t id);

}  // namespace stele::fuzz
