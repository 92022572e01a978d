// What is in use and what is reached; see stele/leaks.h.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <stele/leaks.h>
#include <tx/open.h>

#include <algorithm>

namespace stele::detail {

namespace {

constexpr unsigned most_attempts = 16;

// For assertions: blocks by offset, none within another.
[[maybe_unused]] bool are_disjoint(const std::vector<pool_block>& blocks) {
  for (std::size_t i = 1; i < blocks.size(); ++i)
    if (blocks[i].offset < blocks[i - 1].offset + blocks[i - 1].size_bytes) return false;
  return true;
}

// The blocks in use, by offset, and the clock of that moment.
result<std::uint64_t> list_used(runtime& r, std::vector<pool_block>& used) {
  const auto begun = begin_maintenance(r, "searched");
  if (!begun) return std::unexpected(begun.error());
  const pool_pause paused = r.pause();
  used.clear();
  const auto audit = r.state().heap.audit(
      [&](std::uint64_t offset, std::size_t size) { used.push_back({offset, size}); });
  if (!audit) return std::unexpected(audit.error());
  std::ranges::sort(used, {}, &pool_block::offset);
  STELE_ASSERT_WHOLE(are_disjoint(used));
  STELE_ASSERT(used.empty() || used.front().offset >= r.heap_begin());
  STELE_ASSERT(used.empty() || used.back().offset + used.back().size_bytes <= r.size());
  return r.state().clock.load();
}

leak_report compare(const std::vector<pool_block>& used, std::vector<std::uint64_t>& reached) {
  std::ranges::sort(reached);
  reached.erase(std::ranges::unique(reached).begin(), reached.end());
  leak_report report;
  auto next = reached.begin();
  for (const pool_block& b : used) {
    for (; next != reached.end() && *next < b.offset; ++next) report.dangling.push_back({*next, 0});
    if (next != reached.end() && *next == b.offset)
      ++next, ++report.reached_blocks;
    else
      report.leaked.push_back(b);
  }
  for (; next != reached.end(); ++next) report.dangling.push_back({*next, 0});
  STELE_ASSERT(report.reached_blocks + report.leaked.size() == used.size());
  STELE_ASSERT(report.reached_blocks + report.dangling.size() == reached.size());
  return report;
}

}  // namespace

result<leak_report> find_leaks(runtime& r, const void* root,
                               const std::function<void(const block_visitor&)>& walk) {
  std::vector<pool_block> used;
  std::vector<std::uint64_t> reached;
  const auto offset_of = [&](const void* at) {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - r.base());
  };
  for (unsigned attempt = 0; attempt < most_attempts; ++attempt) {
    const auto then = list_used(r, used);
    if (!then) return std::unexpected(then.error());
    const auto walked = run_transaction(r, false, durability::durable, [&] {
      reached.assign(1, offset_of(root));
      walk([&](const void* block) { reached.push_back(offset_of(block)); });
    });
    if (!walked) return std::unexpected(walked.error());
    if (r.state().clock.load() == *then) return compare(used, reached);
  }
  return base::fail(errc::in_use,
                    fmt::format("{} changes all the time while its blocks are looked for; stop the "
                                "threads that commit, then look again",
                                r.state().file.path()));
}

}  // namespace stele::detail
