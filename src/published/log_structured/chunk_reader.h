// Reads the chunks of a log-structured pool: headers, blocks, entries. Media is not trusted: a
// block counts if and only if its CRC holds and it lies within its chunk with all its entries.
#pragma once

#include <base/assert.h>
#include <format/log_chunk.h>
#include <pool/pool_file.h>
#include <published/mutant.h>

#include <optional>
#include <span>

namespace stele::detail {

struct chunk_block {
  std::uint64_t offset;                  // in the pool
  std::span<const std::uint64_t> words;  // preamble and entries
  const format::block_preamble& preamble() const noexcept {
    return *reinterpret_cast<const format::block_preamble*>(words.data());
  }

  // Calls entry(head, number of its first data word in the pool); for a tombstone, the number of
  // the entry's own word.
  template <class Entry>
  void for_each(Entry&& entry) const {
    for (std::size_t at = format::preamble_words; at < words.size();) {
      const auto head = format::entry_header::unpack(words[at]);
      STELE_ASSERT(head.data_words() < words.size() - at);  // entries_fit() has found it so
      entry(head, offset / 8 + at + (head.tombstone ? 0 : 1));
      at += 1 + head.data_words();
    }
  }
};

class chunk_reader {
 public:
  // `offset`: the chunk's offset in the pool; `words`: its size.
  chunk_reader(const storage::pool_file& file, std::uint64_t offset, std::uint32_t words)
      : file_(file),
        offset_(offset),
        words_(reinterpret_cast<const std::uint64_t*>(file.base() + offset), words) {
    STELE_ASSERT(words > format::chunk_header_words && words % 8 == 0);
  }

  const format::chunk_header& header() const noexcept {
    return *reinterpret_cast<const format::chunk_header*>(words_.data());
  }
  // position(): where the blocks read so far end, in words. seek(): goes on reading elsewhere.
  std::uint32_t position() const noexcept { return next_; }
  void seek(std::uint32_t word) noexcept {
    STELE_ASSERT(word % 8 == 0 && word >= format::chunk_header_words);  // blocks begin on lines
    next_ = word;
  }
  // Reads blocks of this generation instead of the header's.
  void set_generation(std::uint64_t generation) noexcept { generation_ = generation; }
  // At least this many words have blocks. Empty: the word is damaged.
  std::optional<std::uint64_t> recorded_end() const noexcept {
    return guarded(offsetof(format::chunk_header, end));
  }
  // The version of the first block; 0: unknown. Empty: the word is damaged.
  std::optional<std::uint64_t> first_version() const noexcept {
    return guarded(offsetof(format::chunk_header, first));
  }
  bool in_use() const noexcept {
    return header().checksum == format::chunk_checksum(header(), file_.header().id, offset_);
  }
  // The neighbour that a guarded word of the header names; empty if it is damaged or 0.
  std::optional<std::uint32_t> neighbour(std::size_t at_byte) const noexcept {
    const auto value = guarded(at_byte);
    if (!value || *value == 0) return std::nullopt;
    return static_cast<std::uint32_t>(*value - 1);
  }

  // The next block; empty at the first place without one. Precondition: in_use().
  std::optional<chunk_block> next() noexcept {
    auto block = next_unparsed();
    return block && entries_fit(*block) ? block : std::nullopt;
  }
  // The same without checking entries: for mapping blocks, which have none.
  std::optional<chunk_block> next_unparsed() noexcept {
    const std::uint32_t at = next_;
    if (at + format::preamble_words > words_.size()) return std::nullopt;
    const auto& preamble = *reinterpret_cast<const format::block_preamble*>(&words_[at]);
    if (preamble.version == 0 || preamble.words() < format::preamble_words ||
        preamble.words() > words_.size() - at)
      return std::nullopt;
    const chunk_block block{offset_ + 8 * at, words_.subspan(at, preamble.words())};
    const std::uint64_t generation = planted(published::mutant::ls_crc_unseeded) ? 0 : generation_;
    const std::uint32_t seed = format::block_crc_seed(file_.header().id, block.offset, generation);
    if (preamble.crc() != format::block_crc(seed, block.words)) return std::nullopt;
    next_ = at + format::padded_block_words(preamble.words());
    STELE_ASSERT(next_ > at && next_ <= words_.size());
    return block;
  }

 private:
  std::optional<std::uint64_t> guarded(std::size_t at_byte) const noexcept {
    return format::unguard(words_[at_byte / 8], file_.header().id, offset_ + at_byte);
  }
  static bool entries_fit(const chunk_block& b) noexcept {
    std::size_t at = format::preamble_words;
    std::uint32_t entries = 0;
    for (; at < b.words.size(); ++entries)
      at += 1 + format::entry_header::unpack(b.words[at]).data_words();
    return at == b.words.size() && entries == b.preamble().entries();
  }

  const storage::pool_file& file_;
  std::uint64_t offset_;
  std::span<const std::uint64_t> words_;
  std::uint32_t next_ = format::chunk_header_words;
  std::uint64_t generation_ = header().generation;
};

}  // namespace stele::detail
