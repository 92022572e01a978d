// See published_oracle.h. With the published mechanisms on the laboratory's media, in one library.
#include <explore/hashed_image.h>
#include <explore/published_oracle.h>
#include <published/archapt/parity_area.h>
#include <published/log_structured/log_home.h>

#include <bit>
#include <unordered_map>

namespace stele::explore {

namespace {

std::uint64_t hash_of_home(detail::engine& e, std::uint64_t sum) {
  const auto& space = *detail::log_space_of(e);
  space.map.for_each([&](const storage::home_map::mapped_range& p) {
    for (std::uint32_t i = 0; i < p.words; ++i)
      sum += fold(base::mix(p.home + i), base::mix(space.word(storage::advanced(p.at, i)) ^
                                                   (storage::is_data(p.at) ? 1 : 2)));
  });
  return sum;
}

void for_each_skipped(const storage::pool_file& file, std::span<const std::uint32_t> lines,
                      const std::function<void(unsigned, bool)>& each) {
  const detail::parity_area area(file);
  const auto first =
      format::read_control_word(file.base(), file.header().id, format::parity_epoch_offset);
  if (!area.present() || !first) return;
  std::unordered_map<std::uint64_t, std::uint64_t> matrices;
  for (const std::uint32_t line : lines)
    if (const std::uint64_t offset = line * detail::line_size; offset >= file.header().home_offset)
      matrices[area.matrix_of(offset)] |= std::uint64_t{1} << area.line_of(offset);
  for (const auto& [m, among] : matrices)
    if (const auto at = area.newest(m, *first); at && at->block.kind == format::parity_kind::active)
      each(static_cast<unsigned>(std::popcount(among & at->block.skipped)),
           detail::correctable(among & at->block.skipped, area.halves()));
}

[[maybe_unused]] const bool set = [] {
  oracle_of_published() = {hash_of_home, for_each_skipped};
  return true;
}();

}  // namespace

}  // namespace stele::explore
