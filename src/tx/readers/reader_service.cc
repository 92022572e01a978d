// See reader_service.h.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <tx/readers/reader_service.h>
#include <tx/runtime.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace stele::detail {

using base::fail;

kept_pages::kept_pages(const storage::pool_file& file, std::uint64_t its_number) noexcept
    : number(its_number), home_(file.base()), home_offset_(file.header().home_offset) {}

result<> kept_pages::keep_home(std::uint64_t bytes) {
  const kept_layout layout{(bytes + page_size - 1) / page_size};
  STELE_ASSERT(bytes > home_offset_ && bytes >= pool_bytes_);
  STELE_ASSERT(layout.pages * page_size >= bytes && layout.is_possible());
  auto memory = shared_memory::make(layout.bytes(), false);
  if (!memory) return std::unexpected(memory.error());
  if (!memory->reserve(0, layout.pages_offset()))
    return fail(errc::full, "no memory is left to keep pages for another process");
  resize(bytes);
  memory_ = std::move(*memory);
  layout_ = layout;
  pool_bytes_ = bytes;
  include_pages(home_offset_, bytes - home_offset_);
  return {};
}

// L3: the copy before its mark, that before the store to home.
void kept_pages::copy_before_store(std::uint64_t offset) noexcept {
  STELE_ASSERT(offset % page_size == 0 && offset >= home_offset_ && offset < pool_bytes_);
  const std::uint64_t at = layout_.pages_offset() + offset;
  STELE_ASSERT(at + page_size <= memory_.size());
  // Only the thread that has claimed the page stores to its mark.
  STELE_ASSERT(memory_.at()[offset / page_size] == std::byte{kept_layout::in_home});
  const bool has_room = memory_.reserve(at, page_size);
  const auto mark = [&] {
    std::atomic_ref(reinterpret_cast<std::uint8_t&>(memory_.at()[offset / page_size]))
        .store(has_room ? kept_layout::kept : kept_layout::lost, std::memory_order_release);
  };
  if (planted_in_schedule_explorer(base::mutant::kept_marked_first)) mark();
  const std::uint64_t bytes = std::min<std::uint64_t>(page_size, pool_bytes_ - offset);
  for (std::uint64_t i = 0; has_room && i < bytes; i += 8) {
    const std::uint64_t word = __atomic_load_n(
        reinterpret_cast<const std::uint64_t*>(home_ + offset + i), __ATOMIC_RELAXED);
    std::memcpy(memory_.at() + at + i, &word, 8);
  }
  mark();
}

result<> reader_service::add_reader() {
  STELE_ASSERT(readers_ == 0 || locks_.at() != nullptr);
  if (runtime_.in_place())
    return fail(errc::unsupported,
                fmt::format("{} is open with the mechanism 'none' under a policy without locks: it "
                            "stores in place, and no other process can read it meanwhile",
                            runtime_.state().file.path()));
  if (readers_ == 0) {
    if (locks_.at() == nullptr) {
      auto memory = shared_memory::make(
          line_lock_count(runtime_.size_between_pauses()) * sizeof(line_lock), true);
      if (!memory) return std::unexpected(memory.error());
      locks_ = std::move(*memory);
    }
    STELE_ASSERT(locks_.size() % sizeof(line_lock) == 0 &&
                 std::has_single_bit(locks_.size() / sizeof(line_lock)));
    const pool_pause paused = runtime_.pause();
    runtime_.use_locks({.locks = reinterpret_cast<line_lock*>(locks_.at()),
                        .mask = locks_.size() / sizeof(line_lock) - 1,
                        .clock = &runtime_.state().clock,
                        .guards_reads = runtime_.policy() == concurrency::stm,
                        .shared = true});
  }
  ++readers_;
  return {};
}

void reader_service::remove_reader() noexcept {
  STELE_ASSERT(readers_ != 0 && locks_.at() != nullptr);
  if (--readers_ != 0) return;
  const pool_pause paused = runtime_.pause();
  runtime_.use_locks(runtime_.own_locks());
}

void reader_service::settle() noexcept {
  static const thread_context nobody;
  runtime_.release_idle_overlays(nobody);
}

result<std::unique_ptr<kept_pages>> reader_service::begin_moment() {
  STELE_ASSERT(readers_ != 0);  // who asks has attached
  auto pages = std::make_unique<kept_pages>(runtime_.state().file, ++next_moment_);
  if (auto begun = runtime_.begin_keeping_pages(*pages); !begun)
    return std::unexpected(begun.error());
  STELE_ASSERT(pages->fd() >= 0 && pages->layout().pages != 0);
  return pages;
}

void reader_service::end_moment(kept_pages& m) noexcept {
  STELE_ASSERT(m.number != 0 && m.number <= next_moment_);
  runtime_.end_keeping_pages(m);
}

}  // namespace stele::detail
