// Sentences and keys; see foreign_report.h.
#include <fmt/format.h>
#include <foreign/foreign_report.h>

#include <nlohmann/json.hpp>

namespace stele::foreign {

namespace {

using outcomes = std::vector<crash_walk::outcome>;
constexpr std::size_t most_printed = 12;

std::string stores_text(const outcomes& stores, const trace& t, const char* what) {
  std::string text;
  for (std::size_t i = 0; i < stores.size() && i < most_printed; ++i)
    text += fmt::format("  {} {} bytes at {:#x}, stored in {}\n", what, stores[i].size,
                        stores[i].offset, t.site(stores[i].site));
  if (stores.size() > most_printed)
    text += fmt::format("  and {} more\n", stores.size() - most_printed);
  return text;
}

nlohmann::json stores_json(const outcomes& stores, const trace& t) {
  auto all = nlohmann::json::array();
  for (const auto& o : stores)
    all.push_back(
        {{"offset", o.offset}, {"size", o.size}, {"stored_in", t.site(o.site)}, {"kept", o.kept}});
  return all;
}

}  // namespace

std::string text_of(const findings& f, const trace& t, const std::string& replay_command) {
  std::string text =
      fmt::format("{} of {} crash points ({} sampled), {} states judged, {} {} ({:.1f} s){}\n",
                  f.points, f.points_total, f.sampled_points, f.states, f.violating,
                  f.violating == 1 ? "violates" : "violate", f.seconds,
                  f.ended_early ? "; ended there, see --violations" : "");
  for (const auto& [what, count] : f.complaints) text += fmt::format("  {} x {}\n", count, what);
  if (f.about == 0)
    return f.violating == 0 ? text : text + "  none of these contains the text after --about\n";
  const char* const others = f.smallest.keeps_others ? "kept" : "lost";
  const char* const these = f.smallest.keeps_others ? "lost" : "kept";
  const bool all_alike = f.smallest.options.empty();
  text += fmt::format("the smallest violating state: a crash {} (point {}); ", f.place,
                      f.smallest.point);
  text += all_alike ? fmt::format("all pending stores are {}:\n", others)
                    : fmt::format("of the pending stores only these are {}:\n", these);
  text += stores_text(f.differing, t, all_alike ? others : these);
  return text + fmt::format("  checker: {}\n  replay: {}\n", f.what, replay_command);
}

nlohmann::json json_of(const findings& f, const trace& t, const std::string& replay_command) {
  nlohmann::json all = {{"pool", t.pool()},
                        {"points", f.points},
                        {"points_total", f.points_total},
                        {"sampled_points", f.sampled_points},
                        {"states", f.states},
                        {"repeated", f.repeated},
                        {"violating", f.violating},
                        {"about", f.about},
                        {"complaints", f.complaints},
                        {"seconds", f.seconds},
                        {"cancelled", f.cancelled},
                        {"ended_early", f.ended_early}};
  if (f.about != 0)
    all["smallest"] = {{"state", f.smallest.text()},
                       {"place", f.place},
                       {"checker", f.what},
                       {"others", f.smallest.keeps_others ? "kept" : "lost"},
                       {"differing", stores_json(f.differing, t)},
                       {"replay", replay_command}};
  return all;
}

std::string text_of(const replayed& r, const trace& t) {
  return fmt::format("a crash {}\n{}{}the checker: {}\n{}", r.place, stores_text(r.lost, t, "lost"),
                     stores_text(r.kept, t, "kept"), r.seen.what, r.seen.printed);
}

nlohmann::json json_of(const replayed& r, const trace& t) {
  return {{"place", r.place},
          {"lost", stores_json(r.lost, t)},
          {"kept", stores_json(r.kept, t)},
          {"consistent", r.seen.consistent},
          {"checker", r.seen.what},
          {"printed", r.seen.printed}};
}

}  // namespace stele::foreign
