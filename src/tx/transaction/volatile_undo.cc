// Saves and restores words of volatile memory. The rules are in volatile_undo.h.
#include <base/assert.h>
#include <tx/transaction/volatile_undo.h>

#include <algorithm>
#include <cstring>

namespace stele::detail {

namespace {

constexpr unsigned size_shift = 56;

std::uintptr_t address_of(const undo_entry& o) noexcept {
  return o.where & ((std::uintptr_t{1} << size_shift) - 1);
}

}  // namespace

void volatile_undo_log::append(std::uintptr_t address, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t part = std::min<std::size_t>(8 - at % 8, size - done);
    STELE_ASSERT(part != 0 && part <= sizeof(undo_entry::value));
    undo_entry old{at | std::uintptr_t{part} << size_shift, 0};
    std::memcpy(&old.value, reinterpret_cast<const void*>(at), part);
    entries.push_back(old);
    done += part;
  }
}

void volatile_undo_log::roll_back_to(std::size_t count) noexcept {
  STELE_ASSERT(count <= entries.size());
  for (; entries.size() > count; entries.pop_back())
    std::memcpy(reinterpret_cast<void*>(address_of(entries.back())), &entries.back().value,
                entries.back().where >> size_shift);
}

void volatile_undo_log::discard(std::size_t count, std::uintptr_t from,
                                std::uintptr_t to) noexcept {
  STELE_ASSERT(count <= entries.size());
  const auto first = entries.begin() + static_cast<std::ptrdiff_t>(count);
  entries.erase(
      std::remove_if(first, entries.end(),
                     [&](const undo_entry& o) { return address_of(o) - from < to - from; }),
      entries.end());
}

}  // namespace stele::detail
