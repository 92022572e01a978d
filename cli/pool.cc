// stele pool create|info|check|dump|resize|backup|compact: works on pool files from the shell.
#include <cli/command.h>
#include <cli/pool_content.h>
#include <cli/pool_copy.h>
#include <cli/reading.h>
#include <fmt/format.h>
#include <tx/inspect.h>
#include <tx/open.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

struct options {
  std::string path, to, json, size = "64M", layout, log_size = "0";
  std::string salvage;  // the file for what is left; empty: none
  std::string copy_size = "0";
  std::size_t log_count = 0;
  bool no_sums = false, repair = false;
  bool leaks = false;
};

nlohmann::json json_of(const detail::pool_info& i) {
  const auto& h = i.header;
  nlohmann::json j{{"version", h.version},         {"id", fmt::format("{:016x}", h.id)},
                   {"layout", h.layout.data()},    {"size_bytes", h.size},
                   {"log_count", h.log_count},     {"log_size_bytes", h.log_size},
                   {"home_offset", h.home_offset}, {"chunk_bytes", std::size_t{1} << h.chunk_shift},
                   {"chunks", h.chunk_count},      {"logs", i.logs_of},
                   {"left_open", i.left_open}};
  j["sums"] = h.block_checksums_offset != 0;
  j["durability"] = name_of(i.durability);
  if (i.in_use_by) j["serves_readers"] = i.serves_readers;
  j["in_use_by"] = i.in_use_by ? nlohmann::json(*i.in_use_by) : nlohmann::json(nullptr);
  if (h.checkpoint_commits != 0) j["checkpoint_commits"] = h.checkpoint_commits;
  if (i.fallback.state != format::fallback_state::none)
    j["fallback"] = {{"to", i.fallback.to}, {"from", i.fallback.from}};
  return j;
}

// What the pool's checksums say of damage.
std::string sums_of(const detail::pool_info& i) {
  if (i.header.home == format::home_kind::log)
    return i.left_open ? "of the log's blocks; the pool was not closed: 0.15 % of flipped bits are "
                         "not noticed"
                       : "of the log's blocks: damage is found at opening and by check";
  if (i.header.block_checksums_offset == 0) return "none";
  if (i.left_open && i.header.parity_block_size != 0)
    return "of home's blocks, made at close; the pool was not closed: 6 % of flipped bits give a "
           "wrong answer or a signal";
  return "of home's blocks: damage is found at opening and by check";
}

std::string state_of(const detail::pool_info& i) {
  if (i.in_use_by) return fmt::format("open in process {}", *i.in_use_by);
  return i.left_open ? "not closed; the next open recovers it" : "closed";
}

void print_info(const detail::pool_info& i, const std::string& path) {
  const auto& h = i.header;
  fmt::print("{}\n", path);
  fmt::print("  format     {}, id {:016x}, layout '{}'\n", h.version, h.id, h.layout.data());
  fmt::print("  size       {} bytes ({:.1f} MiB)\n", h.size,
             static_cast<double>(h.size) / (1 << 20));
  fmt::print("  logs       {} of {} bytes, {}\n", h.log_count, h.log_size, i.logs_of);
  fmt::print("  heap       {} chunks of {} bytes\n", h.chunk_count,
             std::size_t{1} << h.chunk_shift);
  if (h.checkpoint_commits != 0)
    fmt::print("  checkpoint each {} commits, while lines are skipped\n", h.checkpoint_commits);
  fmt::print("  sums       {}\n", sums_of(i));
  fmt::print("  durability '{}' where it lies now, by the medium that `auto` chooses\n",
             name_of(i.durability));
  fmt::print("  state      {}\n", state_of(i));
  if (i.in_use_by)
    fmt::print("  readers    {}\n",
               i.serves_readers
                   ? "of other processes are served"
                   : "of other processes are not served: that process has no socket for "
                     "them, is busy opening the pool, or refuses this user");
  if (i.fallback.state != format::fallback_state::none)
    fmt::print(
        "  LOST       commits after {}, up to {}: it went back to a checkpoint. A program "
        "acknowledges that with stele::acknowledge_fallback\n",
        i.fallback.to, i.fallback.from);
}

void info(const options& o) {
  const auto i = detail::info_of(o.path);
  if (!i) fail(i.error());
  if (o.json != "-") print_info(*i, o.path);
  if (!o.json.empty()) write_json(o.json, json_of(*i));
}

void create(const options& o) {
  storage::pool_geometry shape{parse_size(o.size), parse_size(o.log_size), o.log_count, o.layout};
  shape.sums = !o.no_sums;
  const auto made = storage::pool_file::create(o.path, shape);
  if (!made) fail(made.error());
  info(o);
}

void print_check(const detail::check_report& r, const std::string& path) {
  std::uint64_t records = 0, bytes = 0;
  for (const auto& l : r.logs) records += l.records, bytes += l.bytes;
  print_info(r.info, path);
  fmt::print("  log        {} records, {} bytes{}\n", records, bytes,
             r.recovered ? "; recovered on a copy, the file was not changed" : "");
  if (!r.fallback_reason.empty())
    fmt::print("  LOST       opening it goes back to a checkpoint: {}\n", r.fallback_reason);
  fmt::print("  root       offset {}, {} bytes\n", r.root_offset, r.root_size);
  fmt::print("  used       {} blocks, {} bytes\n", r.heap.used_blocks, r.heap.used_bytes);
  fmt::print("  free       {} chunks, and {} bytes in blocks; longest run {} chunks\n",
             r.heap.free_chunks, r.heap.free_blocks_bytes, r.heap.longest_free_run);
  if (is_known_layout(r.info.header.layout.data()))
    fmt::print("  content    of layout '{}': its structure is sound\n",
               r.info.header.layout.data());
  if (r.sums)
    fmt::print(
        "header, logs and heap are sound: used and free tile the heap, and {} bytes of home are "
        "what their sums say\n",
        r.verified_bytes);
  else
    fmt::print(
        "header, logs and heap are sound: used and free tile the heap; no sums were there to judge "
        "content by\n");
}

using repair_steps = std::vector<storage::repair_step>;

// Returns what was done, also before an error.
result<> repair(const options& o, repair_steps& done) {
  auto outcome = detail::repair_pool(o.path, done);
  for (const auto& step : done) {
    if (o.json == "-") continue;
    fmt::print("repaired: {}\n", step.what);
    if (!step.saved_page.empty())
      fmt::print("  undo with: dd if={} of={} bs=4096 seek={} conv=notrunc\n", step.saved_page,
                 o.path, step.offset / 4096);
  }
  return outcome;
}

nlohmann::json json_of(const repair_steps& steps) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& step : steps) {
    nlohmann::json one{{"what", step.what}};
    if (!step.saved_page.empty())
      one["page_before"] = {{"file", step.saved_page}, {"offset", step.offset}};
    all.push_back(one);
  }
  return all;
}

// Checks the storage first, then the content if the layout is known, whose leaked blocks it lists.
result<detail::check_report> check_all(const options& o, std::vector<pool_block>& leaked) {
  auto r = detail::check_pool(o.path, progress_on_stderr("checking"));
  const std::string layout = r ? r->info.header.layout.data() : "";
  if (!is_known_layout(layout)) return r;
  // its checksums have just been verified
  auto copy = detail::open_copy_of(o.path, verification::never);
  if (!copy) return std::unexpected(copy.error());
  auto sound = check_content(std::move(*copy), layout);
  if (!sound) return std::unexpected(sound.error());
  leaked = std::move(*sound);
  return r;
}

nlohmann::json json_of(const detail::check_report& r, const repair_steps& repaired,
                       const std::vector<pool_block>& leaked) {
  nlohmann::json j{{"sound", true},
                   {"info", json_of(r.info)},
                   {"recovered", r.recovered},
                   {"lost", r.fallback_reason},
                   {"newest_commit", r.newest_commit}};
  j["repaired"] = json_of(repaired);
  j["judged_bytes"] = r.verified_bytes;
  j["root"] = {{"offset", r.root_offset}, {"size_bytes", r.root_size}};
  j["heap"] = {{"used_blocks", r.heap.used_blocks},
               {"used_bytes", r.heap.used_bytes},
               {"free_chunks", r.heap.free_chunks},
               {"free_block_bytes", r.heap.free_blocks_bytes},
               {"longest_free_run_chunks", r.heap.longest_free_run}};
  for (const auto& l : r.logs) j["logs"].push_back({{"records", l.records}, {"bytes", l.bytes}});
  for (const pool_block& b : leaked)
    j["leaked"].push_back({{"offset", b.offset}, {"size_bytes", b.size_bytes}});
  return j;
}

// Fails if there are any.
void print_leaks(const options& o, const detail::check_report& r,
                 const std::vector<pool_block>& leaked) {
  const std::string layout = r.info.header.layout.data();
  if (!is_known_layout(layout))
    fail(
        fmt::format("{} has the layout '{}', whose types only its program knows: look for leaks "
                    "there, by stele::find_leaks (stele/leaks.h)",
                    o.path, layout));
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const pool_block& b : leaked) ++counts[b.size_bytes];
  if (o.json != "-")
    for (const auto& [size, count] : counts)
      fmt::print("  leaked     {} blocks of {} bytes\n", count, size);
  if (!leaked.empty())
    fail(
        fmt::format("{} has {} blocks in use that its content does not reach: they are lost until "
                    "the content is copied into a new pool",
                    o.path, leaked.size()));
  if (o.json != "-") fmt::print("  leaked     nothing\n");
}

// Writes what is left of the pool, whether it is sound or not. Fails if something is lost.
void salvage(const options& o, const repair_steps& repaired) {
  const nlohmann::json saved =
      salvage_pool({.from = o.path, .to = o.salvage, .options = {}, .prints = o.json != "-"},
                   progress_on_stderr("saving"));
  if (!o.json.empty()) write_json(o.json, {{"repaired", json_of(repaired)}, {"salvaged", saved}});
  if (!saved["lost"].empty())
    fail(fmt::format("{} has what is left of {}; {} parts of the content are lost", o.salvage,
                     o.path, saved["lost"].size()));
}

void check(const options& o) {
  repair_steps repaired;
  std::vector<pool_block> leaked;
  const result<> outcome = o.repair ? repair(o, repaired) : result<>{};
  if (!o.salvage.empty()) {
    if (!outcome && o.json != "-") fmt::print("not repaired: {}\n", outcome.error().message);
    return salvage(o, repaired);
  }
  const auto r = outcome ? check_all(o, leaked) : std::unexpected(outcome.error());
  if (!r) {
    if (!o.json.empty())
      write_json(o.json, {{"sound", false},
                          {"error", name_of(r.error().code)},
                          {"message", r.error().message},
                          {"repaired", json_of(repaired)}});
    fail(r.error());
  }
  if (o.json != "-") print_check(*r, o.path);
  if (!o.json.empty()) write_json(o.json, json_of(*r, repaired, leaked));
  if (o.leaks) print_leaks(o, *r, leaked);
}
std::unique_ptr<detail::runtime> opened(const options& o) {
  auto r = detail::open_path(o.path, {});
  if (!r) fail(r.error());
  return std::move(*r);
}
void close(detail::runtime& r) {
  if (const auto closed = r.close(); !closed) fail(closed.error());
}

void resize(const options& o) {
  const auto pool = opened(o);
  if (const auto now = pool->state().file.header().size; parse_size(o.size) < now) {
    close(*pool);
    fail(
        fmt::format("{} has {} bytes, and a pool does not become smaller in place: `stele pool "
                    "compact {} COPY` makes a smaller copy",
                    o.path, now, o.path));
  }
  if (const auto grown = detail::grow(*pool, parse_size(o.size)); !grown) fail(grown.error());
  close(*pool);
  info(o);
}

void backup(options& o) {
  const auto report = progress_on_stderr("copying");
  const auto from_open = detail::back_up_if_open(o.path, o.to, report);
  if (!from_open) fail(from_open.error());
  if (!*from_open) {
    const auto pool = open_for_reading(o.path);
    if (const auto made = detail::back_up(*pool, o.to, report); !made) fail(made.error());
    close(*pool);
  }
  o.path = o.to;
  info(o);
}

void compact(const options& o) {
  const nlohmann::json report = compact_pool({.from = o.path,
                                              .to = o.to,
                                              .options = {.size_bytes = parse_size(o.copy_size),
                                                          .log_size = parse_size(o.log_size),
                                                          .log_count = o.log_count},
                                              .prints = o.json != "-"},
                                             progress_on_stderr("copying"));
  if (!o.json.empty()) write_json(o.json, report);
}

result<nlohmann::json> blocks_of(const detail::runtime& pool) {
  nlohmann::json blocks = nlohmann::json::array();
  const auto walked = pool.state().heap.audit([&](std::uint64_t offset, std::size_t size) {
    blocks.push_back({{"offset", offset}, {"size_bytes", size}});
  });
  if (!walked) return std::unexpected(walked.error());
  return nlohmann::json{{"blocks", blocks}};
}

// Writes JSON: the header, and the content if its layout is known, else every block in use.
void dump(const options& o) {
  const auto i = detail::info_of(o.path);
  if (!i) fail(i.error());
  const std::string layout = i->header.layout.data();
  const bool known = is_known_layout(layout);
  auto copy = detail::open_copy_of(o.path, known ? verification::automatic : verification::never);
  if (!copy) fail(copy.error());
  auto report = known ? content_of(std::move(*copy), layout) : blocks_of(**copy);
  if (!report) fail(report.error());
  (*report)["info"] = json_of(*i);
  write_json(o.json.empty() ? "-" : o.json, *report, o.path);
}

CLI::App* add(CLI::App& group, const char* name, const char* what,
              const std::shared_ptr<options>& o) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("path", o->path, "the pool file")->required();
  command->add_option("--json", o->json, "write the report to FILE; - is standard output");
  return command;
}

}  // namespace

void add_pool(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group = app.add_subcommand(
      "pool", "create, describe, check, repair, dump, resize, back up and compact pool files");
  group->require_subcommand(1);
  CLI::App* made = add(*group, "create", "a new pool of real space", o);
  made->add_option("--size", o->size, "bytes; K, M, G, T are known")->capture_default_str();
  made->add_option("--layout", o->layout, "name of the layout that programs will ask for");
  made->add_option("--log-size", o->log_size, "bytes of each log; 0: by pool size")
      ->capture_default_str();
  made->add_option("--log-count", o->log_count,
                   "logs, so threads that commit at once; 0: by pool size")
      ->capture_default_str();
  made->add_flag("--no-sums", o->no_sums,
                 "without sums of home's blocks, which take 1.6 % and find damage");
  made->callback([o] { create(*o); });
  add(*group, "info", "what a pool is; it may be in use", o)->callback([o] { info(*o); });
  CLI::App* checked = add(*group, "check",
                          "whether header, logs, heap and the content's sums are sound; changes "
                          "nothing without --repair",
                          o);
  checked->add_flag(
      "--repair", o->repair,
      "first repair what is provably right: a header from its copy, logs of a closed pool, a pool "
      "that was not closed; pages that are overwritten are kept beside the pool");
  checked->add_option("--salvage", o->salvage,
                      "write every item of a store or document that can be read into FILE, a new "
                      "pool, and name what is lost");
  checked->add_flag("--leaks", o->leaks,
                    "fail if blocks are in use that a store's or a document's content does not "
                    "reach, and say how many of which size");
  checked->callback([o] { check(*o); });
  add(*group, "dump",
      "header and content, as JSON: of a key-value store its items, of a document its values, else "
      "the blocks in use",
      o)
      ->callback([o] { dump(*o); });
  CLI::App* resized =
      add(*group, "resize", "makes a pool longer; its content stays where it is", o);
  resized->add_option("--size", o->size, "bytes that it is to have at least; K, M, G, T are known")
      ->required();
  resized->callback([o] { resize(*o); });
  CLI::App* copied =
      add(*group, "backup", "a copy with an id of its own; the pool may be in use", o);
  copied->add_option("to", o->to, "the copy; nothing may be there")->required();
  copied->callback([o] { backup(*o); });
  CLI::App* compacted = add(*group, "compact",
                            "a smaller copy: of a key-value store or a document one that its "
                            "content fits, of another pool one without the free chunks at its end",
                            o);
  compacted->add_option("to", o->to, "the copy; nothing may be there")->required();
  compacted
      ->add_option("--size", o->copy_size,
                   "bytes of the copy; 0: as its content needs, and room for a little more")
      ->capture_default_str();
  compacted->add_option("--log-size", o->log_size, "bytes of each log; 0: by pool size")
      ->capture_default_str();
  compacted->add_option("--log-count", o->log_count, "logs; 0: by pool size")
      ->capture_default_str();
  compacted->callback([o] { compact(*o); });
}

}  // namespace stele::cli
