// Judging the blocks of home by their sums.
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_sums.h>

#include <optional>

namespace stele::storage {

using base::fail;
using format::sums_state;

result<sums_state> block_sums::state() const {
  if (!present()) return sums_state::none;
  const auto state = format::control_word(file_.base(), file_.header().id, format::sums_state_offset);
  if (!state || *state > format::last_sums_state)
    return fail(errc::corrupt, fmt::format("{}: the word that says whether sums are kept is damaged (check bits); restore the pool from a copy", file_.path()));
  return static_cast<sums_state>(*state);
}

// A sum of 0 is that of a block that nobody has stored to. Taken for "nothing is known", a zeroed page of sums would let home pass.
bool block_sums::is_sound(std::uint64_t block) const noexcept {
  const std::uint64_t said = stored(block);
  if (said == format::sum_of_zeroes && base::planted(base::mutant::sums_zero_unjudged)) return true;
  if (is_table(block)) return said == sum_now(block);
  if (said == format::sum_unknown) return true;
  return sum_now(block) == (said == format::sum_of_zeroes ? format::sum_of_zero_block(file_.header().id, block) : said);
}

bool block_sums::was_sound_earlier(std::uint64_t block) const noexcept {
  const std::uint64_t said = stored(block);
  return said == 0 || said == format::earlier_sum_of_block(file_.at(block), file_.header().id, block);
}

result<> block_sums::verify(const heap& heap, const progress& told) const {
  constexpr std::uint64_t often = std::uint64_t{64} << 20;
  const auto kind = state();
  if (!kind) return std::unexpected(kind.error());
  std::uint64_t damaged = 0, first = 0, last = 0, done = 0, all = 0;
  bool stopped = false;
  if (auto counted = heap.for_each_used_run([&](std::uint64_t, std::uint64_t bytes) { all += bytes; }); !counted) return counted;
  const auto judge = [&](std::uint64_t block) {
    if ((done += format::sum_block_size) % often == 0 && told) stopped = stopped || !told(std::min(done, all), all);
    if (stopped || !covers(block) || (*kind == sums_state::earlier ? was_sound_earlier(block) : is_sound(block))) return;
    if (damaged++ == 0) first = block;
    last = block;
  };
  if (auto walked = for_each_block(heap, judge); !walked) return walked;
  if (stopped) return fail(errc::cancelled, fmt::format("the check of {} was stopped", file_.path()));
  if (damaged == 0) return {};
  return fail(errc::corrupt, fmt::format("{}: {} of its blocks of {} bytes are not what their sums say, from offset {} to {}: something other than stele changed the file, or "
                                         "the device lost bits; restore it from a copy, or open it with verify = never to save what can be read",
                                         file_.path(), damaged, format::sum_block_size, first, last + format::sum_block_size));
}

}  // namespace stele::storage
