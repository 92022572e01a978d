// Judging the blocks of home by their sums.
#include <base/check.h>
#include <fmt/format.h>
#include <pool/block_sums.h>

#include <optional>

namespace stele::storage {

using base::fail;

result<bool> block_sums::kept() const {
  if (!present()) return false;
  const auto state = format::control_word(file_.base(), file_.header().id, format::sums_state_offset);
  if (!state || *state > 1)
    return fail(errc::corrupt, fmt::format("{}: the word that says whether sums are kept is damaged (check bits); restore the pool from a copy", file_.path()));
  return *state == 0;
}

result<> block_sums::verify(const heap& heap, const progress& told) const {
  constexpr std::uint64_t often = std::uint64_t{64} << 20;
  std::uint64_t damaged = 0, first = 0, last = 0, done = 0, all = 0;
  bool stopped = false;
  if (auto counted = heap.for_each_used_run([&](std::uint64_t, std::uint64_t bytes) { all += bytes; }); !counted) return counted;
  const auto judge = [&](std::uint64_t block) {
    if ((done += format::sum_block_size) % often == 0 && told) stopped = stopped || !told(std::min(done, all), all);
    if (stopped) return;
    std::uint64_t said;
    std::memcpy(&said, slot(block), 8);
    if (said == 0 || !covers(block) || said == sum_now(block)) return;
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
