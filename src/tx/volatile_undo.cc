// Loads, locks, commit and roll-back of volatile memory in a transaction. The rules are in
// volatile_undo.h.
#include <tx/transaction_inl.h>

#include <algorithm>
#include <cstring>

namespace stele::detail {

namespace {

constexpr unsigned size_shift = 56;

std::uintptr_t address_of(const undo_entry& o) noexcept {
  return o.where & ((std::uintptr_t{1} << size_shift) - 1);
}

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

}  // namespace

void volatile_undo_log::append(std::uintptr_t address, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t part = std::min<std::size_t>(8 - at % 8, size - done);
    undo_entry old{at | std::uintptr_t{part} << size_shift, 0};
    std::memcpy(&old.value, reinterpret_cast<const void*>(at), part);
    entries.push_back(old);
    done += part;
  }
}

void volatile_undo_log::roll_back_to(std::size_t count) noexcept {
  for (; entries.size() > count; entries.pop_back())
    std::memcpy(reinterpret_cast<void*>(address_of(entries.back())), &entries.back().value,
                entries.back().where >> size_shift);
}

void volatile_undo_log::discard(std::size_t count, std::uintptr_t from,
                                std::uintptr_t to) noexcept {
  const auto first = entries.begin() + static_cast<std::ptrdiff_t>(count);
  entries.erase(
      std::remove_if(first, entries.end(),
                     [&](const undo_entry& o) { return address_of(o) - from < to - from; }),
      entries.end());
}

void transaction::load_volatile(std::uintptr_t address, void* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t part = std::min<std::size_t>(line_size - at % line_size, size - done);
    read_consistently(at - this_access.pool_base,
                      [&] { copy_racing(static_cast<std::byte*>(to) + done, at, part); });
    done += part;
  }
}

void transaction::lock_volatile(std::uintptr_t address, std::size_t size) {
  volatile_undo_.locked = true;
  for (std::uintptr_t line = address & ~std::uintptr_t{line_size - 1}; line < address + size;
       line += line_size)
    acquire_lock(line - this_access.pool_base);
}

std::uint64_t transaction::revalidate() {
  extend_snapshot();
  return snapshot_;
}

// The commit has no record, and recovery does not know of it. Its TxID only orders it among
// transactions that lock the same lines.
commit_status transaction::commit_volatile() noexcept {
  const std::uint64_t txid = runtime_.state().clock.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (txid != snapshot_ + 1 && !reads_valid()) return commit_status::retry;
  for (const read_entry& l : locks_) l.lock->store(txid << 1, std::memory_order_release);
  clear();
  bump(runtime_.log_slots_[log_].commits);
  return commit_status::committed;
}

void transaction::roll_back_volatile() noexcept {
  volatile_undo_.roll_back_to(0);
  const std::uint64_t version = runtime_.state().clock.fetch_add(1, std::memory_order_seq_cst) + 1;
  for (read_entry& l : locks_) l.version = version << 1;
}

}  // namespace stele::detail
