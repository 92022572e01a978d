// Mutations that know what a pool is made of: header fields, control words, log lines, blocks,
// chunks, descriptors, home; and, for texts and tapes, plain ones. Values are those at which checks
// go wrong: bounds and their neighbours, other fields, powers of two.
//
// The same random numbers give the same mutation. Checksums are made right afterwards, but for one
// input in eight.
#pragma once

#include <base/rng.h>
#include <tests/fuzz/image.h>

#include <string_view>

namespace stele::fuzz {

// One to six mutations, repaired. The size may change, up to `most` bytes.
void mutate_pool(std::vector<std::byte>& bytes, base::rng& random, std::size_t most);
// One to four words of the content of a store: links, lengths, counts. Always repaired.
void mutate_kv(std::vector<std::byte>& bytes, base::rng& random, std::size_t most);
// Bytes, words and pieces; of texts also words of `dictionary`.
void mutate_bytes(std::vector<std::byte>& bytes, base::rng& random, std::size_t most,
                  std::span<const std::string_view> dictionary = {});

}  // namespace stele::fuzz
