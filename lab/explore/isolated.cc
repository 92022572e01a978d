// Explores in a child process: a violation may be a crash, an endless loop or
// damaged memory, and must not end the caller.
#include <explore/child_output.h>
#include <explore/explorer.h>
#include <explore/replay.h>
#include <explore/report.h>

#include <nlohmann/json.hpp>

#include <base/check.h>

namespace stele::explore {

result<child_report> report_of_child(const std::function<nlohmann::json()>& run) {
  const auto out = output_of_child([&] { return run().dump(); });
  if (!out) return std::unexpected(out.error());
  auto report = nlohmann::json::parse(out->text, nullptr, false);
  if (report.is_object() && report.contains("error"))
    return base::fail(errc::invalid_argument, report.at("error"));
  return child_report{std::move(report), out->death};
}

result<findings> run_isolated(const std::function<result<findings>()>& run,
                              const std::string& line) {
  const auto made = report_of_child([&] {
    const auto found = run();
    return found ? json_of(*found) : nlohmann::json{{"error", found.error().message}};
  });
  if (!made) return std::unexpected(made.error());
  if (made->found.is_object()) return findings_of(made->found);
  findings f;
  f.violations.push_back({made->death, line});
  return f;
}

result<findings> explore_isolated(const plan& p, const settings& s) {
  return run_isolated([&] { return explore(p, s); }, format_line(run_crash{.run_plan = p}));
}

}  // namespace stele::explore
