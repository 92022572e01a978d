// Versions of sectors, and what a fence makes durable; sector_model.h has the rules.
#include <explore/sector_model.h>

#include <algorithm>
#include <bit>

namespace stele::explore {

void sector_model::start(hashed_image& durable) {
  durable_ = &durable;
  for (const std::uint32_t sector : pending_) sectors_[sector] = {};
  pending_.clear();
  for (auto& list : unfenced_) list.clear();
}

std::vector<sector_model::unfenced>& sector_model::unfenced_by(unsigned thread) {
  if (unfenced_.size() <= thread) unfenced_.resize(thread + 1);
  return unfenced_[thread];
}

const std::byte* sector_model::content(std::uint32_t sector, std::size_t version) const noexcept {
  return version == 0 ? durable_->data() + std::size_t{sector} * sector_size
                      : sectors_[sector].versions[version - 1].bytes.data();
}

void sector_model::store(unsigned, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t take = std::min<std::size_t>(8 - offset % 8, bytes.size());
    change(static_cast<std::uint32_t>(offset / sector_size), offset % sector_size,
           bytes.first(take), false);
    offset += take;
    bytes = bytes.subspan(take);
  }
}

void sector_model::stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t take =
        std::min<std::size_t>(sector_size - offset % sector_size, bytes.size());
    const auto sector = static_cast<std::uint32_t>(offset / sector_size);
    change(sector, offset % sector_size, bytes.first(take), true);
    unfenced_by(thread).push_back({sector, number_});
    offset += take;
    bytes = bytes.subspan(take);
  }
}

// A change that leaves the bytes as they are makes no version.
void sector_model::change(std::uint32_t sector, std::size_t at, std::span<const std::byte> bytes,
                          bool streamed) {
  ++number_;
  auto& versions = sectors_[sector].versions;
  const std::byte* const last = content(sector, versions.size());
  if (std::memcmp(last + at, bytes.data(), bytes.size()) == 0) return;
  sector_version v{number_, streamed, {}};
  std::memcpy(v.bytes.data(), last, sector_size);
  std::memcpy(v.bytes.data() + at, bytes.data(), bytes.size());
  if (versions.empty()) pending_.push_back(sector);
  versions.push_back(v);
  note_mixed(sector);
}

void sector_model::flush(unsigned thread, std::uint64_t offset, std::uint64_t size) {
  for (const std::uint32_t sector : pending_)
    if (const std::uint64_t at = std::uint64_t{sector} * sector_size;
        at >= offset && at < offset + size)
      unfenced_by(thread).push_back({sector, number_});
}

std::span<const std::uint32_t> sector_model::fence(unsigned thread) {
  changed_.clear();
  auto& list = unfenced_by(thread);
  for (const unfenced& t : list) make_durable(t.sector, t.through);
  list.clear();
  if (!changed_.empty())
    std::erase_if(pending_,
                  [&](std::uint32_t sector) { return sectors_[sector].versions.empty(); });
  return changed_;
}

void sector_model::make_durable(std::uint32_t sector, std::uint64_t through) {
  auto& versions = sectors_[sector].versions;
  const auto after = std::ranges::upper_bound(versions, through, {}, &sector_version::number);
  if (after == versions.begin()) return;
  const std::byte* const now = std::prev(after)->bytes.data();
  for (std::size_t i = 0; i < lines_in_sector; ++i)
    durable_->put(sector * lines_in_sector + i, now + i * line_size);
  versions.erase(versions.begin(), after);
  note_mixed(sector);
  changed_.push_back(sector);
}

void sector_model::note_mixed(std::uint32_t sector) noexcept {
  auto& [versions, mixed] = sectors_[sector];
  mixed = 0;
  if (versions.size() < 2 || versions.back().streamed) return;
  const std::byte *const durable = content(sector, 0), *const newest = versions.back().bytes.data();
  for (std::size_t i = 0; i < lines_in_sector; ++i)
    mixed |= unsigned{std::memcmp(durable + i * line_size, newest + i * line_size, line_size) != 0}
             << i;
  if (std::has_single_bit(mixed)) mixed = 0;
}

std::uint64_t sector_model::options(std::uint32_t sector) const noexcept {
  return sectors_[sector].versions.size() + 1 + (sectors_[sector].mixed != 0 ? mixtures : 0);
}

// The options are the versions in order, with the mixtures before the newest. A mixture has the
// newest version of every other changed line, of the remaining changed lines, or any version of
// each line.
std::size_t sector_model::version_of(std::uint32_t sector, std::uint64_t option,
                                     std::size_t line) const noexcept {
  const auto& [versions, mixed] = sectors_[sector];
  const std::size_t newest = versions.size();
  if (option < newest) return static_cast<std::size_t>(option);
  if (option + 1 == options(sector)) return newest;
  const auto before = static_cast<unsigned>(std::popcount(mixed & ((1u << line) - 1)));
  if (const std::uint64_t mixture = option - newest; mixture < 2)
    return before % 2 == mixture ? 0 : newest;
  return base::mix((option - newest) * lines_in_sector + line) % (newest + 1);
}

void sector_model::put(hashed_image& image, std::uint32_t sector,
                       std::uint64_t option) const noexcept {
  for (std::size_t i = 0; i < lines_in_sector; ++i) {
    const std::size_t line = sector * lines_in_sector + i;
    const std::byte* const now = content(sector, version_of(sector, option, i)) + i * line_size;
    if (std::memcmp(image.line(line), now, line_size) != 0) image.put(line, now);
  }
}

void sector_model::add_stale(const hashed_image& image, std::uint32_t sector,
                             std::vector<std::uint32_t>& lines) const {
  const std::byte* const newest = content(sector, sectors_[sector].versions.size());
  for (std::size_t i = 0; i < lines_in_sector; ++i)
    if (const std::size_t line = sector * lines_in_sector + i;
        std::memcmp(image.line(line), newest + i * line_size, line_size) != 0)
      lines.push_back(static_cast<std::uint32_t>(line));
}

std::vector<media_model::store_outcome> sector_model::store_outcomes(std::uint32_t sector,
                                                                     std::uint64_t option) const {
  std::vector<store_outcome> all;
  for (std::size_t v = 1; v <= sectors_[sector].versions.size(); ++v)
    for (std::size_t at = 0; at < sector_size; at += 8) {
      std::uint64_t before, now;
      std::memcpy(&before, content(sector, v - 1) + at, 8);
      std::memcpy(&now, content(sector, v) + at, 8);
      if (before == now) continue;
      const bool kept = v <= version_of(sector, option, at / line_size);
      all.push_back({std::uint64_t{sector} * sector_size + at, now, ~std::uint64_t{0},
                     sectors_[sector].versions[v - 1].streamed, kept});
    }
  return all;
}

}  // namespace stele::explore
