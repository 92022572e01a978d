// Decodes torn-bit log records.
#include <base/assert.h>
#include <base/check.h>
#include <base/checksum.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <tx/log/ring.h>

namespace stele::detail {

using base::fail;

namespace {

std::unexpected<error> damaged(const storage::pool_file& file, const ring_view& ring,
                               std::uint64_t position, const char* what) {
  return fail(
      errc::corrupt,
      fmt::format(
          "{}: the log at offset {} is damaged at line {}: {}; restore the pool from a copy",
          file.path(), ring.log_offset, position % ring.lines, what));
}

bool valid_header(const format::line_header& h, bool first) {
  return h.words >= 1 && h.words <= format::payload_words && h.first == first &&
         h.kind != format::record_kind::none && h.kind <= format::last_record_kind &&
         (h.last ? !h.in_columns : h.words == format::payload_words && h.checksum == 0);
}

// Reads the payload of a record that did not fit its ring. It was streamed and fenced before the
// record was written.
result<> read_spilled(const storage::pool_file& file, const ring_view& ring, log_record& record) {
  if (record.payload.size() != 3)
    return damaged(file, ring, record.position, "a spilled record has another shape");
  if (read_spilled_payload(file, {record.payload[0], record.payload[1], record.payload[2]}, record))
    return {};
  return damaged(file, ring, record.position,
                 "the payload of a spilled record is outside the heap or fails its checksum");
}

}  // namespace

result<std::uint64_t> read_log_head(const storage::pool_file& file, std::uint64_t log_offset) {
  std::uint64_t word;
  std::memcpy(&word, file.base() + log_offset, 8);
  const auto head = format::unguard(word, file.header().id, log_offset);
  if (!head)
    return fail(errc::corrupt, fmt::format("{}: the head of the log at offset {} is damaged (check "
                                           "bits); restore the pool from a copy",
                                           file.path(), log_offset));
  return *head;
}

result<bool> read_record(const storage::pool_file& file, const ring_view& ring,
                         std::uint64_t& position, log_record& record) {
  STELE_ASSERT(ring.lines != 0);
  record.payload.clear();
  record.position = position;
  record.spill_offset = record.spill_bytes = record.front = 0;
  base::checksum sum(file.header().id ^ position);
  format::column_sums columns(sum);
  bool has_columns = false;
  for (std::uint64_t at = position; at < position + ring.lines; ++at) {
    format::log_line line;
    std::memcpy(&line, ring.bytes + at % ring.lines * line_size, line_size);
    const bool sense = ((at / ring.lines) & 1) == 0;
    const bool there = planted(base::mutant::log_one_torn_bit)
                           ? ((line.words[0] & format::torn_bit) != 0) == sense
                           : format::is_untorn(line, sense);
    if (!there) return false;
    const auto header = format::line_header::unpack(line.words[0]);
    if (header.kind == format::record_kind::none && header.words == 0)
      return false;  // zeroes: never written
    if (!valid_header(header, at == position) || (line.words[0] & format::unused_header_bits) != 0)
      return damaged(file, ring, at, "its header makes no sense");
    std::uint64_t words[format::payload_words];
    for (unsigned i = 0; i < header.words; ++i) words[i] = format::payload(line, i + 1);
    if (header.in_columns)
      columns.add(words), has_columns = true;
    else
      for (unsigned i = 0; i < header.words; ++i) sum.add(words[i]);
    if (at == position) record.txid = words[0];
    record.payload.insert(record.payload.end(), words + (at == position ? 1 : 0),
                          words + header.words);
    if (!header.last) continue;
    if (has_columns) columns.add_to(sum);
    if (header.checksum != sum.value32())
      return damaged(file, ring, at, "its record fails the checksum");
    record.kind = header.kind == format::record_kind::spilled ? header.spilled_kind : header.kind;
    if (format::has_prefix_word(record.kind)) {
      if (record.payload.empty()) return damaged(file, ring, at, "a record lacks a word");
      record.front = record.payload.front();
      record.payload.erase(record.payload.begin());
    }
    if (header.kind == format::record_kind::spilled)
      if (auto read = read_spilled(file, ring, record); !read)
        return std::unexpected(std::move(read.error()));
    position = at + 1;
    STELE_ASSERT(position - record.position <= ring.lines);
    return true;
  }
  return damaged(file, ring, position, "a record is longer than the ring");
}

result<bool> read_record_by_head(const storage::pool_file& file, const ring_view& ring,
                                 std::uint64_t head, const record_form* other,
                                 std::uint64_t& position, log_record& record) {
  STELE_ASSERT((head & format::log_void_bit) == 0);  // a void ring holds nothing
  if ((head & format::log_blocks_bit) == 0) return read_record(file, ring, position, record);
  if (other == nullptr)
    return damaged(file, ring, position, "its head names a form of records that it cannot have");
  return other->read(file, ring, position, (head & format::log_position_mask) + ring.lines, record);
}

bool read_spilled_payload(const storage::pool_file& file, const spilled_payload& where,
                          log_record& record) {
  const auto& h = file.header();
  if (where.offset < h.chunks_offset || where.offset % line_size != 0 || where.offset >= h.size ||
      where.words > (h.size - where.offset) / 8)
    return false;
  record.spill_offset = where.offset;
  record.spill_bytes = where.words * 8;
  record.payload.assign(where.words, 0);
  if (where.words != 0) std::memcpy(record.payload.data(), file.at(where.offset), where.words * 8);
  base::checksum sum(h.id ^ where.offset);
  for (std::uint64_t w : record.payload) sum.add(w);
  return sum.value() == where.checksum;
}

std::uint64_t payload_words(std::span<const written_line> lines) {
  std::uint64_t words = 0;
  word_buffer count([&](std::span<const std::uint64_t> some) { words += some.size(); });
  encode_runs(lines, count, [](std::uint64_t, std::uint64_t value) { return value; });
  count.finish();
  // The bound of log_lanes::lines_needed
  STELE_ASSERT(words >= lines.size() && words <= 16 * lines.size());
  return words;
}

std::unexpected<error> bad_run(const storage::pool_file& file, std::uint64_t offset) {
  return fail(
      errc::corrupt,
      fmt::format(
          "{}: a log record names offset {}, which is outside home; restore the pool from a copy",
          file.path(), offset));
}

}  // namespace stele::detail
