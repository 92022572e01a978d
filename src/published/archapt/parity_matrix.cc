// Computes row and column sums and checksums of lines; corrects stale lines by peeling.
#include <base/assert.h>
#include <base/checksum.h>
#include <media/square_sums.h>
#include <published/archapt/parity_matrix.h>
#include <published/mutant.h>

#include <cstring>
#include <span>

namespace stele::detail {

using format::line_words;
using format::matrix_side;
using published::mutant;

namespace {

void add(line_words& to, const line_words& line) noexcept {
  for (std::size_t i = 0; i < line.size(); ++i) to[i] += line[i];
}
void subtract(line_words& from, const line_words& line) noexcept {
  for (std::size_t i = 0; i < line.size(); ++i) from[i] -= line[i];
}

std::uint32_t checked(const line_words& line) noexcept {
  if (!planted(mutant::archapt_weak_checksum)) [[likely]]
    return format::line_checksum(line);
  std::uint64_t all = 0;
  for (std::uint64_t w : line) all ^= w;
  return static_cast<std::uint32_t>(all ^ all >> 32);
}

// Lines whose sum a block holds, or whose sum follows from two that it holds: a row, a column, or
// with halves every other line of one.
struct group {
  std::uint64_t lines;
  unsigned number;  // of the row or column
  enum : std::uint8_t { whole, odd, even } part;
  bool row;
};

constexpr std::size_t most_groups = 4 * matrix_side;

constexpr std::uint64_t lines_of(bool row, unsigned number, unsigned first,
                                 unsigned step) noexcept {
  std::uint64_t lines = 0;
  for (unsigned i = first; i < matrix_side; i += step)
    lines |= std::uint64_t{1} << (row ? format::line_of(number, i) : format::line_of(i, number));
  return lines;
}

template <bool halves>
constexpr auto make_groups() noexcept {
  std::array<group, halves ? most_groups : most_groups / 2> all{};
  std::size_t n = 0;
  for (const bool row : {false, true})
    for (unsigned i = 0; i < matrix_side; ++i)
      if constexpr (halves) {
        all[n++] = {lines_of(row, i, 1, 2), i, group::odd, row};
        all[n++] = {lines_of(row, i, 0, 2), i, group::even, row};
      } else {
        all[n++] = {lines_of(row, i, 0, 1), i, group::whole, row};
      }
  return all;
}
constexpr auto whole_groups = make_groups<false>();
constexpr auto half_groups = make_groups<true>();

std::span<const group> groups_of(bool halves) noexcept {
  if (halves) return half_groups;
  return whole_groups;
}

line_words sum_of(const group& g, const format::parity_block& b) noexcept {
  STELE_ASSERT(g.number < matrix_side);
  const line_words& whole = g.row ? b.rows[g.number] : b.columns[g.number];
  const line_words& odd = g.row ? b.odd_rows[g.number] : b.odd_columns[g.number];
  if (g.part == group::whole) return whole;
  if (g.part == group::odd) return odd;
  line_words even = whole;
  subtract(even, odd);
  return even;
}

unsigned first_of(std::uint64_t lines) noexcept {
  STELE_ASSERT(lines != 0);
  return static_cast<unsigned>(std::countr_zero(lines));
}

// The content of a line that follows from the group's sum and its other lines.
line_words reconstruct_line(const group& g, unsigned line, const matrix& m,
                            const format::parity_block& b) noexcept {
  STELE_ASSERT((g.lines >> line & 1) != 0);  // the sum has the line
  line_words left = sum_of(g, b);
  for (std::uint64_t others = g.lines & ~(std::uint64_t{1} << line); others != 0;
       others &= others - 1)
    subtract(left, m.lines[first_of(others)]);
  return left;
}

// Visits the groups as long as one has a single stale line that fix(group, line) corrects. Returns
// the lines that stay stale.
template <class Fix>
std::uint64_t peel(std::uint64_t stale, bool halves, Fix&& fix) noexcept {
  STELE_ASSERT((stale & ~format::full_matrix_mask) == 0);
  for (bool more = true; more && stale != 0;) {
    more = false;
    for (const group& g : groups_of(halves)) {
      if (!std::has_single_bit(stale & g.lines) || !fix(g, first_of(stale & g.lines))) continue;
      stale &= ~g.lines;
      more = true;
    }
  }
  return stale;
}

std::uint64_t stale_lines(const matrix& m, const format::parity_block& b) noexcept {
  std::uint64_t stale = 0;
  for (unsigned i = 0; i < format::matrix_lines; ++i)
    stale |= std::uint64_t{checked(m.lines[i]) != b.lines[i]} << i;
  return stale;
}

}  // namespace

void compute_checksums(const matrix& m, bool halves, format::parity_block& b) noexcept {
  static_assert(media::square_side == matrix_side);
  b.odd_columns = b.odd_rows = {};
  b.reserved = {};
  media::sum_square(m.lines[0].data(), b.columns[0].data(), b.rows[0].data());
  media::crc32c_of_lines(format::line_checksum_seed, m.lines[0].data(), m.lines.size(),
                         b.lines.data());
  for (unsigned i = 0; halves && i < format::matrix_lines; ++i) {
    const unsigned column = format::column_of(i), row = format::row_of(i);
    if (row % 2 == 1) add(b.odd_columns[column], m.lines[i]);
    if (column % 2 == 1) add(b.odd_rows[row], m.lines[i]);
  }
  for (unsigned i = 0; planted(mutant::archapt_weak_checksum) && i < format::matrix_lines; ++i)
    b.lines[i] = checked(m.lines[i]);
  if (planted(mutant::archapt_wrong_column)) {
    b.columns = {};
    for (unsigned i = 0; i < format::matrix_lines; ++i)
      add(b.columns[i / (matrix_side + 1)], m.lines[i]);
  }
  STELE_ASSERT_WHOLE(stale_lines(m, b) == 0);  // archapt.md: the block describes these lines
}

std::uint64_t checksum_of(const format::parity_block& b, std::size_t size,
                          std::uint64_t seed) noexcept {
  STELE_ASSERT(size == format::plain_block_size || size == format::halves_block_size);
  base::checksum sum(seed);
  const std::size_t counts =
      b.kind == format::parity_kind::active ? size : offsetof(format::parity_block, lines);
  sum.add(reinterpret_cast<const std::byte*>(&b) + sizeof b.checksum, counts - sizeof b.checksum);
  return sum.value();
}

correction correct(matrix& m, bool halves, const format::parity_block& b) noexcept {
  correction done{.stale = stale_lines(m, b)};
  done.uncorrected = peel(done.stale, halves, [&](const group& g, unsigned line) {
    const line_words value = reconstruct_line(g, line, m, b);
    if (checked(value) != b.lines[line]) return false;
    m.lines[line] = value;
    return true;
  });
  STELE_ASSERT((done.uncorrected & ~done.stale) == 0);
  // A line passes as good only if its checksum is right.
  STELE_ASSERT_WHOLE(stale_lines(m, b) == done.uncorrected);
  return done;
}

bool correctable(std::uint64_t stale, bool halves) noexcept {
  return peel(stale, halves, [](const group&, unsigned) { return true; }) == 0;
}

}  // namespace stele::detail
