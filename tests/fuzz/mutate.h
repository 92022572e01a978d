// Mutations that know the parts of a pool: header fields, control words, log lines, blocks, chunks,
// descriptors, home. For texts and tapes there are plain mutations. The values are those at which
// checks fail: bounds and their neighbours, other fields, powers of two.
//
// The same random numbers give the same mutation. Checksums are repaired afterwards, except in one
// input of eight.
#pragma once

#include <base/rng.h>
#include <tests/fuzz/image.h>

#include <string_view>

namespace stele::fuzz {

// Makes one to six mutations and repairs checksums. The size may change, up to `most` bytes.
void mutate_pool(std::vector<std::byte>& bytes, base::rng& random, std::size_t most);
// Changes one to four words of a store's content: links, lengths, counts. Always repairs checksums.
void mutate_kv(std::vector<std::byte>& bytes, base::rng& random, std::size_t most);
// Likewise of a document: links, heads of values, lengths, shapes.
void mutate_document(std::vector<std::byte>& bytes, base::rng& random, std::size_t most);
// Changes one to four places of a pool with SQLite databases: what the pool says of them, the bytes
// of their pages, now and then the pool itself. Always repairs checksums.
void mutate_sqlite(std::vector<std::byte>& bytes, base::rng& random, std::size_t most);
// Changes a word in this range, mostly one that is in use. A changed link mostly leads to the
// target of another link, or near its own old target.
void mutate_link(image pool, base::rng& random, std::uint64_t from, std::uint64_t bytes);
// Changes a header field, a control word, a log line, a descriptor, a word of home.
void mutate_once(image pool, base::rng& random);
// Changes bytes, words and ranges; in texts also inserts words of `dictionary`.
void mutate_bytes(std::vector<std::byte>& bytes, base::rng& random, std::size_t most,
                  std::span<const std::string_view> dictionary = {});

}  // namespace stele::fuzz
