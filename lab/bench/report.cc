// Writes a comparison as a table for people and as JSON for programs.
#include <bench/compare.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace stele::bench {
namespace {

using cells = std::array<std::string, 15>;

const cells headings = {"system",    "media", "durable",   "tx/s",     "min",
                        "max",       "ratio", "fences/tx", "lines/tx", "B streamed/tx",
                        "aborts/tx", "p50",   "p99",       "p99.9",    "space/live"};
constexpr std::size_t text_columns = 3;  // aligned left, the others right
// What a narrow table has, of 80 columns.
constexpr std::array narrow_columns = {0u, 1u, 2u, 3u, 6u, 11u, 12u};
constexpr std::size_t narrow_width = 80;

std::string rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.3f} M", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.2f} k", per_second / 1e3);
  return fmt::format("{:.1f}", per_second);
}

std::string time(double ns) {
  if (ns >= 1e6) return fmt::format("{:.1f} ms", ns / 1e6);
  if (ns >= 1e3) return fmt::format("{:.1f} us", ns / 1e3);
  return fmt::format("{:.0f} ns", ns);
}

std::string number(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

cells cells_of(const row& r, double baseline) {
  const auto overhead =
      r.space_bytes && r.live_bytes != 0
          ? std::optional(static_cast<double>(*r.space_bytes) / static_cast<double>(r.live_bytes))
          : std::nullopt;
  return {r.system,
          r.media,
          name_of(r.survives),
          rate(r.tx_per_s.median),
          rate(r.tx_per_s.min),
          rate(r.tx_per_s.max),
          fmt::format("{:.2f}", r.tx_per_s.median / baseline),
          number(r.fences_per_tx, "{:.2f}"),
          number(r.lines_per_tx, "{:.2f}"),
          number(r.streamed_bytes_per_tx, "{:.0f}"),
          number(r.aborts_per_tx, "{:.4f}"),
          time(r.p50_ns),
          time(r.p99_ns),
          time(r.p999_ns),
          number(overhead, "{:.2f}")};
}

double baseline_of(const report& r, const std::string& name) {
  const auto is_limit = [](const row& x) {
    return x.system == "volatile" || x.system == "one-fence log by hand" || x.system == ":memory:";
  };
  auto found = std::ranges::find(r.rows, name, &row::system);
  if (found == r.rows.end()) found = std::ranges::find_if_not(r.rows, is_limit);
  return found == r.rows.end() ? r.rows.front().tx_per_s.median : found->tx_per_s.median;
}

nlohmann::json json_of(const spread& s) {
  return {{"min", s.min}, {"median", s.median}, {"max", s.max}};
}

template <class T>
nlohmann::json json_of(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json json_of(const row& r) {
  return {{"system", r.system},
          {"workload", r.workload},
          {"threads", r.threads},
          {"media", r.media},
          {"durability", name_of(r.survives)},
          {"tx_per_s", json_of(r.tx_per_s)},
          {"fences_per_tx", json_of(r.fences_per_tx)},
          {"lines_per_tx", json_of(r.lines_per_tx)},
          {"streamed_bytes_per_tx", json_of(r.streamed_bytes_per_tx)},
          {"aborts_per_tx", json_of(r.aborts_per_tx)},
          {"latency_ns", {{"p50", r.p50_ns}, {"p99", r.p99_ns}, {"p999", r.p999_ns}}},
          {"space_bytes", json_of(r.space_bytes)},
          {"live_bytes", r.live_bytes}};
}

struct named_cost {
  const char* key;
  const char* words;
  std::optional<spread> ns;
};

std::array<named_cost, 4> named(const limits& l) {
  return {{{"streamed_line_fence_ns", "streamed line + fence", l.streamed_line_fence_ns},
           {"flushed_line_fence_ns", "flushed random line + fence", l.flushed_line_fence_ns},
           {"empty_fence_ns", "empty fence", l.empty_fence_ns},
           {"synced_block_ns", "overwritten 4 KiB block + fdatasync", l.synced_block_ns}}};
}

std::string hardware_lines(const limits& l) {
  std::string out, line = "hardware:";
  for (const auto& [key, words, ns] : named(l)) {
    if (!ns) continue;
    const std::string cost = fmt::format(" {} {}", words, time(ns->median));
    if (line.ends_with(',') && line.size() + cost.size() >= narrow_width) {
      out += line + '\n';
      line = "         ";
    }
    line += cost + ',';
  }
  if (!line.ends_with(',')) return {};
  line.back() = '\n';
  return out + line;
}

}  // namespace

std::string table_of(const report& r, const std::string& baseline, table_width width) {
  std::vector<cells> lines = {headings};
  for (const row& x : r.rows) lines.push_back(cells_of(x, baseline_of(r, baseline)));
  std::array<std::size_t, std::tuple_size_v<cells>> widths{};
  for (const cells& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string out;
  for (const cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (width == table_width::narrow &&
          std::ranges::find(narrow_columns, i) == narrow_columns.end())
        continue;
      out += i < text_columns ? fmt::format("{:<{}}  ", line[i], widths[i])
                              : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  out += hardware_lines(r.hardware);
  if (r.hardware.driver_ns)
    out += fmt::format("driver: {} of each transaction, to draw its operations and count it\n",
                       time(r.hardware.driver_ns->median));
  for (const std::string& note : r.notes) out += fmt::format("note: {}\n", note);
  return out;
}

nlohmann::json json_of(const report& r) {
  nlohmann::json limits = nlohmann::json::object();
  for (const auto& [key, words, ns] : named(r.hardware))
    if (ns) limits[key] = json_of(*ns);
  if (r.hardware.driver_ns) limits["driver_ns"] = json_of(*r.hardware.driver_ns);
  nlohmann::json rows = nlohmann::json::array();
  for (const row& x : r.rows) {
    rows.push_back(json_of(x));
    if (x.system == "volatile") limits["volatile_tx_per_s"] = x.tx_per_s.median;
    if (x.system == "one-fence log by hand") limits["one_fence_log_tx_per_s"] = x.tx_per_s.median;
  }
  return {{"limits", std::move(limits)}, {"rows", std::move(rows)}};
}

}  // namespace stele::bench
