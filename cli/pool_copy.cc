// `stele pool compact`, and `check --salvage`.
#include <cli/command.h>
#include <cli/pool_content.h>
#include <cli/pool_copy.h>
#include <fmt/format.h>
#include <tx/inspect.h>
#include <tx/open.h>

#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using nlohmann::json;

// So many lost parts are printed; the JSON report has them all.
constexpr std::size_t most_printed = 20;

std::string name_of(const detail::lost_content& lost) {
  const std::string place = lost.bytes != 0
                                ? fmt::format("offset {}, {} bytes", lost.offset, lost.bytes)
                                : fmt::format("offset {}", lost.offset);
  return lost.what.empty() ? "at " + place
                           : fmt::format("{} ({})", text_or_hex(lost.what).dump(), place);
}

json json_of(const detail::copied_content& done) {
  json j{{"copied", done.left.count},
         {"copied_bytes", done.left.bytes},
         {"size_bytes_before", done.size_before},
         {"size_bytes", done.size_now},
         {"log_bytes", done.log_bytes},
         {"notes", done.left.notes},
         {"verified", done.verified}};
  j["lost"] = json::array();
  for (const auto& lost : done.left.lost) {
    json one{{"offset", lost.offset}, {"bytes", lost.bytes}};
    if (!lost.what.empty()) one["name"] = text_or_hex(lost.what);
    j["lost"].push_back(one);
  }
  j["damaged"] = json::array();
  for (const auto& [from, to] : done.damaged_ranges)
    j["damaged"].push_back({{"from", from}, {"to", to}});
  return j;
}

void print_copy(const copy_request& r, const detail::copied_content& done) {
  fmt::print("{}\n", r.to);
  fmt::print("  copied     {} items or values, {} bytes; compared with what was read\n",
             done.left.count, done.left.bytes);
  fmt::print("  size       {} bytes, of them {} header and logs; {} has {}\n", done.size_now,
             done.log_bytes, r.from, done.size_before);
}

void print_losses(const detail::copied_content& done) {
  for (const std::string& note : done.left.notes) fmt::print("  note       {}\n", note);
  if (!done.verified)
    fmt::print("  note       it has no block checksums: damage inside of values is not seen\n");
  for (const auto& [from, to] : done.damaged_ranges)
    fmt::print("  damaged    offsets {} to {}\n", from, to);
  for (std::size_t i = 0; i < std::min(most_printed, done.left.lost.size()); ++i)
    fmt::print("  LOST       {}\n", name_of(done.left.lost[i]));
  if (done.left.lost.size() > most_printed)
    fmt::print("  LOST       {} more; --json FILE has them all\n",
               done.left.lost.size() - most_printed);
}

// Without the free chunks at the end. Free space before the last chunk in use stays: objects of
// types that the command does not know cannot be moved, because others point to them.
json shorten(const copy_request& r, const std::string& layout, const progress& on_progress) {
  if (r.options.size_bytes != 0 || r.options.log_size != 0 || r.options.log_count != 0)
    fail(
        fmt::format("{} has the layout '{}', whose types only its program knows: its copy keeps "
                    "its logs, and ends behind the last chunk in use; leave the sizes out",
                    r.from, layout));
  auto pool = detail::open_path(r.from, {});
  if (!pool) fail(pool.error());
  const auto before = (*pool)->state().file.header();
  const auto usage = (*pool)->state().heap.audit();
  if (!usage) fail(usage.error());
  if (const auto made = detail::back_up_used_part(**pool, r.to, on_progress); !made)
    fail(made.error());
  if (const auto closed = (*pool)->close(); !closed) fail(closed.error());
  const auto now = detail::info_of(r.to);
  if (!now) fail(now.error());
  const auto& h = now->header;
  const std::uint64_t free_chunks = usage->free_chunks - (before.chunk_count - h.chunk_count),
                      kept = (free_chunks << h.chunk_shift) + usage->free_blocks_bytes;
  if (r.prints) {
    fmt::print("{}\n", r.to);
    fmt::print("  size       {} bytes; {} has {}\n", h.size, r.from, before.size);
    fmt::print(
        "  free       {} bytes before its last chunk in use stay free inside: objects of the "
        "layout '{}' cannot be moved, because only its program knows what points to them. To "
        "regain them, let that program copy its data into a new pool\n",
        kept, layout);
  }
  return {{"size_bytes_before", before.size}, {"size_bytes", h.size}, {"free_bytes_kept", kept}};
}

}  // namespace

json compact_pool(const copy_request& r, const progress& on_progress) {
  const auto info = detail::info_of(r.from);
  if (!info) fail(info.error());
  const std::string layout = info->header.layout.data();
  if (!detail::is_copied_layout(layout)) return shorten(r, layout, on_progress);
  const auto done = detail::copy_content(r.from, r.to, r.options, on_progress);
  if (!done) fail(done.error());
  if (r.prints) print_copy(r, *done);
  return json_of(*done);
}

json salvage_pool(const copy_request& r, const progress& on_progress) {
  copy_request with_losses = r;
  with_losses.options.allow_losses = true;
  const auto done = detail::copy_content(r.from, r.to, with_losses.options, on_progress);
  if (!done) fail(done.error());
  if (r.prints) print_copy(r, *done), print_losses(*done);
  return json_of(*done);
}

}  // namespace stele::cli
