// What commits and recovery store to a home in place, where each word has its address in the pool
// file.
#pragma once

#include <base/assert.h>
#include <pool/pool_file.h>
#include <tx/home_checksums.h>
#include <tx/transaction.h>
#include <tx/write_set.h>

#include <bit>
#include <memory>
#include <span>

namespace stele::detail {

template <class Media>
class home_writer {
 public:
  explicit home_writer(const storage::pool_file& file) : file_(file) {}

  // Stores the lines; not durable until they are flushed and fenced.
  [[gnu::always_inline]] void store(Media& media, std::span<const written_line> lines) const {
    for (const written_line& line : lines) store(media, line);
  }

  // Stores t's lines and flushes them; durable after the medium's next fence. If commits keep the
  // block checksums, adds the deltas (S7 of docs/protocol/sums.md).
  void store_flushed(Media& media, const transaction& t, home_checksums<Media>& sums) const {
    const auto lines = t.lines();
    typename home_checksums<Media>::commit_sum sum(sums, media, t);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool last = i + 1 == lines.size();
      sum.before_store(lines[i]);
      store(media, lines[i]);
      media.flush(file_.at(lines[i].offset), line_size);
      sum.after_store(lines[i], last ? nullptr : &lines[i + 1]);
    }
  }

  // Stores the bytes of the line's mask.
  void store(Media& media, const written_line& line) const {
    STELE_ASSERT(line.mask != 0 && line.offset % line_size == 0);
    STELE_ASSERT(line.offset >= file_.header().home_offset && line.offset < file_.header().size);
    std::byte* const home = std::assume_aligned<line_size>(file_.at(line.offset));
    if (const unsigned w = single_whole_word(line.mask); w != 8) [[likely]]
      return media.store(home + 8 * w, &line.words[w], 8);
    if (line.mask == ~std::uint64_t{0}) return media.store(home, line.words.data(), line_size);
    // One byte, the state of a block. Not std::has_single_bit, which is a call on some processors.
    if (line.mask != 0 && (line.mask & (line.mask - 1)) == 0) {
      const auto byte = static_cast<unsigned>(std::countr_zero(line.mask));
      return media.store(home + byte, reinterpret_cast<const std::byte*>(line.words.data()) + byte,
                         1);
    }
    unsigned left = 0;
    if (!all_words_whole(line.mask, left)) [[unlikely]]
      return store_parts(media, home, line);
    for (; left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      media.store(home + 8 * w, &line.words[w], 8);
    }
  }
  // Stores the bytes of the mask of one word.
  void store_word(Media& media, std::uint64_t offset, std::uint64_t word, std::uint8_t mask) const {
    STELE_ASSERT(mask != 0 && offset % 8 == 0 && offset >= file_.header().home_offset);
    STELE_ASSERT(offset + 8 <= file_.header().size);
    store_bytes(media, file_.at(offset), &word, mask);
  }

  // The word_of of records: the new value of a word, or what home holds before the commit.
  struct new_word {
    std::uint64_t operator()(std::uint64_t, std::uint64_t value) const noexcept { return value; }
  };
  auto old_word() const noexcept {
    return [this](std::uint64_t offset, std::uint64_t) {
      return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(file_.at(offset)),
                             __ATOMIC_RELAXED);
    };
  }

 private:
  [[gnu::noinline]] static void store_parts(Media& media, std::byte* home,
                                            const written_line& line) {
    for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      store_bytes(media, home + 8 * w, &line.words[w], line.word_mask(w));
    }
  }
  static void store_bytes(Media& media, std::byte* to, const std::uint64_t* word,
                          std::uint8_t mask) {
    if (mask == 0xFF) return media.store(to, word, 8);
    for (unsigned left = mask; left != 0;) {
      const auto begin = static_cast<unsigned>(std::countr_zero(left)),
                 bytes = static_cast<unsigned>(std::countr_one(left >> begin));
      media.store(to + begin, reinterpret_cast<const std::byte*>(word) + begin, bytes);
      left &= left + (1u << begin);
    }
  }

  const storage::pool_file& file_;
};

}  // namespace stele::detail
