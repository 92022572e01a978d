// The slow paths of a transaction's loads and stores: everything that tx/fast_paths.h calls, stores
// that do not go to the write set, and volatile memory.
#include <base/assert.h>
#include <tx/moment.h>
#include <tx/transaction_inl.h>

#include <algorithm>
#include <bit>

namespace stele::detail {

namespace {

// Copies memory that another thread may be storing to; the caller validates the lock afterwards and
// drops such a copy. Atomic for aligned 4 and 8 bytes.
void copy_racing(void* to, std::uintptr_t from, std::size_t size) noexcept {
  const auto take = [&]<class T>(T) {
    const T value = __atomic_load_n(reinterpret_cast<const T*>(from), __ATOMIC_ACQUIRE);
    std::memcpy(to, &value, sizeof value);
  };
  if (size == 8 && from % 8 == 0) return take(std::uint64_t{});
  if (size == 4 && from % 4 == 0) return take(std::uint32_t{});
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  std::atomic_thread_fence(std::memory_order_acquire);
}

// A store, for the observer.
written_line part_of_word(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) noexcept {
  STELE_ASSERT(offset % 8 == 0 && mask != 0);
  const std::uint64_t line = line_of(offset);
  const auto word = static_cast<unsigned>(offset - line) / 8;
  written_line part(line, std::uint64_t{mask} << (8 * word));
  part.words[word] = bits;
  return part;
}
// The same for bytes of one line; from: null for zeroes.
written_line part_of_line(std::uint64_t offset, const std::byte* from, std::size_t size) noexcept {
  const std::uint64_t line = line_of(offset), skip = offset - line;
  written_line part(line, byte_range(skip, size));
  part.words = {};
  if (from != nullptr)
    std::memcpy(reinterpret_cast<std::byte*>(part.words.data()) + skip, from, size);
  return part;
}

}  // namespace

[[gnu::noinline]] std::uint64_t transaction::load_from(home_view& home, std::uint64_t offset) {
  return load_from<home_view>(home, offset);
}

[[gnu::noinline]] std::uint64_t transaction::load_from(foreign_home& home, std::uint64_t offset) {
  const std::uint64_t word = load_from<foreign_home>(home, offset);
  home.check();
  return word;
}

// Of a line that the filter has, which may be stored by this transaction or in its overlay; of all
// lines, if loads are observed.
std::uint64_t transaction::load_filtered_word(std::uint64_t offset) {
  if (observers_.loads_now != nullptr) [[unlikely]]
    observers_.loads_now->load(offset, 8);
  const std::uint64_t line = line_of(offset);
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  const written_line* own = writes_.find(line);
  if (own != nullptr && own->word_mask(word) == 0xFF) return value(*own, word);
  if (own != nullptr && own->word_mask(word) != 0) return merged_word(own, offset);
  if (moment_ != nullptr) [[unlikely]]
    return moment_->word(offset);
  if (!overlay_.empty() && overlay_.find(line) != nullptr) [[unlikely]]
    return merged_word(nullptr, offset);
  return with_home(home_, [&](auto& home) { return load_from(home, offset); });
}

std::uint64_t transaction::load_word_slow(std::uint64_t offset) {
  std::uint64_t value = 0;
  snapshot_.read_consistently(offset, [&] { value = home_word(offset); });
  return value;
}

void transaction::store_word_slow(std::uint64_t offset, std::uint64_t bits) {
  const std::uint64_t line_offset = line_of(offset), in_line = offset - line_offset;
  written_line& line = line_for_store(line_offset);
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

// A store that does not just go to the write set: it goes to the observer or home, or is refused.
void transaction::store_slow(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (!observed()) return store_in_place(offset, bits, mask);
  observers_.stores->store(*this, line_for_store(line_of(offset)),
                           part_of_word(offset, bits, mask));
}

[[gnu::noinline]] void transaction::store_in_place(std::uint64_t offset, std::uint64_t bits,
                                                   std::uint8_t mask) {
  if (only_reads()) throw failure(refused_change("a store"));
  STELE_ASSERT(store_target_ == store_target::home && mask != 0);
  const unsigned skip = static_cast<unsigned>(std::countr_zero(mask)),
                 size = static_cast<unsigned>(std::popcount(mask));
  STELE_ASSERT(mask == ((1u << size) - 1) << skip);  // the bytes are neighbours
  bits >>= 8 * skip;
  in_place_.store(this_access, offset + skip, &bits, size);
}

void transaction::store_part_slow(std::uint64_t offset, const std::byte* from, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t at = offset + done;
    const std::byte* const next = from != nullptr ? from + done : nullptr;
    std::size_t here = std::min<std::size_t>(line_size - at % line_size, size - done);
    if (observed()) {
      observers_.stores->store(*this, line_for_store(line_of(at)), part_of_line(at, next, here));
    } else {
      const std::uint64_t skip = at & 7;
      here = std::min<std::size_t>(8 - skip, here);
      std::uint64_t word = 0;
      if (next != nullptr) std::memcpy(reinterpret_cast<std::byte*>(&word) + skip, next, here);
      store_in_place(at - skip, word, static_cast<std::uint8_t>(((1u << here) - 1) << skip));
    }
    done += here;
  }
}

void transaction::write_private(std::uint64_t offset, std::uint64_t value, unsigned size) {
  STELE_ASSERT(!only_reads() && size != 0 && (offset & 7) + size <= 8);
  if (store_target_ == store_target::home) {
    const std::uint64_t stored = value;  // the parameter stays in its register
    return in_place_.store(this_access, offset, &stored, size);
  }
  const std::uint64_t line_offset = line_of(offset);
  const auto own_line = [&]() -> written_line& {
    const std::uint64_t bit = filter_bit(this_access.pool_base + line_offset);
    written_line* const known = (filter_ & bit) != 0 ? writes_.find(line_offset) : nullptr;
    filter_ |= bit;
    return known != nullptr ? *known : writes_.add(line_offset);
  };
  if (store_target_ != store_target::write_set) [[unlikely]]
    return observers_.stores->store(
        *this, own_line(),
        part_of_word(offset & ~std::uint64_t{7}, value << (8 * (offset & 7)),
                     static_cast<std::uint8_t>(byte_range(offset & 7, size))));
  written_line& line = own_line();
  const unsigned at = static_cast<unsigned>(offset - line_offset);
  const std::uint64_t bytes = byte_range(at & 7, size),
                      bits = expand_mask(static_cast<std::uint8_t>(bytes));
  std::uint64_t& word = line.words[at / 8];
  // Stores the whole word, because the commit loads the whole word (decision 7).
  word = (word & ~bits) | (value << (8 * (at & 7)) & bits);
  line.mask |= bytes << (at & ~7u);
}

std::uint64_t transaction::read_private(std::uint64_t offset, unsigned size) {
  STELE_ASSERT(size != 0 && (offset & 7) + size <= 8);
  const std::uint64_t word = merged_word(writes_.find(line_of(offset)), offset & ~std::uint64_t{7});
  return size == 8 ? word : (word >> (8 * (offset & 7))) & ((std::uint64_t{1} << (8 * size)) - 1);
}

void transaction::load_volatile(std::uintptr_t address, void* to, std::size_t size) {
  if (!snapshot_.in_force()) return copy_racing(to, address, size);
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t part = std::min<std::size_t>(line_size - at % line_size, size - done);
    snapshot_.read_consistently(at - this_access.pool_base,
                                [&] { copy_racing(static_cast<std::byte*>(to) + done, at, part); });
    done += part;
  }
}

void transaction::lock_volatile(std::uintptr_t address, std::size_t size) {
  STELE_ASSERT(this_access.running == this && this_access.size != 0);
  volatile_undo_.locked = true;
  const std::uint64_t offset = address - this_access.pool_base;
  lock_range(line_of(offset), offset + size);
}

}  // namespace stele::detail
