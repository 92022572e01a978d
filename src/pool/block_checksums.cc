// Verifies the blocks of home against their checksums.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <pool/header_version.h>

#include <algorithm>

namespace stele::storage {

using base::fail;
using format::block_checksum_state;

result<block_checksum_state> block_checksums::state() const {
  if (!present()) return block_checksum_state::none;
  const auto state = format::read_control_word(file_.base(), file_.header().id,
                                               format::block_checksum_state_offset);
  if (!state || *state > format::last_block_checksum_state)
    return fail(errc::corrupt, fmt::format("{}: the word that says whether sums are kept is "
                                           "damaged (check bits); restore the pool from a copy",
                                           file_.path()));
  return static_cast<block_checksum_state>(*state);
}

// Checksum 0 means that the block was never stored to. If 0 meant "unknown", a zeroed page of
// checksums would make any content pass.
bool block_checksums::matches(std::uint64_t block) const noexcept {
  STELE_ASSERT(has_checksum(block));
  const std::uint64_t expected = stored(block);
  if (expected == format::block_checksum_never_written && planted(base::mutant::sums_zero_unjudged))
    return true;
  if (is_table(block)) return expected == compute(block);
  if (expected == format::block_checksum_unknown) return true;
  return compute(block) == (expected == format::block_checksum_never_written
                                ? format::zero_block_checksum(file_.header().id, block)
                                : expected);
}

bool block_checksums::matches_legacy(std::uint64_t block) const noexcept {
  STELE_ASSERT(has_checksum(block));
  const std::uint64_t expected = stored(block);
  return expected == 0 || expected == format::compute_legacy_block_checksum(
                                          file_.at(block), file_.header().id, block);
}

block_checksums::block_range block_checksums::first_tail() const noexcept {
  format::pool_header created;
  std::memcpy(&created, file_.base(), sizeof created);
  if (!present() || !is_whole(created) || created.chunk_count >= file_.header().chunk_count)
    return {};
  return {created.chunks_end(), created.size};
}

result<> block_checksums::for_each_mismatch(const heap& heap, const progress& on_progress,
                                            const std::function<void(std::uint64_t)>& each) const {
  constexpr std::uint64_t progress_interval = std::uint64_t{64} << 20;
  const auto kind = state();
  if (!kind) return std::unexpected(kind.error());
  STELE_ASSERT(*kind != block_checksum_state::none);
  std::uint64_t done = 0, all = 0;
  bool stopped = false;
  if (auto counted =
          heap.for_each_used_run([&](std::uint64_t, std::uint64_t bytes) { all += bytes; });
      !counted)
    return counted;
  const auto verify_block = [&](std::uint64_t block) {
    if ((done += format::checksum_block_size) % progress_interval == 0 && on_progress)
      stopped = stopped || !on_progress(std::min(done, all), all);
    if (stopped || !has_checksum(block) ||
        (*kind == block_checksum_state::legacy ? matches_legacy(block) : matches(block)))
      return;
    each(block);
  };
  if (auto walked = for_each_block(heap, verify_block); !walked) return walked;
  if (stopped)
    return fail(errc::cancelled, fmt::format("the check of {} was stopped", file_.path()));
  return {};
}

result<> block_checksums::verify(const heap& heap, const progress& on_progress) const {
  std::uint64_t damaged = 0, first = 0, last = 0, in_tail = 0;
  const auto count = [&](std::uint64_t block) {
    if (damaged++ == 0) first = block;
    last = block;
    in_tail += may_lack_checksum(block) ? 1 : 0;
  };
  if (auto walked = for_each_mismatch(heap, on_progress, count); !walked) return walked;
  if (damaged == 0) return {};
  STELE_ASSERT_ALWAYS(first <= last && in_tail <= damaged);  // blocks come in their order
  const std::string what = fmt::format(
      "{}: {} of its blocks of {} bytes are not what their sums say, from offset {} to {}",
      file_.path(), damaged, format::checksum_block_size, first,
      last + format::checksum_block_size);
  if (in_tail == damaged)
    return fail(errc::corrupt,
                fmt::format("{}: all lie where the pool first grew, where a program older than "
                            "2026-11-28 left wrong sums when it grew again; `stele pool check "
                            "--repair {}` gives them up, if nothing else is wrong",
                            what, file_.path()));
  return fail(errc::corrupt,
              fmt::format("{}: something other than stele changed the file, or "
                          "the device lost bits; restore it from a copy, or open it with verify = "
                          "never to save what can be read",
                          what));
}

}  // namespace stele::storage
