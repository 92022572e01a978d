// Repairs that are provably right. docs/protocol/repair.md has the steps and the reasons.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <pool/repair.h>
#include <tx/inspect.h>
#include <tx/open.h>

#include <algorithm>

namespace stele::detail {

using base::fail;
using storage::repair_file;

namespace {

// Why the ring of a log of a closed pool is not the empty one that it has to be. Empty: it is.
std::string damage_of(const storage::pool_file& file, std::uint32_t log, log_kind kind) {
  const ring_view ring = ring_of_log(file, log);
  const auto head = read_log_head(file, ring.log_offset);
  if (!head) return "the head of the log was damaged";
  if ((*head & format::log_void_bit) != 0 || !has_log_heads(kind)) return "";
  return check_closed_ring(file, ring, *head, other_form_of(kind))
             ? ""
             : "lines of the log were damaged";
}

// A closed pool has no record in a log. So a log that is damaged there may be marked as empty: the
// next session zeroes it.
result<> repair_logs(repair_file& pool) {
  const auto copy = storage::pool_file::open_copy(pool.path());
  if (!copy) return std::unexpected(copy.error());
  const auto& h = copy->header();
  if (h.home == format::home_kind::log) return {};
  const auto word = format::read_control_word(copy->base(), h.id, format::session_offset);
  if (!word || (*word & 0xFFFF) != (format::session{}.pack() & 0xFFFF))
    return fail(errc::corrupt,
                fmt::format("{}: the session word is damaged (check bits), so it is not known "
                            "whether the pool was closed and its logs are empty; restore the pool "
                            "from a copy, or save what is left of it (check --salvage)",
                            pool.path()));
  const auto session = format::session::unpack(*word);
  const auto kind = static_cast<log_kind>(session.log_kind);
  for (std::uint32_t log = 0; log < h.log_count; ++log) {
    const std::string damage = damage_of(*copy, log, kind);
    // Of a pool that was not closed, recovery reads the lines.
    if (damage.empty() ||
        (session.open && read_log_head(*copy, ring_of_log(*copy, log).log_offset)))
      continue;
    const std::uint64_t at = h.log_offset + log * h.log_size;
    if (session.open)
      return fail(
          errc::corrupt,
          fmt::format("{}: the head of the log at offset {} is damaged, and the pool was not "
                      "closed: it is not known which commits of that log home lacks; restore the "
                      "pool from a copy, or save what is left of it (check --salvage)",
                      pool.path(), at));
    STELE_ASSERT_ALWAYS(!session.open && at % 8 == 0 && at + h.log_size <= h.home_offset);
    const std::uint64_t empty = format::guard(format::log_void_bit, h.id, at);
    if (auto done = pool.overwrite(
            at, std::as_bytes(std::span(&empty, 1)),
            fmt::format(
                "{} at offset {}; the pool was closed, so the log is empty, and is marked so again",
                damage, at));
        !done)
      return done;
  }
  return {};
}

// The checksums of one sector are given up at once.
result<> give_up_wrong_checksums(repair_file& pool) {
  const auto wrong = find_wrong_checksums(pool.path());
  if (!wrong) return {};  // check_pool() says so in the end
  const auto copy = storage::pool_file::open_copy(pool.path());
  if (!copy) return std::unexpected(copy.error());
  const storage::block_checksums sums(*copy);
  const auto slot_of = [&](std::uint64_t block) {
    return static_cast<std::uint64_t>(sums.slot(block) - copy->base());
  };
  constexpr std::uint64_t sector = 512;
  STELE_ASSERT_WHOLE(std::ranges::is_sorted(*wrong));
  for (auto block = wrong->begin(); block != wrong->end();) {
    const std::uint64_t first = slot_of(*block), in = first / sector, from = *block;
    std::vector<std::byte> words;
    std::size_t count = 0;
    for (; block != wrong->end() && slot_of(*block) / sector == in; ++block, ++count) {
      const std::uint64_t end = slot_of(*block);
      STELE_ASSERT_ALWAYS(end >= first + words.size());  // each slot once
      words.insert(words.end(), copy->base() + first + words.size(), copy->base() + end);
      const auto unknown = std::as_bytes(std::span(&format::block_checksum_unknown, 1));
      words.insert(words.end(), unknown.begin(), unknown.end());
    }
    // repair.md, write order: the bytes lie in one sector.
    STELE_ASSERT_ALWAYS(first % 8 == 0 && first % sector + words.size() <= sector);
    STELE_ASSERT_ALWAYS(first >= copy->header().block_checksums_offset);
    if (auto done = pool.overwrite(
            first, words,
            fmt::format("{} blocks of {} bytes from offset {} on were not what their sums say, and "
                        "nothing else was wrong. They lie where the pool first grew, where a "
                        "program older than 2026-11-28 left wrong sums when it grew again. What "
                        "they hold is taken as it is, and their sums count as unknown: if "
                        "something else changed these blocks, that does not show",
                        count, format::checksum_block_size, from));
        !done)
      return done;
  }
  return {};
}

}  // namespace

result<> repair_pool(const std::string& path, std::vector<storage::repair_step>& done) {
  {
    auto pool = repair_file::open(path);
    if (!pool) return std::unexpected(pool.error());
    auto repaired = storage::repair_header(*pool);
    if (repaired) repaired = repair_logs(*pool);
    if (repaired) repaired = give_up_wrong_checksums(*pool);
    done = std::move(pool->steps());
    if (!repaired) return repaired;
  }  // unlocked
  const auto report = check_pool(path);
  if (!report) return std::unexpected(report.error());
  if (!report->info.left_open) return {};
  auto opened = open_path(path, {});
  if (!opened) return std::unexpected(opened.error());
  if (auto closed = (*opened)->close(); !closed) return std::unexpected(closed.error());
  done.push_back(
      {fmt::format(
           "it had not been closed; it is recovered, with every commit up to {}, and closed",
           report->newest_commit),
       "", 0});
  return {};
}

}  // namespace stele::detail
