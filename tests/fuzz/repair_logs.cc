// Repairs records of torn-bit rings, of block rings and of ordered writes, and chunks of
// log-structured pools.
//
// This file reads a ring from its head as recovery does, but with its own code. What a record says
// of itself (lengths, flags, place of its payload) stays; only its checksum is computed anew.
#include <base/checksum.h>
#include <format/log_block.h>
#include <format/log_chunk.h>
#include <format/log_line.h>
#include <format/slot_log.h>
#include <tests/fuzz/repair.h>

#include <algorithm>
#include <array>

namespace stele::fuzz {

using format::pool_header;

namespace {

struct ring {
  std::uint64_t offset, lines;  // `offset` is that of its first line
  std::uint64_t at(std::uint64_t position) const { return offset + position % lines * 64; }
  bool sense(std::uint64_t position) const { return (position / lines & 1) == 0; }
};

// The checksum over `count` words of the pool, with this seed; none when the words are not in the
// pool.
std::optional<std::uint64_t> sum_of(image pool, std::uint64_t offset, std::uint64_t count,
                                    std::uint64_t seed) {
  if (offset > pool.size() || count > (pool.size() - offset) / 8) return std::nullopt;
  base::checksum sum(seed);
  for (std::uint64_t i = 0; i < count; ++i) sum.add(pool.word(offset + 8 * i));
  return sum.value();
}

format::log_line line_at(image pool, std::uint64_t offset) {
  format::log_line line{};
  for (unsigned i = 0; i < 8; ++i) line.words[i] = pool.word(offset + 8 * i);
  return line;
}

// In a spilled record the last payload word is the checksum of the payload elsewhere.
void repair_spill(image pool, std::uint64_t line, unsigned words, const std::uint64_t* payload,
                  std::uint64_t id) {
  const auto sum = sum_of(pool, payload[0], payload[1], id ^ payload[0]);
  if (!sum || words < 3) return;
  const std::uint64_t word = pool.word(line + 8 * words);
  pool.put(line + 8 * words, (word & format::torn_bit) | (*sum & ~format::torn_bit));
  const std::uint64_t head = pool.word(line), top = std::uint64_t{1} << (words - 1);
  pool.put(line, (head & ~top) | (*sum >> 63 != 0 ? top : 0));
}

void repair_lines(image pool, const ring& r, std::uint64_t head, std::uint64_t id) {
  base::checksum sum(id ^ head);
  format::column_sums columns(sum);
  bool has_columns = false;
  for (std::uint64_t at = head, first = head; at < head + r.lines; ++at) {
    const std::uint64_t offset = r.at(at);
    if (!format::is_untorn(line_at(pool, offset), r.sense(at))) return;
    const auto h = format::line_header::unpack(pool.word(offset));
    const unsigned words = std::min<unsigned>(h.words, format::payload_words);
    if (at == first && h.kind == format::record_kind::spilled && h.last && words >= 4) {
      const auto line = line_at(pool, offset);
      const std::uint64_t payload[2] = {format::payload(line, words - 2),
                                        format::payload(line, words - 1)};
      repair_spill(pool, offset, words, payload, id);
    }
    const auto line = line_at(pool, offset);
    std::uint64_t payload[format::payload_words] = {};
    for (unsigned i = 0; i < words; ++i) payload[i] = format::payload(line, i + 1);
    if (h.in_columns)
      columns.add(payload), has_columns = true;
    else
      for (unsigned i = 0; i < words; ++i) sum.add(payload[i]);
    if (!h.last) continue;
    if (has_columns) columns.add_to(sum);
    const std::uint64_t mask = std::uint64_t{0xFFFF'FFFF} << 12;
    pool.put(offset, (pool.word(offset) & ~mask) | std::uint64_t{sum.value32()} << 12);
    first = at + 1;
    sum = base::checksum(id ^ first);
    columns = format::column_sums(sum);
    has_columns = false;
  }
}

void repair_blocks(image pool, const ring& r, std::uint64_t head, std::uint64_t id) {
  for (std::uint64_t at = head * 4, first = head; at < (head + r.lines) * 4; ++at) {
    const std::uint64_t offset = r.at(at / 4) + at % 4 * 16;
    const format::log_block b{pool.word(offset), pool.word(offset + 8)};
    format::block_record record;
    const bool ends = !format::is_untorn(b, r.sense(at / 4)) || !format::unpack(b, record) ||
                      record.kind == format::block_kind::abort;
    const bool by_columns = record.kind == format::block_kind::commit_by_columns;
    if (!ends && record.kind != format::block_kind::commit && !by_columns) {
      // The words of a run are no records.
      at = std::min(at + format::further_blocks(record.further), at | 3);
      continue;
    }
    if (!ends) {
      std::array<std::uint64_t, 8> words;
      const auto line_at = [&](std::uint64_t line) {
        for (std::uint64_t i = 0; i < 8; ++i) words[i] = pool.word(r.at(first + line) + 8 * i);
        return words.data();
      };
      const auto sum =
          format::blocks_checksum(base::checksum(id ^ first), by_columns, at - first * 4, line_at);
      pool.put(offset + 8, (b.metadata & 0xFFFF) | sum.value() >> 16 << 16);
    }
    at |= 3;  // the next transaction begins on a new line
    first = at / 4 + 1;
  }
}

void repair_slots(image pool, std::uint64_t log, std::uint64_t id) {
  for (unsigned slot = 0; slot < format::slot_count; ++slot) {
    const std::uint64_t line = log + format::slot_commit_offset(slot);
    guard_again(pool, line, id);
    const std::uint64_t txid = pool.word(line) & (format::guarded_limit - 1);
    if (txid == 0) continue;  // the line keeps its content
    if (const auto sum = sum_of(pool, pool.word(line + 8), pool.word(line + 16), id ^ txid))
      pool.put(line + 24, *sum);
  }
}

void repair_block(image pool, std::uint64_t at, std::uint32_t words, std::uint64_t generation,
                  std::uint64_t id) {
  std::vector<std::uint64_t> block(words);
  for (std::uint32_t i = 0; i < words; ++i) block[i] = pool.word(at + 8 * i);
  const std::uint32_t crc = format::block_crc(format::block_crc_seed(id, at, generation), block);
  pool.put(at + 16, (block[2] & ~std::uint64_t{0xFFFF'FFFF}) | crc);
}

void repair_chunk(image pool, std::uint64_t chunk, std::uint64_t size, std::uint64_t id) {
  format::chunk_header h{.generation = pool.word(chunk),
                         .owner = pool.word(chunk + 8),
                         .checksum = 0,
                         .previous = 0,
                         .next = 0,
                         .end = 0,
                         .first = 0,
                         .reserved = 0};
  if (pool.word(chunk + offsetof(format::chunk_header, checksum)) == 0) return;  // free
  pool.put(chunk + offsetof(format::chunk_header, checksum), format::chunk_checksum(h, id, chunk));
  guard_again(pool, chunk + offsetof(format::chunk_header, previous), id);
  guard_again(pool, chunk + offsetof(format::chunk_header, next), id);
  guard_again(pool, chunk + offsetof(format::chunk_header, end), id);
  guard_again(pool, chunk + offsetof(format::chunk_header, first), id);
  for (std::uint64_t at = sizeof h; at + sizeof(format::block_preamble) <= size;) {
    const auto words = static_cast<std::uint32_t>(pool.word(chunk + at + 16) >> 32);
    if (pool.word(chunk + at) == 0 || words < format::preamble_words || words > (size - at) / 8)
      return;
    repair_block(pool, chunk + at, words, h.generation, id);
    at += std::uint64_t{8} * format::padded_block_words(words);
  }
}

}  // namespace

void repair_logs(image pool) {
  const pool_header h = pool.header();
  const auto session = format::session::unpack(pool.word(format::session_offset));
  if (h.log_size < 4096 || h.log_size > pool.size()) return;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(h.log_count, pool.size() / h.log_size);
       ++i) {
    const std::uint64_t log = h.log_offset + i * h.log_size;
    if (session.log_kind == 5) {
      repair_slots(pool, log, h.id);
      continue;
    }
    guard_again(pool, log, h.id);
    const std::uint64_t word = pool.word(log) & (format::guarded_limit - 1);
    const ring r{log + format::log_control_size, (h.log_size - format::log_control_size) / 64};
    ((word & format::log_blocks_bit) != 0 ? repair_blocks : repair_lines)(
        pool, r, word & format::log_position_mask, h.id);
  }
}

void repair_chunks(image pool) {
  const pool_header h = pool.header();
  if (h.log_size < 1024 || h.log_size > pool.size()) return;
  for (std::uint64_t at = h.log_offset; pool.has(at, h.log_size); at += h.log_size)
    repair_chunk(pool, at, h.log_size, h.id);
}

}  // namespace stele::fuzz
