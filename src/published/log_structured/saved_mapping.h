// Saves the home map of a log-structured pool in free chunks, for the next open: what
// load_mapping() of rebuild.h reads. docs/format/log-structured.md has the layout.
#pragma once

#include <base/assert.h>
#include <published/log_structured/log_space.h>
#include <published/log_structured/rebuild.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace stele::detail {

// Streams a chunk with one block of pairs. The next block is at offset `peer`; 0: there is none.
template <class Media>
void write_mapping_chunk(storage::log_space& space, Media& medium, std::uint32_t c,
                         std::uint64_t peer, std::span<const std::uint64_t> pairs,
                         std::uint64_t version) {
  // log-structured.md: a chunk has one block, and a pair is whole in it.
  STELE_ASSERT_ALWAYS(pairs.size() % 2 == 0 &&
                      format::chunk_header_words + format::preamble_words + pairs.size() <=
                          space.chunk_words());
  STELE_ASSERT_ALWAYS(peer == 0 || peer >= space.file().header().log_offset);
  const std::uint64_t offset = space.offset_of(c), id = space.file().header().id;
  std::vector<std::uint64_t> words(format::chunk_header_words + format::preamble_words);
  words.insert(words.end(), pairs.begin(), pairs.end());
  const auto h =
      format::chunk_header_of(++space[c].generation, format::log_type::mapping, 0, id, offset);
  std::memcpy(words.data(), &h, sizeof h);
  const std::span block = std::span(words).subspan(format::chunk_header_words);
  block[0] = version;
  block[1] = format::block_preamble::pack_link(peer, 0);
  block[2] = std::uint64_t{block.size()} << 32;
  block[2] |= format::block_crc(format::block_crc_seed(id, offset + sizeof h, h.generation), block);
  words.resize(format::padded_block_words(static_cast<std::uint32_t>(words.size())));
  medium.stream(space.file().base() + offset, words.data(), words.size() * 8);
}

// Returns the first chunk, counted from 1; 0: there are too few free chunks, and nothing was saved.
// Durable after the medium's next fence. If memory or chunks run out, the chunks taken stay open:
// nothing reads them. Requires that no transaction runs.
template <class Media>
std::uint64_t save_mapping(storage::log_space& space, Media& medium, std::uint64_t version) {
  const std::vector<std::uint64_t> pairs = encode_mapping(space);
  const std::uint32_t each =
      (space.chunk_words() - format::chunk_header_words - format::preamble_words) / 2 * 2;
  std::vector<std::uint32_t> chunks;
  (void)space.reclaim_retired();
  for (std::uint64_t done = 0; done < pairs.size() || chunks.empty(); done += each) {
    const auto c = space.allocate_chunk(0);
    if (!c) return 0;
    chunks.push_back(*c);
  }
  STELE_ASSERT_ALWAYS(pairs.size() % 2 == 0 && chunks.size() * each >= pairs.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint64_t peer = i + 1 < chunks.size() ? space.offset_of(chunks[i + 1]) : 0;
    const std::size_t from = std::min<std::size_t>(i * each, pairs.size());
    write_mapping_chunk(
        space, medium, chunks[i], peer,
        std::span(pairs).subspan(from, std::min<std::size_t>(each, pairs.size() - from)), version);
  }
  return chunks.front() + 1;
}

}  // namespace stele::detail
