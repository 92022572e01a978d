// What others see of a log-structured pool's home: its space, its states of blocks, its words.
#include <base/assert.h>
#include <published/log_structured/log_home.h>
#include <published/log_structured/rebuild.h>
#include <published/mutant.h>
#include <tx/engine.h>

#include <cstring>

namespace stele::storage {

bool logged_block_states::is_used(const slab& s, std::uint32_t block) const noexcept {
  STELE_ASSERT(s.block_size != 0 && s.block_size % 8 == 0);
  if (planted(published::mutant::ls_allocation_forgotten)) return false;
  return space_.map.any_data(space_.home_of(s.block_offset(block)), s.block_size / 8);
}

}  // namespace stele::storage

namespace stele::detail {

log_home::log_home(const storage::pool_file& file, const log_structured_options& options,
                   unsigned lanes)
    : space(file, options, lanes), states_(space) {
  STELE_ASSERT_ALWAYS(lanes > file.header().log_count);  // those of cleaners too
  for (unsigned log = 0; log < file.header().log_count; ++log) views_.emplace_back(space, log);
}

result<> log_home::verify(bool closed) const {
  return verify_log(space, closed);
}

// Counts the bytes in the log, not addresses.
void log_home::measure(pool_space& s) const {
  const auto& h = space.file().header();
  const std::uint64_t chunk_bytes = std::uint64_t{space.chunk_words()} * 8;
  const std::uint64_t in_use = (space.chunk_count() - space.free_chunks()) * chunk_bytes;
  s.log_bytes = h.log_offset;
  s.used_bytes = space.usage.total_live() * 8;
  s.free_bytes = h.size - h.log_offset - s.used_bytes;
  s.largest_free = space.free_chunks() * chunk_bytes;
  s.fragmentation =
      in_use == 0 ? 0 : 1 - static_cast<double>(s.used_bytes) / static_cast<double>(in_use);
}

void log_home::add_to(mechanism_counters& c) const {
  c.add("map_bytes", space.map.bytes() + space.map.word_cache_bytes());
  for (const mapped_home& view : views_) {
    c.add("map_bytes", view.cache().bytes());
    c.add("map_hits", view.cache().hits);
    c.add("map_misses", view.cache().misses);
    c.add("cached_words", view.cached_words);
  }
}

storage::log_space* log_space_of(engine& e) noexcept {
  virtual_home* const home = e.home();
  return home != nullptr ? &static_cast<log_home*>(home)->space : nullptr;
}

// One lookup in the home map for each run of words that are together in the log.
void mapped_home::copy(std::uint64_t offset, std::byte* to, std::size_t size) noexcept {
  using pair [[gnu::vector_size(16)]] = std::uint64_t;
  const auto* const log = reinterpret_cast<const std::uint64_t*>(space_.file().base());
  const auto word = [&](const storage::home_map::lookup_result& f, std::uint64_t i) {
    return storage::is_data(f.at) ? __atomic_load_n(log + f.at + i, __ATOMIC_ACQUIRE) : 0;
  };
  for (std::uint64_t home = space_.home_of(offset), skip = offset & 7; size != 0; skip = 0) {
    const storage::home_map::lookup_result f = space_.map.find(home, cache_);
    STELE_ASSERT(f.run != 0);
    // 16 bytes at a time, as in snapshot::try_copy.
    if (skip == 0 && size % sizeof(pair) == 0 && f.run * std::uint64_t{8} >= size) {
      for (std::size_t at = 0; at < size; at += sizeof(pair)) {
        const pair two = {word(f, at / 8), word(f, at / 8 + 1)};
        std::memcpy(to + at, &two, sizeof two);
      }
      return;
    }
    for (std::uint64_t i = 0; i < f.run && size != 0; ++i, ++home, skip = 0) {
      const std::uint64_t one = word(f, i);
      const std::size_t take = std::min<std::size_t>(8 - skip, size);
      std::memcpy(to, reinterpret_cast<const std::byte*>(&one) + skip, take);
      to += take, size -= take;
    }
  }
}

}  // namespace stele::detail
