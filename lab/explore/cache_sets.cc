// The dirty bits, beside the simulator's array of frames.
#include <explore/cache_sets.h>

namespace stele::explore {

namespace {

result<sim::cache_array> make_array(const cache_geometry& s, std::uint64_t seed) {
  return sim::cache_array::make(s.lines * sizeof(std::uint64_t) * 8, static_cast<unsigned>(s.ways),
                                s.policy, seed);
}

}  // namespace

result<> check_geometry(const cache_geometry& geometry) {
  const auto possible = make_array(geometry, 0);
  return possible ? result<>() : std::unexpected(possible.error());
}

std::vector<std::string_view> all_policies() {
  std::vector<std::string_view> names;
  for (const sim::replacement_policy& p : sim::replacement_policies()) names.push_back(p.name);
  return names;
}

cache_sets::cache_sets(const cache_geometry& geometry) : geometry_(geometry) {
  reset(0);
}

void cache_sets::reset(std::uint64_t seed) {
  lines_ = std::move(*make_array(geometry_, seed));
  dirty_.assign(lines_->frames(), false);
}

std::uint32_t cache_sets::write(std::uint32_t line) {
  if (const auto frame = lines_->find(line); frame != sim::cache_array::none) {
    lines_->touch(frame);
    dirty_[frame] = true;
    return none;
  }
  const auto frame = lines_->find_victim(line);
  const std::uint32_t victim = lines_->valid(frame) && dirty_[frame]
                                   ? static_cast<std::uint32_t>(lines_->line_at(frame))
                                   : none;
  lines_->fill(frame, line);
  dirty_[frame] = true;
  return victim;
}

bool cache_sets::clean(std::uint32_t line) noexcept {
  const auto frame = lines_->find(line);
  if (frame == sim::cache_array::none || !dirty_[frame]) return false;
  dirty_[frame] = false;
  return true;
}

bool cache_sets::invalidate(std::uint32_t line) noexcept {
  const auto frame = lines_->find(line);
  if (frame == sim::cache_array::none) return false;
  lines_->invalidate(frame);
  const bool was_dirty = dirty_[frame];
  dirty_[frame] = false;
  return was_dirty;
}

}  // namespace stele::explore
