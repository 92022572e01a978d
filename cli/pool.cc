// stele pool create|info|check: pool files from the shell.
#include <cli/command.h>
#include <fmt/format.h>
#include <tx/inspect.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

struct options {
  std::string path, json, size = "64M", layout, log_size = "0";
  std::size_t log_count = 0;
};

// 65536, 64K, 64M, 64MiB, 1G, 1T.
std::size_t parse_size(const std::string& text) {
  std::size_t used = 0;
  unsigned long long value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    fail(fmt::format("'{}' is no size; write bytes, or a number with K, M, G or T", text));
  }
  static constexpr std::string_view units = "KMGT";
  const std::string unit = text.substr(used);
  if (text.starts_with('-')) fail(fmt::format("'{}' is no size: it is negative", text));
  if (unit.empty()) return value;
  const auto at = units.find(static_cast<char>(std::toupper(unit[0])));
  if (at == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "iB" && unit.substr(1) != "B"))
    fail(fmt::format("'{}' is no size; write bytes, or a number with K, M, G or T", text));
  const unsigned shift = 10 * (static_cast<unsigned>(at) + 1);
  if (value > (~0ull >> shift)) fail(fmt::format("'{}' is more than any file can hold", text));
  return static_cast<std::size_t>(value << shift);
}

nlohmann::json json_of(const detail::pool_info& i) {
  const auto& h = i.header;
  nlohmann::json j{{"version", h.version},       {"id", fmt::format("{:016x}", h.id)},
                   {"layout", h.layout.data()},  {"size_bytes", h.size},
                   {"log_count", h.log_count},   {"log_size_bytes", h.log_size},
                   {"home_offset", h.home_offset}, {"chunk_bytes", std::size_t{1} << h.chunk_shift},
                   {"chunks", h.chunk_count},    {"logs", i.logs_of},
                   {"left_open", i.left_open}};
  j["in_use_by"] = i.in_use_by ? nlohmann::json(*i.in_use_by) : nlohmann::json(nullptr);
  if (h.checkpoint_commits != 0) j["checkpoint_commits"] = h.checkpoint_commits;
  if (i.fallback.state != format::fallback_state::none) j["fallback"] = {{"to", i.fallback.to}, {"from", i.fallback.from}};
  return j;
}

std::string state_of(const detail::pool_info& i) {
  if (i.in_use_by) return fmt::format("open in process {}", *i.in_use_by);
  return i.left_open ? "not closed; the next open recovers it" : "closed";
}

void print_info(const detail::pool_info& i, const std::string& path) {
  const auto& h = i.header;
  fmt::print("{}\n", path);
  fmt::print("  format     {}, id {:016x}, layout '{}'\n", h.version, h.id, h.layout.data());
  fmt::print("  size       {} bytes ({:.1f} MiB)\n", h.size, static_cast<double>(h.size) / (1 << 20));
  fmt::print("  logs       {} of {} bytes, {}\n", h.log_count, h.log_size, i.logs_of);
  fmt::print("  heap       {} chunks of {} bytes\n", h.chunk_count, std::size_t{1} << h.chunk_shift);
  if (h.checkpoint_commits != 0) fmt::print("  checkpoint each {} commits, while lines are skipped\n", h.checkpoint_commits);
  fmt::print("  state      {}\n", state_of(i));
  if (i.fallback.state != format::fallback_state::none)
    fmt::print("  LOST       commits after {}, up to {}: it went back to a checkpoint. A program acknowledges that with pool::acknowledge_fallback\n", i.fallback.to, i.fallback.from);
}

void info(const options& o) {
  const auto i = detail::info_of(o.path);
  if (!i) fail(i.error());
  if (o.json != "-") print_info(*i, o.path);
  if (!o.json.empty()) write_json(o.json, json_of(*i));
}

void create(const options& o) {
  const auto made = storage::pool_file::create(o.path, {parse_size(o.size), parse_size(o.log_size), o.log_count, o.layout});
  if (!made) fail(made.error());
  info(o);
}

void print_check(const detail::check_report& r, const std::string& path) {
  std::uint64_t records = 0, bytes = 0;
  for (const auto& l : r.logs) records += l.records, bytes += l.bytes;
  print_info(r.info, path);
  fmt::print("  log        {} records, {} bytes{}\n", records, bytes, r.recovered ? "; recovered on a copy, the file was not changed" : "");
  if (!r.lost.empty()) fmt::print("  LOST       opening it goes back to a checkpoint: {}\n", r.lost);
  fmt::print("  root       offset {}, {} bytes\n", r.root_offset, r.root_size);
  fmt::print("  used       {} blocks, {} bytes\n", r.heap.used_blocks, r.heap.used_bytes);
  fmt::print("  free       {} chunks, and {} bytes in blocks; longest run {} chunks\n", r.heap.free_chunks, r.heap.free_blocks_bytes, r.heap.longest_free_run);
  fmt::print("header, logs and heap are sound: used and free tile the heap\n");
}

void check(const options& o) {
  const auto r = detail::check_pool(o.path);
  if (!r) {
    if (!o.json.empty()) write_json(o.json, {{"sound", false}, {"error", name_of(r.error().code)}, {"message", r.error().message}});
    fail(r.error());
  }
  if (o.json != "-") print_check(*r, o.path);
  if (o.json.empty()) return;
  nlohmann::json j{{"sound", true}, {"info", json_of(r->info)}, {"recovered", r->recovered}, {"lost", r->lost}, {"newest_commit", r->newest_commit}};
  j["root"] = {{"offset", r->root_offset}, {"size_bytes", r->root_size}};
  j["heap"] = {{"used_blocks", r->heap.used_blocks}, {"used_bytes", r->heap.used_bytes}, {"free_chunks", r->heap.free_chunks},
               {"free_block_bytes", r->heap.free_blocks_bytes}, {"longest_free_run_chunks", r->heap.longest_free_run}};
  for (const auto& l : r->logs) j["logs"].push_back({{"records", l.records}, {"bytes", l.bytes}});
  write_json(o.json, j);
}

CLI::App* add(CLI::App& group, const char* name, const char* what, const std::shared_ptr<options>& o) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("path", o->path, "the pool file")->required();
  command->add_option("--json", o->json, "write the report to FILE; - is standard output");
  return command;
}

}  // namespace

void add_pool(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group = app.add_subcommand("pool", "create, describe and check pool files");
  group->require_subcommand(1);
  CLI::App* made = add(*group, "create", "a new pool of real space", o);
  made->add_option("--size", o->size, "bytes; K, M, G, T are known")->capture_default_str();
  made->add_option("--layout", o->layout, "name of the layout that programs will ask for");
  made->add_option("--log-size", o->log_size, "bytes of each log; 0: by pool size")->capture_default_str();
  made->add_option("--log-count", o->log_count, "logs, so threads that commit at once; 0: by pool size")->capture_default_str();
  made->callback([o] { create(*o); });
  add(*group, "info", "what a pool is; it may be in use", o)->callback([o] { info(*o); });
  add(*group, "check", "whether header, logs and heap are sound; changes nothing", o)->callback([o] { check(*o); });
}

}  // namespace stele::cli
