// Free chunks and those that wait for readers.
#include <pool/log_space.h>

#include <algorithm>

namespace stele::storage {

log_space::log_space(const pool_file& file, const log_structured_options& o, unsigned lanes)
    : file_(file),
      chunk_words_(static_cast<std::uint32_t>(file.header().log_size / 8)),
      lanes_(lanes),
      options(o),
      epochs(lanes),
      ledger(file.header().log_offset / 8, chunk_words_, file.header().log_chunks()),
      map({.home_words = file.header().home_size / 8, .log_words = file.header().size / 8, .two_layers = o.two_layers, .lock_free = o.lock_free_readers}, ledger, epochs),
      chunks_(file.header().log_chunks()) {
  free_.reserve(chunks_.size());  // each is in one of the two at most: they take no memory later
  emptied_.reserve(chunks_.size());
  for (std::uint32_t c = chunk_count(); c-- > 0;) free_.push_back(c);
  free_count_.store(chunk_count());
}

std::optional<std::uint32_t> log_space::take(std::uint32_t kept) {
  const std::lock_guard hold(mutex_);
  if (free_.size() <= kept) return std::nullopt;
  const std::uint32_t c = free_.back();
  free_.pop_back();
  free_count_.store(static_cast<std::uint32_t>(free_.size() + emptied_.size()), std::memory_order_relaxed);
  chunks_[c].use.store(chunk_use::open, std::memory_order_relaxed);
  if (c >= touched_) {  // chunks are taken for the first time in their order in the file
    constexpr std::uint32_t ahead_bytes = 256u << 10;
    const std::uint32_t count = std::max(1u, ahead_bytes / (chunk_words_ * 8));
    file_.touch(offset_of(c), std::size_t{count} * chunk_words_ * 8);
    touched_ = c + count;
  }
  return c;
}

void log_space::drop_used() {
  std::erase_if(free_, [&](std::uint32_t c) { return chunks_[c].use.load(std::memory_order_relaxed) != chunk_use::free; });
  free_count_.store(static_cast<std::uint32_t>(free_.size()));
}

void log_space::give_back(std::uint32_t c) {
  const std::lock_guard hold(mutex_);
  chunks_[c].use.store(chunk_use::free, std::memory_order_relaxed);
  free_.push_back(c);
  free_count_.store(static_cast<std::uint32_t>(free_.size() + emptied_.size()), std::memory_order_relaxed);
}

void log_space::emptied(std::uint32_t c) {
  const std::lock_guard hold(mutex_);
  chunks_[c].use.store(chunk_use::emptied, std::memory_order_relaxed);
  chunks_[c].epoch = epochs.now();
  emptied_.push_back(c);
  free_count_.store(static_cast<std::uint32_t>(free_.size() + emptied_.size()), std::memory_order_relaxed);
}

bool log_space::collect() {
  const std::lock_guard hold(mutex_);
  if (emptied_.empty()) return true;
  (void)epochs.advance();
  const std::uint64_t oldest = epochs.oldest();
  const auto waiting = std::partition(emptied_.begin(), emptied_.end(), [&](std::uint32_t c) { return chunks_[c].epoch >= oldest; });
  const bool some = waiting != emptied_.end();
  for (auto c = waiting; c != emptied_.end(); ++c) {
    chunks_[*c].use.store(chunk_use::free, std::memory_order_relaxed);
    free_.push_back(*c);
  }
  emptied_.erase(waiting, emptied_.end());
  return some;
}

}  // namespace stele::storage
