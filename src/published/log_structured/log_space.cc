// Free chunks, and retired chunks that wait for readers.
#include <base/assert.h>
#include <published/log_structured/log_space.h>

#include <algorithm>
#include <utility>

namespace stele::storage {

namespace {

// The order of the heap of free chunks: its top is the chunk to use next.
auto used_later(const std::vector<log_space::chunk>& chunks) {
  return [&chunks](std::uint32_t a, std::uint32_t b) {
    return std::pair(chunks[a].generation, a) > std::pair(chunks[b].generation, b);
  };
}

}  // namespace

log_space::log_space(const pool_file& file, const log_structured_options& o, unsigned lanes)
    : file_(file),
      chunk_words_(static_cast<std::uint32_t>(file.header().log_size / 8)),
      lanes_(lanes),
      options(o),
      epochs(lanes),
      usage(file.header().log_offset / 8, chunk_words_, file.header().log_chunks()),
      map({.home_words = file.header().home_size / 8,
           .log_words = file.header().size / 8,
           .two_layers = o.two_layers,
           .lock_free = o.lock_free_readers,
           .cached_groups = cached_groups(),
           .media = reinterpret_cast<const std::uint64_t*>(file.base())},
          usage, epochs),
      chunks_(file.header().log_chunks()) {
  free_.reserve(chunks_.size());  // a chunk is in at most one of the two lists, so they never grow
  retired_.reserve(chunks_.size());
  for (std::uint32_t c = chunk_count(); c-- > 0;) add_free(c);
  count_free();
  STELE_ASSERT_ALWAYS(free_chunks() == chunk_count());
}

bool log_space::lists_are_sound() const noexcept {
  const auto all_are = [this](const auto& list, chunk_state s) {
    return std::ranges::all_of(
        list, [&](std::uint32_t c) { return chunks_[c].use.load(std::memory_order_relaxed) == s; });
  };
  return all_are(free_, chunk_state::free) && all_are(retired_, chunk_state::retired) &&
         (!options.level_wear || std::ranges::is_heap(free_, used_later(chunks_)));
}

void log_space::count_free() noexcept {
  STELE_ASSERT(free_.size() + retired_.size() <= chunks_.size());  // a chunk is in one list at most
  free_count_.store(static_cast<std::uint32_t>(free_.size() + retired_.size()),
                    std::memory_order_relaxed);
}

void log_space::add_free(std::uint32_t c) {
  STELE_ASSERT(free_.size() < free_.capacity());  // freeing allocates no memory
  chunks_[c].use.store(chunk_state::free, std::memory_order_relaxed);
  free_.push_back(c);
  if (options.level_wear) std::ranges::push_heap(free_, used_later(chunks_));
}

std::uint32_t log_space::take_free() {
  STELE_ASSERT(!free_.empty());
  if (options.level_wear) std::ranges::pop_heap(free_, used_later(chunks_));
  const std::uint32_t c = free_.back();
  free_.pop_back();
  return c;
}

std::optional<std::uint32_t> log_space::allocate_chunk(std::uint32_t reserve) {
  const std::lock_guard hold(mutex_);
  if (free_.size() <= reserve) return std::nullopt;
  const std::uint32_t c = take_free();
  count_free();
  STELE_ASSERT(chunks_[c].use.load(std::memory_order_relaxed) == chunk_state::free);
  chunks_[c].use.store(chunk_state::open, std::memory_order_relaxed);
  if (c >= populated_chunks_) {  // chunks are first allocated in file order
    constexpr std::uint32_t ahead_bytes = 256u << 10;
    const std::uint32_t count = std::max(1u, ahead_bytes / (chunk_words_ * 8));
    file_.populate(offset_of(c), std::size_t{count} * chunk_words_ * 8);
    populated_chunks_ = c + count;
  }
  return c;
}

void log_space::remove_used() {
  std::erase_if(free_, [&](std::uint32_t c) {
    return chunks_[c].use.load(std::memory_order_relaxed) != chunk_state::free;
  });
  if (options.level_wear) std::ranges::make_heap(free_, used_later(chunks_));
  count_free();
  STELE_ASSERT_WHOLE(lists_are_sound());
}

void log_space::release_chunk(std::uint32_t c) {
  const std::lock_guard hold(mutex_);
  STELE_ASSERT(chunks_[c].use.load(std::memory_order_relaxed) == chunk_state::open);
  add_free(c);
  count_free();
}

void log_space::retire_chunk(std::uint32_t c) {
  const std::lock_guard hold(mutex_);
  // log_structured.md, C6: what was emptied was a cleaner's, and nothing maps to it.
  STELE_ASSERT(chunks_[c].use.load(std::memory_order_relaxed) == chunk_state::cleaning);
  STELE_ASSERT(retired_.size() < retired_.capacity());
  chunks_[c].use.store(chunk_state::retired, std::memory_order_relaxed);
  chunks_[c].epoch = epochs.now();
  retired_.push_back(c);
  count_free();
}

bool log_space::reclaim_retired() {
  const std::lock_guard hold(mutex_);
  if (retired_.empty()) return true;
  (void)epochs.advance();
  const std::uint64_t oldest = epochs.oldest_pinned();
  const auto waiting = std::partition(retired_.begin(), retired_.end(),
                                      [&](std::uint32_t c) { return chunks_[c].epoch >= oldest; });
  const bool some = waiting != retired_.end();
  for (auto c = waiting; c != retired_.end(); ++c) add_free(*c);
  retired_.erase(waiting, retired_.end());
  STELE_ASSERT_WHOLE(lists_are_sound());
  return some;
}

}  // namespace stele::storage
