// A transaction's loads of byte ranges that try_fast_read does not take: parts of single lines.
//
// Not inline: load_routed_range mostly copies lines of which nothing is routed, and would save
// registers for these (decision 7).
#include <base/assert.h>
#include <tx/moment.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

void transaction::copy_through_overlay(std::uint64_t offset, std::byte* to,
                                       std::size_t size) noexcept {
  const std::uint64_t line = line_of(offset), skip = offset - line;
  STELE_ASSERT(size != 0 && skip + size <= line_size);
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w)
    words[w] = read_through_overlay(line + 8 * w, home_word(line + 8 * w));
  std::memcpy(to, reinterpret_cast<const std::byte*>(words) + skip, size);
}

template <class Home>
[[gnu::always_inline]] inline void transaction::copy_from(Home& home, std::uint64_t offset,
                                                          std::byte* to,
                                                          std::size_t size) noexcept {
  if (!overlay_.empty()) [[unlikely]]
    return copy_through_overlay(offset, to, size);
  home.copy(offset, to, size);
}

[[gnu::noinline]] void transaction::load_part_slow(std::uint64_t offset, std::byte* to,
                                                   std::size_t size) {
  with_home(home_, [&](auto& home) {
    snapshot_.read_consistently(offset, [&] { copy_from(home, offset, to, size); });
  });
}

template <class Home>
[[gnu::always_inline]] inline void transaction::load_part_from(Home& home, std::uint64_t offset,
                                                               std::byte* to, std::size_t size) {
  const auto copy = [&] { copy_from(home, offset, to, size); };
  if (!snapshot_.in_force()) return copy();
  if (!snapshot_.try_read(offset, copy)) [[unlikely]]
    load_part_slow(offset, to, size);
}

[[gnu::noinline]] void transaction::load_part_from(home_view& home, std::uint64_t offset,
                                                   std::byte* to, std::size_t size) {
  load_part_from<home_view>(home, offset, to, size);
}

[[gnu::noinline]] void transaction::load_part_from(foreign_home& home, std::uint64_t offset,
                                                   std::byte* to, std::size_t size) {
  load_part_from<foreign_home>(home, offset, to, size);
  home.check();
}

// Bytes of a line in the write set: those stored, over those of home.
[[gnu::noinline]] void transaction::load_own_part(const written_line& own, std::size_t skip,
                                                  std::byte* to, std::size_t size) {
  STELE_ASSERT(size != 0 && skip + size <= line_size);
  const std::uint64_t wanted = byte_range(skip, size);
  if ((own.mask & wanted) != wanted)
    snapshot_.in_force()
        ? load_part_slow(own.offset + skip, to, size)
        : with_home(home_, [&](auto& home) { copy_from(home, own.offset + skip, to, size); });
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w)
    words[w] =
        own.word_mask(static_cast<unsigned>(w)) != 0 ? value(own, static_cast<unsigned>(w)) : 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(words);
  for (std::uint64_t left = own.mask & wanted; left != 0; left &= left - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(left));
    to[byte - skip] = bytes[byte];
  }
}

// Apart: a call in load_part() would make it save registers. An exception ends the transaction.
[[gnu::noinline]] void transaction::load_part_observed(std::uint64_t offset, std::byte* to,
                                                       std::size_t size) {
  load_observer* const observer = std::exchange(observers_.loads_now, nullptr);
  STELE_ASSERT(observer != nullptr && size < 64 * 1024);
  observer->load(offset, size);
  load_part(offset, to, size);
  observers_.loads_now = observer;
}

// Bytes of one line, from home or from the write set. The observer is asked first: behind the
// filter, its call would make gcc save a register for the other loads.
void transaction::load_part(std::uint64_t offset, std::byte* to, std::size_t size) {
  if (observers_.loads_now != nullptr) [[unlikely]]
    return load_part_observed(offset, to, size);
  const std::uint64_t line = line_of(offset);
  STELE_ASSERT(size != 0 && offset - line + size <= line_size);
  if ((filter_ & filter_bit(this_access.pool_base + line)) != 0) {
    if (const written_line* own = writes_.find(line))
      return load_own_part(*own, offset - line, to, size);
    if (moment_ != nullptr) [[unlikely]]
      return moment_->copy(offset, to, size);
  }
  with_home(home_, [&](auto& home) { load_part_from(home, offset, to, size); });
}

}  // namespace stele::detail
