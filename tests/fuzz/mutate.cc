// Chooses the places of a pool to mutate, and the new values.
#include <format/heap_layout.h>
#include <format/log_chunk.h>
#include <format/log_line.h>
#include <tests/fuzz/mutate.h>
#include <tests/fuzz/repair.h>

#include <array>
#include <iterator>

namespace stele::fuzz {

namespace {

using base::rng;

struct field_at {
  std::uint16_t offset, size;
};
// The header's fields, except magic and checksum.
constexpr field_at header_fields[] = {{8, 4},   {12, 4},  {16, 8},  {24, 8},  {32, 8},
                                      {40, 8},  {48, 4},  {52, 4},  {56, 8},  {64, 8},
                                      {72, 8},  {80, 8},  {152, 4}, {156, 4}, {160, 8},
                                      {168, 8}, {176, 4}, {184, 8}, {192, 8}, {200, 8}};
constexpr std::uint16_t control_words[] = {512, 576,  704,  768,  832,  896,  904, 912,
                                           960, 1024, 1032, 1088, 1096, 1152, 1216};

// A value to put in place of `old`.
std::uint64_t value_for(std::uint64_t old, image pool, rng& random) {
  const std::uint64_t bit = std::uint64_t{1} << random.below(64);
  const field_at other = header_fields[random.below(std::size(header_fields))];
  switch (random.below(12)) {
    case 0:
      return 0;
    case 1:
      return ~std::uint64_t{0} >> random.below(64);
    case 2:
      return bit;
    case 3:
      return bit - 1;
    case 4:
      return old ^ bit;
    case 5:
      return old + random.below(16);
    case 6:
      return old - random.below(16);
    case 7:
      return old * 2;
    case 8:
      return pool.word(other.offset) + random.below(3) - 1;
    case 9:
      return pool.word(other.offset) / 8;
    case 10:
      return random.below(pool.size() + 1) & ~std::uint64_t{7};
    default:
      return random.below(256);
  }
}

void mutate_header(image pool, rng& random) {
  const field_at f = header_fields[random.below(std::size(header_fields))];
  const std::uint64_t mask = f.size == 8 ? ~std::uint64_t{0} : 0xFFFF'FFFF;
  const std::uint64_t old = pool.word(f.offset);
  pool.put(f.offset, (old & ~mask) | (value_for(old & mask, pool, random) & mask));
}

void mutate_control(image pool, rng& random) {
  const std::uint64_t offset = control_words[random.below(std::size(control_words))];
  pool.put(offset, value_for(pool.word(offset) & (format::guarded_limit - 1), pool, random) &
                       (format::guarded_limit - 1));
  if (random.below(4) == 0) {  // the kind of logs, and whether the pool is open
    const format::session s{random.below(4) != 0, static_cast<std::uint8_t>(random.below(9))};
    pool.put(format::session_offset, s.pack());
  }
}

// Changes a field of the word: 8 to 64 of its bits.
std::uint64_t part_changed(std::uint64_t old, image pool, rng& random) {
  const unsigned shift = static_cast<unsigned>(random.below(8) * 8),
                 bits = static_cast<unsigned>(8 << random.below(4));
  const std::uint64_t mask = (bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)
                             << shift;
  return (old & ~mask) | (value_for((old & mask) >> shift, pool, random) << shift & mask);
}

// The offset of a random word, not 0 if such a word is near, because most words are 0.
std::uint64_t used_word(image pool, std::uint64_t from, std::uint64_t bytes, rng& random) {
  const std::uint64_t words = std::max<std::uint64_t>(bytes / 8, 1);
  std::uint64_t at = random.below(words);
  for (unsigned tries = 0; tries < 64 && pool.word(from + 8 * at) == 0; ++tries)
    at = (at + 1) % words;
  return from + 8 * at;
}

// Torn bits mostly stay: the log ends where they change.
void mutate_log(image pool, rng& random) {
  const auto h = pool.header();
  if (h.log_size < 64 || h.log_size > pool.size() || h.log_count == 0) return;
  const std::uint64_t log =
      h.log_offset + random.below(std::min<std::uint64_t>(h.log_count, 64)) * h.log_size;
  if (random.below(6) == 0)
    return pool.put(log, value_for(pool.word(log) & (format::guarded_limit - 1), pool, random) &
                             (format::guarded_limit - 1));
  const std::uint64_t offset = used_word(
      pool, log + 64,
      std::min<std::uint64_t>(h.log_size - 64, random.below(2) == 0 ? 512 : h.log_size), random);
  const std::uint64_t old = pool.word(offset);
  std::uint64_t now = part_changed(old, pool, random);
  if (random.below(16) != 0) now = (now & ~(format::torn_bit | 1)) | (old & (format::torn_bit | 1));
  pool.put(offset, now);
}

void mutate_table(image pool, rng& random) {
  const auto h = pool.header();
  const std::uint64_t offset =
      h.table_offset + 8 * random.below(std::min<std::uint64_t>(h.chunk_count, 64) + 1);
  const format::chunk_descriptor d{static_cast<format::chunk_kind>(random.below(7)),
                                   static_cast<std::uint8_t>(random.below(73)),
                                   static_cast<std::uint32_t>(value_for(1, pool, random))};
  pool.put(offset, random.below(2) == 0 ? d.pack() : part_changed(pool.word(offset), pool, random));
}

void mutate_home(image pool, rng& random) {
  const auto h = pool.header();
  const std::uint64_t from = random.below(8) == 0 ? h.home_offset : h.chunks_offset;
  if (from >= pool.size()) return;
  const std::uint64_t offset =
      used_word(pool, from, random.below(8) == 0 ? 64 : pool.size() - from, random);
  pool.put(offset, part_changed(pool.word(offset), pool, random));
}

void mutate_chunk(image pool, rng& random) {
  const auto h = pool.header();
  if (h.log_size < 64 || h.log_size > pool.size()) return;
  const std::uint64_t chunk = h.log_offset + random.below(pool.size() / h.log_size) * h.log_size;
  const std::uint64_t offset =
      used_word(pool, chunk, random.below(2) == 0 ? 128 : h.log_size, random);
  pool.put(offset, part_changed(pool.word(offset), pool, random));
}

void mutate_parity(image pool, rng& random) {
  const auto h = pool.header();
  if (h.parity_block_size == 0 || h.parity_offset >= pool.size()) return mutate_home(pool, random);
  const std::uint64_t block = h.parity_offset + random.below(64) * h.parity_block_size;
  const std::uint64_t offset =
      used_word(pool, block, random.below(2) == 0 ? 32 : h.parity_block_size, random);
  pool.put(offset, part_changed(pool.word(offset), pool, random));
}

void mutate_anything(image pool, rng& random) {
  const std::uint64_t at = random.below(pool.size()), other = random.below(pool.size());
  const std::uint64_t count =
      std::min({std::uint64_t{1} << random.below(12), pool.size() - at, pool.size() - other});
  if (random.below(2) == 0)
    std::memmove(pool.bytes().data() + at, pool.bytes().data() + other, count);
  else
    pool.bytes()[at] ^= std::byte{1} << random.below(8);
}

}  // namespace

void mutate_once(image pool, rng& random) {
  const bool log_structured = pool.header().home == format::home_kind::log;
  switch (random.below(16)) {
    case 0:
    case 1:
      return mutate_header(pool, random);
    case 2:
    case 3:
      return mutate_control(pool, random);
    case 4:
    case 5:
    case 6:
    case 7:
      return log_structured ? mutate_chunk(pool, random) : mutate_log(pool, random);
    case 8:
    case 9:
      return log_structured ? mutate_chunk(pool, random) : mutate_table(pool, random);
    case 10:
      return mutate_parity(pool, random);
    case 11:
      return mutate_anything(pool, random);
    default:
      return log_structured ? mutate_chunk(pool, random) : mutate_home(pool, random);
  }
}

void mutate_link(image pool, rng& random, std::uint64_t from, std::uint64_t bytes) {
  const std::uint64_t at = used_word(pool, from, bytes, random),
                      other = used_word(pool, from, bytes, random);
  const std::uint64_t old = pool.word(at), link = (std::uint64_t{1} << 44) - 1;
  switch (random.below(6)) {
    case 0:
      return pool.put(at, pool.word(other));
    case 1:  // the same target, if the other reference counts from the same base
      return pool.put(at, (old & ~link) | (pool.word(other) & link));
    case 2:
      return pool.put(at, (old & ~link) | ((old + random.below(64) - 32) & link));
    case 3:
      return pool.put(at, old ^ std::uint64_t{1} << (random.below(3) == 0 ? 44 : random.below(20)));
    default:
      return pool.put(at, part_changed(old, pool, random));
  }
}

void mutate_pool(std::vector<std::byte>& bytes, rng& random, std::size_t most) {
  if (bytes.size() < format::front_size) return bytes.resize(format::front_size);
  if (random.below(64) == 0)
    bytes.resize(std::min<std::size_t>(most, format::front_size + random.below(2 * bytes.size())));
  const image pool(bytes);
  const std::uint64_t times = 1 + random.below(random.below(4) == 0 ? 6 : 2);
  for (std::uint64_t i = 0; i < times; ++i) mutate_once(pool, random);
  if (random.below(8) != 0) repair_pool(pool);
}

void mutate_kv(std::vector<std::byte>& bytes, rng& random, std::size_t) {
  const image pool(bytes);
  const auto h = pool.header();
  const bool log_structured = h.home == format::home_kind::log;
  const std::uint64_t from = log_structured ? h.log_offset : h.chunks_offset,
                      root = log_structured ? 0 : pool.word(h.home_offset);
  if (from >= pool.size()) return;
  for (std::uint64_t left = 1 + random.below(4); left != 0; --left)
    if (root != 0 && random.below(8) == 0)
      mutate_link(pool, random, root, 344);
    else
      mutate_link(pool, random, from, pool.size() - from);
  repair_pool(pool);
}

// Links are distances in bytes from the word itself, in all of its bits or in some.
void mutate_document(std::vector<std::byte>& bytes, rng& random, std::size_t) {
  const image pool(bytes);
  const auto h = pool.header();
  const std::uint64_t from = h.home == format::home_kind::log ? h.log_offset : h.chunks_offset;
  if (from >= pool.size()) return;
  for (std::uint64_t left = 1 + random.below(4); left != 0; --left) {
    const std::uint64_t at = used_word(pool, from, pool.size() - from, random),
                        other = used_word(pool, from, pool.size() - from, random),
                        old = pool.word(at);
    switch (random.below(6)) {
      case 0:
        pool.put(at, pool.word(other));
        break;
      case 1:  // the target of another link
        pool.put(at, pool.word(other) + other - at);
        break;
      case 2:
        pool.put(at, other - at);
        break;
      case 3:
        pool.put(at, old + 8 * random.below(32) - 128);
        break;
      default:
        pool.put(at, part_changed(old, pool, random));
    }
  }
  repair_pool(pool);
}

void mutate_bytes(std::vector<std::byte>& bytes, rng& random, std::size_t most,
                  std::span<const std::string_view> dictionary) {
  const std::uint64_t times = 1 + random.below(4);
  for (std::uint64_t i = 0; i < times; ++i) {
    if (bytes.empty()) bytes.resize(std::min<std::size_t>(most, 64));
    const image all(bytes);
    const std::uint64_t at = random.below(bytes.size());
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random.below(dictionary.empty() ? 5 : 6)) {
      case 0:
        bytes[at] = static_cast<std::byte>(random.below(256));
        break;
      case 1:
        all.put(at & ~std::uint64_t{7}, value_for(all.word(at & ~std::uint64_t{7}), all, random));
        break;
      case 2:
        bytes.erase(from,
                    from + static_cast<std::ptrdiff_t>(
                               1 + random.below(std::min<std::uint64_t>(64, bytes.size() - at))));
        break;
      case 3:
        mutate_anything(all, random);
        break;
      case 4: {
        const std::vector<std::byte> piece(
            from, from + static_cast<std::ptrdiff_t>(
                             random.below(std::min<std::uint64_t>(256, bytes.size() - at))));
        if (bytes.size() + piece.size() <= most)
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size())),
                       piece.begin(), piece.end());
        break;
      }
      default: {
        const auto word = std::as_bytes(std::span(dictionary[random.below(dictionary.size())]));
        if (bytes.size() + word.size() <= most) bytes.insert(from, word.begin(), word.end());
      }
    }
  }
}

}  // namespace stele::fuzz
