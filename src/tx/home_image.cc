// Reads what is left of a pool's home. See home_image.h.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <format/root_mark.h>
#include <pool/block_checksums.h>
#include <tx/home.h>
#include <tx/home_image.h>
#include <tx/inspect.h>
#include <tx/open.h>

#include <algorithm>
#include <bit>

namespace stele::detail {

using storage::block_checksums;

namespace {

constexpr std::uint64_t block_size = format::checksum_block_size;

result<std::unique_ptr<pool_state>> damaged_state(const std::string& path,
                                                  std::vector<std::string>& notes) {
  auto file = storage::pool_file::open_damaged_copy(path, notes);
  if (!file) return std::unexpected(file.error());
  auto state = std::make_unique<pool_state>(std::move(*file));
  state->lost_pages_guard =
      media::sigbus_guard(state->file.base(), state->file.reserved_bytes(), state->poisoned);
  return state;
}

}  // namespace

home_image::home_image(std::unique_ptr<pool_state> state, std::unique_ptr<engine> home_of)
    : state_(std::move(state)), home_of_(std::move(home_of)) {
  STELE_ASSERT_ALWAYS(state_ != nullptr);
  STELE_ASSERT_ALWAYS(home_of_ == nullptr || home_of_->home() != nullptr);
}

result<home_image> home_image::open(const std::string& path, std::vector<std::string>& notes) {
  if (auto unused = check_unused(path); !unused) return std::unexpected(unused.error());
  auto state = damaged_state(path, notes);
  if (!state) return std::unexpected(state.error());
  media_choice media{.what = media_choice::kind::process};
  media.tuning.background = false;
  auto recovered = recover_if_open(**state, media);
  if (!recovered) {
    if ((*state)->file.header().home == format::home_kind::log)
      return std::unexpected(recovered.error());
    notes.push_back(
        fmt::format("what its logs hold is missing, because they cannot be recovered ({})",
                    recovered.error().message));
    std::vector<std::string> said_before;
    state = damaged_state(path, said_before);  // recovery may have changed the copy
    if (!state) return std::unexpected(state.error());
    recovered = nullptr;
  }
  if (const std::string& why = (*state)->fallback_reason; !why.empty())
    notes.push_back("recovery went back to a checkpoint: " + why);
  home_image image(std::move(*state), std::move(*recovered));
  image.state_->poisoned.store(false);
  if (image.home_of_ != nullptr)  // without its blocks' states, the indexes of the content do
    (void)image.state_->heap.load(&image.home_of_->home()->block_states());
  image.judge_checksums(notes);
  image.judge_root(notes);
  return image;
}

void home_image::judge_root(std::vector<std::string>& notes) const {
  const auto& h = header();
  const auto at = root();
  if (!at) return;
  const auto word_at = [&](std::uint64_t offset) { return state_->heap.word_at(offset); };
  const std::uint64_t size = word_at(h.home_offset + offsetof(format::home_header, root_size));
  if (size <= h.offset_end() - *at && format::judge_root(h, *at, size, h.offset_end(), word_at) ==
                                          format::root_verdict::mark_missing)
    notes.emplace_back("its root has lost its mark: it was zeroed or overwritten");
}

// Where the word that says whether block checksums count is damaged or zeroed, that of the home
// header's block decides: it matches by chance once in 2^64 pools.
void home_image::judge_checksums(std::vector<std::string>& notes) {
  const block_checksums sums(state_->file);
  const auto& h = header();
  if (home_of_ != nullptr) {
    verified_ = true;
    return;
  }
  blocks_.assign((h.size - h.home_offset + block_size - 1) / block_size, block_state::unread);
  if (!sums.present()) return;
  using state = format::block_checksum_state;
  const auto kind = sums.state();
  const bool match = sums.stored(h.home_offset) == sums.compute(h.home_offset);
  if (kind && (*kind == state::none || *kind == state::updating)) {
    verified_ = *kind == state::updating;
    return;
  }
  legacy_ = kind && *kind == state::legacy && !match;
  verified_ = kind.has_value() || match;
  if (!kind)
    notes.emplace_back(
        match ? "the word that says whether block checksums count is damaged; they match"
              : "the word that says whether block checksums count is damaged, and they do not "
                "match: nothing can be verified");
}

std::uint64_t home_image::block_of(std::uint64_t offset) const noexcept {
  STELE_ASSERT(offset >= header().home_offset);
  return offset - (offset - header().home_offset) % block_size;
}

// The bytes are touched first: a page that cannot be read is replaced by zeroes then.
home_image::block_state home_image::judge(std::uint64_t block) const {
  STELE_ASSERT(block == block_of(block) && home_of_ == nullptr);
  const block_checksums sums(state_->file);
  state_->poisoned.store(false);
  const std::uint64_t computed = sums.compute(block);
  if (state_->poisoned.exchange(false)) {
    lose_page_of(block);
    return block_state::damaged;
  }
  if (!verified_ || !sums.has_checksum(block)) return block_state::sound;
  const std::uint64_t stored = sums.stored(block);
  if (legacy_)
    return stored == 0 || stored == format::compute_legacy_block_checksum(state_->file.at(block),
                                                                          header().id, block)
               ? block_state::sound
               : block_state::damaged;
  if (stored == format::block_checksum_unknown) return block_state::sound;
  const bool zeroed = stored == format::block_checksum_never_written;
  if (computed == (zeroed ? format::zero_block_checksum(header().id, block) : stored))
    return block_state::sound;
  // No change of one bit of the block changes its checksum by one bit only.
  if (zeroed || std::popcount(stored ^ computed) == 1) return block_state::sound;
  if (!sums.may_lack_checksum(block)) return block_state::damaged;
  ++unverified_blocks_;
  return block_state::sound;
}

void home_image::lose_page_of(std::uint64_t block) const {
  constexpr std::uint64_t unit = 4096;
  const auto& h = header();
  const std::uint64_t from = std::max(block / unit * unit, h.home_offset),
                      to = std::min(block / unit * unit + unit, h.size);
  STELE_ASSERT(from <= block && block < to &&
               (to - h.home_offset - 1) / block_size < blocks_.size());
  for (std::uint64_t at = from; at < to; at += block_size)
    blocks_[(at - h.home_offset) / block_size] = block_state::damaged;
}

bool home_image::is_sound(std::uint64_t block) const {
  if (blocks_.empty()) return true;
  STELE_ASSERT((block - header().home_offset) / block_size < blocks_.size());
  block_state& known = blocks_[(block - header().home_offset) / block_size];
  if (known != block_state::unread) return known == block_state::sound;
  known = judge(block);
  STELE_ASSERT(known != block_state::unread);
  return known == block_state::sound;
}

bool home_image::load(std::uint64_t offset, void* to, std::uint64_t bytes) const {
  if (!has(offset, bytes)) return false;
  auto* const out = static_cast<std::byte*>(to);
  if (home_of_ != nullptr) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t word = state_->heap.word_at((offset + done) & ~std::uint64_t{7});
      const std::uint64_t skip = (offset + done) & 7, n = std::min(8 - skip, bytes - done);
      std::memcpy(out + done, reinterpret_cast<const std::byte*>(&word) + skip, n);
      done += n;
    }
    return true;
  }
  for (std::uint64_t block = block_of(offset); block < offset + bytes; block += block_size)
    if (!is_sound(block)) return false;
  if (bytes != 0) std::memcpy(out, state_->file.at(offset), bytes);
  return true;
}

std::optional<std::uint64_t> home_image::word(std::uint64_t offset) const {
  std::uint64_t value;
  return load(offset, &value, sizeof value) ? std::optional(value) : std::nullopt;
}

void home_image::for_each_used_block(const storage::heap::block_visitor& each) const {
  state_->heap.for_each_block_left(
      [&](std::uint64_t offset, std::size_t size, std::uint64_t state) {
        if (has(offset, size) && (home_of_ != nullptr || is_sound(block_of(state))))
          each(offset, size);
      });
}

std::optional<std::uint64_t> home_image::root() const {
  const std::uint64_t at = header().home_offset + offsetof(format::home_header, root_offset);
  if (home_of_ == nullptr && !is_sound(block_of(at))) return std::nullopt;
  const std::uint64_t root = state_->heap.word_at(at);
  return root % 8 == 0 && has(root, 8) ? std::optional(root) : std::nullopt;
}

std::string home_image::layout() const {
  const auto& name = header().layout;
  return {name.begin(), std::find(name.begin(), name.end(), '\0')};
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> home_image::damaged_ranges() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i] != block_state::damaged) continue;
    const std::uint64_t from = header().home_offset + i * block_size;
    if (!ranges.empty() && ranges.back().second == from)
      ranges.back().second += block_size;
    else
      ranges.emplace_back(from, from + block_size);
  }
  return ranges;
}

}  // namespace stele::detail
