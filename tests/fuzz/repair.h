// Makes every checksum of a mutated pool right again, so that what was mutated is judged by what it
// says and not by its sums.
//
// The header and its copy, guarded words (session, watermark, growth, ..., heads of logs, chunk
// descriptors), records of every log format, blocks of checksums over home, chunks and blocks of
// log-structured pools, sums of home's blocks. Goes by what the bytes say, trusts none of it, and
// takes time that is bounded by their number. Bytes that are no pool at all stay as they are.
#pragma once

#include <tests/fuzz/image.h>

namespace stele::fuzz {

void repair_pool(image pool);

// Its parts, in this order: later ones sum up what earlier ones have changed.
void repair_header(image pool);
void repair_words(image pool);
void repair_logs(image pool);
void repair_parity(image pool);
void repair_chunks(image pool);  // of a log-structured pool
void repair_sums(image pool);

// Of a guarded word: the value as it stands, its check made anew.
void guard_again(image pool, std::uint64_t offset, std::uint64_t id);

}  // namespace stele::fuzz
