// Chooses the places of a pool with SQLite databases to mutate: docs/format/sqlite.md. What the
// pool says of a database is a few words among many bytes of pages, so it has its own share.
#include <adapters/sqlite/stored.h>
#include <format/heap_layout.h>
#include <tests/fuzz/mutate.h>
#include <tests/fuzz/repair.h>

namespace stele::fuzz {

namespace {

using base::rng;

// Words of a stored_database, by their order in it.
constexpr std::uint64_t count_word = 5, extents_word = 7, next_word = 8,
                        words_of_database = sizeof(sqlite::stored_database) / 8;
constexpr std::uint64_t most_databases = 8, most_extents = 16;

struct range {
  std::uint64_t from, bytes;
};
struct places {
  std::vector<range> said, pages;  // what the pool says of databases; their extents
};

std::uint64_t target_of(image pool, std::uint64_t at) {
  return pool.word(at) == 0 ? 0 : at + pool.word(at);
}

places places_of(image pool) {
  places all;
  const std::uint64_t root = pool.word(pool.header().home_offset);
  all.said.push_back({root, 8});
  std::uint64_t at = target_of(pool, root);
  for (std::uint64_t n = 0; n < most_databases && at != 0 && at < pool.size(); ++n) {
    all.said.push_back({at, 8 * words_of_database});
    const std::uint64_t extents = target_of(pool, at + 8 * extents_word),
                        used = std::min(pool.word(at + 8 * count_word), most_extents);
    if (used != 0) all.said.push_back({extents, 8 * used});
    for (std::uint64_t e = 0; e < used; ++e)
      all.pages.push_back({target_of(pool, extents + 8 * e), sqlite::extent_bytes(e)});
    at = target_of(pool, at + 8 * next_word);
  }
  return all;
}

const range& one_of(const std::vector<range>& all, rng& random) {
  return all[random.below(all.size())];
}

// A pointer to what another one leads to, a pointer to anywhere, or another number.
void mutate_said(image pool, const places& all, rng& random) {
  const range &here = one_of(all.said, random), &there = one_of(all.said, random);
  const std::uint64_t at = here.from + 8 * random.below(here.bytes / 8),
                      other = there.from + 8 * random.below(there.bytes / 8);
  switch (random.below(4)) {
    case 0:
      return pool.put(at, target_of(pool, other) - at);
    case 1:
      return pool.put(at, random.below(pool.size()) / 64 * 64 - at);
    default:
      return mutate_link(pool, random, at, 8);
  }
}

// Headers, counts and offsets of a page are at its begin, and of one to four bytes.
void mutate_page(image pool, const places& all, rng& random) {
  if (all.pages.empty()) return;
  const range& r = one_of(all.pages, random);
  const std::uint64_t page = r.from + random.below(r.bytes / 512) * 512;
  const std::uint64_t at = page + random.below(random.below(2) == 0 ? 112 : 512);
  if (!pool.has(at, 4)) return;
  for (std::uint64_t left = 1 + random.below(4); left != 0; --left)
    pool.bytes()[at + left - 1] = static_cast<std::byte>(random.below(256));
}

}  // namespace

void mutate_sqlite(std::vector<std::byte>& bytes, rng& random, std::size_t) {
  const image pool(bytes);
  const places all = places_of(pool);
  for (std::uint64_t left = 1 + random.below(4); left != 0; --left) switch (random.below(16)) {
      case 0:
        mutate_once(pool, random);
        break;
      case 1:
      case 2:
        mutate_link(pool, random, pool.header().home_offset,
                    pool.size() - std::min(pool.size(), pool.header().home_offset));
        break;
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        mutate_page(pool, all, random);
        break;
      default:
        mutate_said(pool, all, random);
    }
  repair_pool(pool);
}

}  // namespace stele::fuzz
