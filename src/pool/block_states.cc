// Block states on media, as bytes at the start of each slab.
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_states.h>

#include <cstring>

namespace stele::storage {

using base::mutant;
using base::planted;

std::uint64_t states_in_place::word_at(std::uint64_t offset) const noexcept {
  std::uint64_t word;
  std::memcpy(&word, file_.at(offset), 8);
  return word;
}

void states_in_place::clear(heap_writer& w, const slab& s) {
  for (std::uint32_t at = 0; at < s.layout.first && !planted(mutant::heap_stale_states); at += 8)
    if (w.read_private(s.offset + at, 8) != 0) w.write_private(s.offset + at, 0, 8);
}

result<> states_in_place::verify(const slab& s) const {
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
