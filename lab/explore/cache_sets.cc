// Dirty lines, over the simulator's array of places.
#include <explore/cache_sets.h>

namespace stele::explore {

namespace {

result<sim::cache_array> made(const cache_shape& s, std::uint64_t seed) {
  return sim::cache_array::make(s.lines * sizeof(std::uint64_t) * 8, static_cast<unsigned>(s.ways), s.policy, seed);
}

}  // namespace

result<> check_shape(const cache_shape& shape) {
  const auto possible = made(shape, 0);
  return possible ? result<>() : std::unexpected(possible.error());
}

std::vector<std::string_view> all_policies() {
  std::vector<std::string_view> names;
  for (const sim::replacement_policy& p : sim::replacement_policies()) names.push_back(p.name);
  return names;
}

cache_sets::cache_sets(const cache_shape& shape) : shape_(shape) { empty(0); }

void cache_sets::empty(std::uint64_t seed) {
  lines_ = std::move(*made(shape_, seed));
  dirty_.assign(lines_->places(), false);
}

std::uint32_t cache_sets::write(std::uint32_t line) {
  if (const auto place = lines_->find(line); place != sim::cache_array::none) {
    lines_->use(place);
    dirty_[place] = true;
    return none;
  }
  const auto place = lines_->room_for(line);
  const std::uint32_t leaves = lines_->holds(place) && dirty_[place] ? static_cast<std::uint32_t>(lines_->line_at(place)) : none;
  lines_->fill(place, line);
  dirty_[place] = true;
  return leaves;
}

bool cache_sets::clean(std::uint32_t line) noexcept {
  const auto place = lines_->find(line);
  if (place == sim::cache_array::none || !dirty_[place]) return false;
  dirty_[place] = false;
  return true;
}

bool cache_sets::drop(std::uint32_t line) noexcept {
  const auto place = lines_->find(line);
  if (place == sim::cache_array::none) return false;
  lines_->drop(place);
  const bool was_dirty = dirty_[place];
  dirty_[place] = false;
  return was_dirty;
}

}  // namespace stele::explore
