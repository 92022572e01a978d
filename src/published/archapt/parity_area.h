// Where a pool keeps the parity blocks of its matrices (format/parity_block.h), and the seeds of
// their checksums.
#pragma once

#include <base/assert.h>
#include <format/parity_block.h>
#include <pool/pool_file.h>
#include <published/archapt/parity_matrix.h>
#include <published/mutant.h>

#include <bit>
#include <cstring>
#include <optional>

namespace stele::detail {

class parity_area {
 public:
  explicit parity_area(const storage::pool_file& file)
      : file_(file), home_(file.header().home_offset), end_(file.header().size) {}

  const storage::pool_file& file() const noexcept { return file_; }
  bool present() const noexcept { return file_.header().parity_block_size != 0; }
  bool halves() const noexcept { return block_size() == format::halves_block_size; }
  std::uint32_t block_size() const noexcept { return file_.header().parity_block_size; }
  unsigned block_lines() const noexcept { return static_cast<unsigned>(block_size() / line_size); }
  std::uint64_t home_size() const noexcept { return end_ - home_; }
  std::uint64_t matrices() const noexcept {
    return present() ? format::matrix_count(end_ - home_) : 0;
  }

  // For a pool offset in home: its matrix, its line there, and its column counted over all of home.
  std::uint64_t matrix_of(std::uint64_t offset) const noexcept {
    STELE_ASSERT(in_home(offset));
    return (offset - home_) / line_size / format::matrix_lines;
  }
  unsigned line_of(std::uint64_t offset) const noexcept {
    STELE_ASSERT(in_home(offset));
    return static_cast<unsigned>((offset - home_) / line_size % format::matrix_lines);
  }
  std::uint64_t column_of(std::uint64_t offset) const noexcept {
    STELE_ASSERT(in_home(offset));
    return (offset - home_) / line_size / format::matrix_side;
  }
  std::uint64_t column_of(std::uint64_t matrix, unsigned line) const noexcept {
    return matrix * format::matrix_side + format::column_of(line);
  }
  // The pool offset of a line of a matrix; the last matrix may go beyond the end of home.
  std::uint64_t offset_of(std::uint64_t matrix, unsigned line) const noexcept {
    STELE_ASSERT(line < format::matrix_lines);
    return home_ + (matrix * format::matrix_lines + line) * line_size;
  }
  bool in_home(std::uint64_t offset) const noexcept { return offset >= home_ && offset < end_; }

  // Calls line(address) for each of these lines of a matrix.
  template <class Line>
  void for_each_line(std::uint64_t matrix, std::uint64_t lines, Line&& line) const {
    STELE_ASSERT(lines == 0 || (lines & ~lines_in_home(matrix)) == 0);
    for (; lines != 0; lines &= lines - 1)
      line(file_.at(offset_of(matrix, static_cast<unsigned>(std::countr_zero(lines)))));
  }
  std::uint64_t lines_in_home(std::uint64_t matrix) const noexcept {
    STELE_ASSERT(in_home(offset_of(matrix, 0)));
    const std::uint64_t lines = (end_ - offset_of(matrix, 0)) / line_size;
    return lines >= format::matrix_lines ? format::full_matrix_mask
                                         : (std::uint64_t{1} << lines) - 1;
  }

  std::uint64_t block_offset(std::uint64_t matrix, unsigned which) const noexcept {
    STELE_ASSERT(matrix < matrices() && which < format::parity_blocks);
    return file_.header().parity_offset + (matrix * format::parity_blocks + which) * block_size();
  }
  std::uint64_t checksum_for(const format::parity_block& b, std::uint64_t matrix,
                             unsigned which) const noexcept {
    return checksum_of(b, block_size(), file_.header().id ^ block_offset(matrix, which));
  }

  // Reads the lines as memory has them; lines beyond the end of home are zero.
  void read(std::uint64_t matrix, struct matrix& into) const noexcept {
    for (unsigned i = 0; i < format::matrix_lines; ++i) {
      const std::uint64_t offset = offset_of(matrix, i);
      if (!in_home(offset)) {
        into.lines[i] = {};
        continue;
      }
      const auto* const words = reinterpret_cast<const std::uint64_t*>(file_.at(offset));
      for (std::size_t w = 0; w < into.lines[i].size(); ++w)
        into.lines[i][w] = __atomic_load_n(words + w, __ATOMIC_RELAXED);
    }
  }

  // The block of a matrix that counts: of those that are whole, the one with the later epoch,
  // unless that is before `first`.
  struct found {
    format::parity_block block;
    unsigned which;
  };
  std::optional<found> newest(std::uint64_t matrix, std::uint64_t first) const noexcept;

 private:
  const storage::pool_file& file_;
  std::uint64_t home_, end_;
};

inline std::optional<parity_area::found> parity_area::newest(std::uint64_t matrix,
                                                             std::uint64_t first) const noexcept {
  std::optional<found> best;
  for (unsigned which = 0; which < format::parity_blocks; ++which) {
    const std::byte* const at = file_.base() + block_offset(matrix, which);
    found f{.block = {}, .which = which};
    std::memcpy(&f.block, at, line_size);
    if (f.block.kind == format::parity_kind::none || f.block.epoch < first) continue;
    std::memcpy(&f.block, at, block_size());
    if (checksum_for(f.block, matrix, which) != f.block.checksum) continue;  // it is not whole
    const bool later = best && (f.block.epoch > best->block.epoch) !=
                                   planted(published::mutant::archapt_stale_block);
    if (!best || later) best = f;
  }
  STELE_ASSERT(!best ||
               (best->block.epoch >= first && best->block.kind != format::parity_kind::none));
  return best;
}

}  // namespace stele::detail
