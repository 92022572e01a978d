// Records runs on coalescing and on plain memory, and measures the dirtiness of their lines.
#include <bench/figures/archapt_dirtiness.h>
#include <bench/host.h>
#include <fmt/format.h>
#include <lab_media/dirtiness.h>
#include <workloads/record.h>

#include <array>

namespace stele::bench::archapt {
namespace {

using stated::statement;
using enum stated::metric;

constexpr std::size_t value_bytes = 128;
constexpr std::size_t small_value_bytes =
    32;  // figure 10 has these too: nodes are then at most a line
constexpr std::array published = {"tpcc",   "ycsb-a", "ycsb-b",   "ycsb-d",
                                  "ycsb-e", "ycsb-f", "linkbench"};
constexpr std::array ours = {"kv", "hash", "rbtree"};

// Table I. The text has rows for systems: Redis with its TPC-C and YCSB, SQLite with TPC-C and
// LinkBench. The numbers are the authors'.
struct stated_mean {
  const char* workload;
  std::optional<double> redis, sqlite;
};
constexpr std::array<stated_mean, published.size()> table_one = {
    {{"tpcc", 0.31, 0.40},
     {"ycsb-a", 0.55, std::nullopt},
     {"ycsb-b", 0.55, std::nullopt},
     {"ycsb-d", 0.51, std::nullopt},
     {"ycsb-e", 0.51, std::nullopt},
     {"ycsb-f", 0.56, std::nullopt},
     {"linkbench", std::nullopt, 0.49}}};

// Where the text does not say whether a percentage refers to the dirtiness before or to the line,
// the statement is listed for both.
constexpr statement statements[] = {
    {"I", "mean of the workloads, undo", "0.49 (each of Redis and SQLite)", "", value, "dirtiness",
     "undo", "", ""},
    {"I", "mean of the workloads, redo", "0.49 (each of Redis and SQLite)", "", value, "dirtiness",
     "redo", "", ""},
    {"I", "tpcc, undo", "0.31 (Redis), 0.40 (SQLite)", "", value, "dirtiness", "undo", "", "tpcc"},
    {"I", "ycsb-a, undo", "0.55", "", value, "dirtiness", "undo", "", "ycsb-a"},
    {"I", "ycsb-b, undo", "0.55", "", value, "dirtiness", "undo", "", "ycsb-b"},
    {"I", "ycsb-d, undo", "0.51", "", value, "dirtiness", "undo", "", "ycsb-d"},
    {"I", "ycsb-e, undo", "0.51", "", value, "dirtiness", "undo", "", "ycsb-e"},
    {"I", "ycsb-f, undo", "0.56", "", value, "dirtiness", "undo", "", "ycsb-f"},
    {"I", "linkbench, undo", "0.49", "", value, "dirtiness", "undo", "", "linkbench"},
    {"I", "undo over redo", "the same", "%", gain, "dirtiness", "undo", "redo", ""},

    {"10", "gain by coalescing, of the dirtiness without", "12 %, mean", "%", gain, "dirtiness",
     "coalescing", "plain", ""},
    {"10", "gain by coalescing, of the line", "12 %, mean", "", value, "gain", "all", "", ""},
    {"10", "the same of values of 32 B, of the dirtiness without", "12 %, mean", "%", gain,
     "dirtiness, 32 B", "coalescing", "plain", ""},
    {"10", "the same of values of 32 B, of the line", "12 %, mean", "", value, "gain, 32 B", "all",
     "", ""},
    {"10", "ycsb-e without", "0.51", "", value, "dirtiness", "plain", "", "ycsb-e"},
    {"10", "ycsb-e with", "0.68, the largest increase", "", value, "dirtiness", "coalescing", "",
     "ycsb-e"},
};

// Figure 10 with SQLite as the host has the rows of table I instead: SQLite decides where its rows
// are, and nothing of it is in coalescing memory.
constexpr statement hosted_statements[] = {
    {"10", "tpcc, undo", "0.40 (SQLite, table I)", "", value, "dirtiness", "plain", "", "tpcc"},
    {"10", "linkbench, undo", "0.49 (SQLite, table I)", "", value, "dirtiness", "plain", "",
     "linkbench"},
};

constexpr statement redis_statements[] = {
    {"10", "tpcc, undo", "0.31 (Redis, table I)", "", value, "dirtiness", "plain", "", "tpcc"},
    {"10", "ycsb-a, undo", "0.55 (Redis, table I)", "", value, "dirtiness", "plain", "", "ycsb-a"},
    {"10", "ycsb-b, undo", "0.55 (Redis, table I)", "", value, "dirtiness", "plain", "", "ycsb-b"},
    {"10", "ycsb-d, undo", "0.51 (Redis, table I)", "", value, "dirtiness", "plain", "", "ycsb-d"},
    {"10", "ycsb-e, undo", "0.51 (Redis, table I)", "", value, "dirtiness", "plain", "", "ycsb-e"},
    {"10", "ycsb-f, undo", "0.56 (Redis, table I)", "", value, "dirtiness", "plain", "", "ycsb-f"},
};

std::vector<std::optional<spread>> empty_points(const panel& p) {
  return std::vector<std::optional<spread>>(p.xs.size());
}
spread constant(double v) {
  return {v, v, v};
}

// A workload and the memory that it runs on.
struct subject {
  const char* workload;
  std::size_t value_size = value_bytes;
  bool coalesce = false;

  workloads::parameters parameters(const sweep_options& o) const {
    return {.value_size = value_size, .keys = o.traced_keys, .seed = o.seed, .coalesce = coalesce};
  }
};

task task_of(const subject& s, const sweep_options& o) {
  task t;
  t.workload = s.workload;
  t.host = o.host;
  t.dir = o.dir;
  t.spare_bytes = o.spare_bytes;
  t.label = s.coalesce ? "-coalescing" : "";
  t.parameters = s.parameters(o);
  t.pool_size_bytes = (std::size_t{8} << 20) + o.traced_keys * (s.value_size + 128) *
                                                   4;  // twice what tpcc, the largest, needs
  if (!o.host.empty()) t.pool_size_bytes = pool_size_of(t);
  if (o.host == "redis") t.pool_size_bytes *= 4;  // each row of tpcc has blocks for its fields
  return t;
}

result<media::dirtiness_by_part> dirtiness_of(const subject& s, const char* mechanism,
                                              const sweep_options& o) {
  o.progress(fmt::format("{}, values of {} B, under {}{}", s.workload, s.value_size, mechanism,
                         s.coalesce ? ", coalescing" : ""));
  workloads::recording_options r{.workload = s.workload,
                                 .mechanism = mechanism,
                                 .operations = o.traced_operations,
                                 .seed = o.seed,
                                 .record_bytes = false,
                                 .dir = o.dir,
                                 .cancelled = o.cancelled};
  r.content = s.parameters(o);
  if (!o.host.empty()) {
    r.make_hosted = [t = task_of(s, o)] { return make_hosted_workload(t); };
    r.record_bytes = true;
    r.hosted_pool_size = task_of(s, o).pool_size_bytes;
  }
  const auto tape = workloads::record(
      r, [](const media::tape_options& shape) { return media::tape_writer::to_memory(shape); });
  if (!tape) return std::unexpected(tape.error());
  auto reader = media::tape_reader::from_memory((*tape)->memory());
  if (!reader) return std::unexpected(reader.error());
  return media::dirtiness_of(
      *reader, o.cancelled,
      o.host.empty() ? media::dirty_bytes::stored : media::dirty_bytes::changed);
}

// The bytes of the blocks of the filled structure.
result<std::uint64_t> bytes_taken(const subject& s, const sweep_options& o) {
  auto made = make_stele(task_of(s, o), "none");
  if (!made) return std::unexpected(made.error());
  if (auto filled = (*made)->set_up(); !filled) return std::unexpected(filled.error());
  const footprint f = (*made)->space();
  return f.space_bytes.value_or(0) - f.log_bytes;
}

std::string setting_of(const sweep_options& o) {
  return fmt::format(
      "{} operations, one a transaction, on {} keys with values of {} B unless others are named; "
      "filling the pool is not counted",
      o.traced_operations, o.traced_keys, value_bytes);
}

void add_notes(const sweep_options& o, chart& into) {
  into.notes.push_back(setting_of(o));
  into.notes.emplace_back(
      "a line counts each time it is written back: flushed, or streamed and fenced. Home has the "
      "heap's tables and states too; all: with logs and control words");
  into.notes.emplace_back("logs stream whole lines, their padding included");
  if (o.host == "redis") {
    into.notes.emplace_back(
        "a server without a pool ran each transaction; its commands were done in a pool of this "
        "process as the module does them. A value is set whole; of home those bytes count as dirty "
        "that get another value");
    return;
  }
  if (!o.host.empty()) {
    into.notes.emplace_back(
        "a commit stores the lines of SQLite's pages that differ, each line whole; of home those "
        "bytes count as dirty that get another value. SQLite decides where its rows are, so "
        "nothing is in coalescing memory");
    return;
  }
  into.notes.emplace_back(
      "updates write whole records in place here, where Redis writes one of ten fields of a "
      "kilobyte; records of ycsb and rows of tpcc and linkbench are no texts of their own");
}

// One for plain memory and, without a host, one for coalescing memory.
using compared = std::vector<media::dirtiness_by_part>;
struct memory_kind {
  const char *name, *label;
};
constexpr memory_kind memory_kinds[] = {{"plain", "plain memory"},
                                        {"coalescing", "coalescing memory"}};
std::span<const memory_kind> kinds_on(const sweep_options& o) {
  return std::span(memory_kinds).first(o.host.empty() ? 2 : 1);
}

// A panel with a series for each kind of memory, over the workloads.
panel panel_of_kinds(std::string name, std::string y, const std::vector<std::string>& xs,
                     const sweep_options& o) {
  panel p{std::move(name), "workload", std::move(y), xs, {}, true};
  for (const memory_kind& k : kinds_on(o))
    p.lines.push_back({k.name, k.label, false, empty_points(p)});
  return p;
}

panel distribution(const std::string& workload, const compared& c) {
  panel p{"distribution, " + workload, "dirty bytes of a line", "% of the lines", {"0"}, {}, false};
  for (int bytes = 8; bytes <= 64; bytes += 8)
    p.xs.push_back(fmt::format("{}-{}", bytes - 7, bytes));
  for (std::size_t kind = 0; kind < c.size(); ++kind) {
    series s{memory_kinds[kind].name, memory_kinds[kind].label, false, empty_points(p)};
    const media::dirtiness all = c[kind].all();
    const auto eighths = all.eighths();
    for (std::size_t i = 0; i < eighths.size(); ++i)
      s.points[i] = constant(100 * static_cast<double>(eighths[i]) /
                             static_cast<double>(std::max<std::uint64_t>(all.total(), 1)));
    p.lines.push_back(std::move(s));
  }
  return p;
}

// The panels of figure 10 with a place for each workload.
class by_workload {
 public:
  // `end` is appended to the panel names.
  by_workload(std::vector<std::string> xs, const std::string& end, const sweep_options& o)
      : operations_(static_cast<double>(o.traced_operations)),
        all_(panel_of_kinds("dirtiness" + end, "mean dirtiness of all lines written back", xs, o)),
        home_(panel_of_kinds("dirtiness of home" + end, "mean dirtiness of home lines written back",
                             xs, o)),
        lines_(panel_of_kinds("lines" + end, "home lines written back a transaction", xs, o)),
        memory_(panel_of_kinds("memory" + end, "bytes of blocks a key", xs, o)),
        gain_{"gain" + end, "workload", "what coalescing adds to the mean dirtiness",
              xs,           {},         true} {
    gain_.lines = {{"all", "all lines", false, empty_points(gain_)},
                   {"home", "home lines", false, empty_points(gain_)}};
  }

  void add(std::size_t place, const compared& c) {
    for (std::size_t kind = 0; kind < c.size(); ++kind) {
      set(all_, kind, place, c[kind].all().mean());
      set(home_, kind, place, c[kind].home.mean());
      set(lines_, kind, place, static_cast<double>(c[kind].home.total()) / operations_);
    }
    if (c.size() < 2) return;
    set(gain_, 0, place, c[1].all().mean() - c[0].all().mean());
    set(gain_, 1, place, c[1].home.mean() - c[0].home.mean());
  }
  void add_memory(std::size_t kind, std::size_t place, double bytes) {
    set(memory_, kind, place, bytes);
  }

  std::vector<panel> panels() && {
    std::vector<panel> all = {std::move(all_)};
    if (home_.lines.size() > 1) all.push_back(std::move(gain_));
    for (panel* p : {&home_, &lines_, &memory_}) all.push_back(std::move(*p));
    return all;
  }

 private:
  static void set(panel& p, std::size_t line, std::size_t place, double value) {
    p.lines[line].points[place] = constant(value);
  }

  double operations_;
  panel all_, home_, lines_, memory_, gain_;
};

result<compared> compare_memories(subject s, const sweep_options& o) {
  compared all;
  for (std::size_t kind = 0; kind < kinds_on(o).size(); ++kind) {
    s.coalesce = kind != 0;
    const auto d = dirtiness_of(s, "undo", o);
    if (!d) return std::unexpected(d.error());
    all.push_back(*d);
  }
  return all;
}

result<> compare_bytes(subject s, std::size_t place, const sweep_options& o, by_workload& into) {
  for (std::size_t kind = 0; kind < kinds_on(o).size(); ++kind) {
    s.coalesce = kind != 0;
    const auto bytes = bytes_taken(s, o);
    if (!bytes) return std::unexpected(bytes.error());
    into.add_memory(kind, place, static_cast<double>(*bytes) / static_cast<double>(o.traced_keys));
  }
  return {};
}

// Figure 10 for values of one size; distribution panels go to `distributions`.
result<> measure_values(std::size_t value_size, const std::string& end, const sweep_options& o,
                        chart& into, std::vector<panel>& distributions) {
  std::vector<const char*> all(published.begin(), published.end());
  if (o.host.empty()) all.insert(all.end(), ours.begin(), ours.end());
  by_workload sums({all.begin(), all.end()}, end, o);
  for (std::size_t place = 0; place < all.size() && into.complete; ++place) {
    const auto c = compare_memories({all[place], value_size}, o);
    if (!c) return std::unexpected(c.error());
    into.complete = !o.cancelled();
    if (!into.complete) break;
    sums.add(place, *c);
    distributions.push_back(distribution(all[place] + end, *c));
    if (auto done = compare_bytes({all[place], value_size}, place, o, sums); !done) return done;
  }
  for (panel& p : std::move(sums).panels()) into.panels.push_back(std::move(p));
  return {};
}

constexpr std::array table_mechanisms = {"undo", "redo"};

// A workload's column of table I; empty after an interruption.
result<> measure_place(std::size_t place, const sweep_options& o, panel& p, chart& into) {
  for (std::size_t m = 0; m < table_mechanisms.size() && into.complete; ++m) {
    const auto d = dirtiness_of({published[place]}, table_mechanisms[m], o);
    if (!d) return std::unexpected(d.error());
    into.complete = !o.cancelled();
    if (!into.complete) return {};
    for (std::size_t part = 0; const double mean : {d->all().mean(), d->home.mean(), d->log.mean()})
      p.lines[3 * m + part++].points[place] = constant(mean);
  }
  return {};
}

}  // namespace

std::span<const statement> dirtiness_statements(std::string_view host) noexcept {
  if (host == "redis") return redis_statements;
  return host.empty() ? std::span<const statement>(statements) : hosted_statements;
}

result<> measure_dirtiness_table(const sweep_options& o, chart& into) {
  panel p{"dirtiness",
          "workload",
          "mean dirtiness of lines written back",
          {published.begin(), published.end()},
          {},
          true};
  for (const char* mechanism : table_mechanisms)
    for (const auto& [part, label] :
         {std::pair{"", "all lines"}, std::pair{" home", "home"}, std::pair{" log", "logs"}})
      p.lines.push_back({fmt::format("{}{}", mechanism, part),
                         fmt::format("{}, {}", mechanism, label), false, empty_points(p)});
  series redis{"redis", "Redis", true, empty_points(p)},
      sqlite{"sqlite", "SQLite", true, empty_points(p)};
  for (std::size_t place = 0; place < published.size(); ++place) {
    if (const auto v = table_one[place].redis) redis.points[place] = constant(*v);
    if (const auto v = table_one[place].sqlite) sqlite.points[place] = constant(*v);
    if (auto done = measure_place(place, o, p, into); !done) return done;
  }
  p.lines.push_back(std::move(redis));
  p.lines.push_back(std::move(sqlite));
  into.panels.push_back(std::move(p));
  add_notes(o, into);
  return {};
}

result<> measure_dirtiness(const sweep_options& o, chart& into) {
  std::vector<panel> distributions;
  if (auto done = measure_values(value_bytes, "", o, into, distributions); !done) return done;
  if (auto done = measure_values(small_value_bytes, fmt::format(", {} B", small_value_bytes), o,
                                 into, distributions);
      !done)
    return done;
  into.panels.insert(into.panels.end(), std::make_move_iterator(distributions.begin()),
                     std::make_move_iterator(distributions.end()));
  add_notes(o, into);
  return {};
}

}  // namespace stele::bench::archapt
