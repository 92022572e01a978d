// Block states on media, as bytes at the start of each slab.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_states.h>

#include <cstring>

namespace stele::storage {

using base::mutant;

namespace {

// A predicate of an assertion: whether the running transaction sees each block of a slab as free.
[[maybe_unused]] bool all_are_free(heap_writer& w, const slab& s) {
  for (std::uint32_t at = 0; at < s.layout.first; at += 8)
    if (w.read_private(s.offset + at, 8) != 0) return false;
  return true;
}

}  // namespace

std::uint64_t states_in_place::word_at(std::uint64_t offset) const noexcept {
  std::uint64_t word;
  std::memcpy(&word, file_.at(offset), 8);
  return word;
}

void states_in_place::clear(heap_writer& w, const slab& s) {
  STELE_ASSERT(s.layout.first % 64 == 0 && s.layout.capacity <= s.layout.first);
  STELE_ASSERT(s.offset % 4096 == 0);
  for (std::uint32_t at = 0; at < s.layout.first && !planted(mutant::heap_stale_states); at += 8)
    if (w.read_private(s.offset + at, 8) != 0) w.write_private(s.offset + at, 0, 8);
  STELE_ASSERT_WHOLE(all_are_free(w, s));  // heap.md L1: zeroes for state words that are not zero
}

result<> states_in_place::verify(const slab& s) const {
  STELE_ASSERT(s.layout.capacity != 0 && s.layout.capacity <= s.layout.first);
  const std::byte* states = file_.at(s.offset);
  for (std::uint32_t i = 0; i < s.layout.first; ++i) {
    const auto state = static_cast<std::uint8_t>(states[i]);
    const bool used = state == format::block_used && i < s.layout.capacity;
    if (!used && state != format::block_free)
      return base::fail(errc::corrupt,
                        fmt::format("{}: block {} of chunk {} has the impossible state {:#x}",
                                    file_.path(), i, s.chunk, state));
  }
  return {};
}

}  // namespace stele::storage
