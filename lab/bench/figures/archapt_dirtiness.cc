// Records runs on coalescing and on plain memory, and measures the dirtiness of their lines.
#include <bench/figures/archapt_dirtiness.h>
#include <bench/figures/claims.h>
#include <fmt/format.h>
#include <media/dirtiness.h>
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
  const auto tape = workloads::record(
      r, [](const media::tape_options& shape) { return media::tape_writer::to_memory(shape); });
  if (!tape) return std::unexpected(tape.error());
  auto reader = media::tape_reader::from_memory((*tape)->memory());
  if (!reader) return std::unexpected(reader.error());
  return media::dirtiness_of(*reader, o.cancelled);
}

// The bytes of the blocks of the filled structure.
result<std::uint64_t> bytes_taken(const subject& s, const sweep_options& o) {
  task t;
  t.workload = s.workload;
  t.dir = o.dir;
  t.label = s.coalesce ? "-coalescing" : "";
  t.parameters = s.parameters(o);
  t.pool_size_bytes = (std::size_t{8} << 20) + o.traced_keys * (s.value_size + 128) *
                                                   4;  // twice what tpcc, the largest, needs
  auto made = make_stele(t, "none");
  if (!made) return std::unexpected(made.error());
  if (auto filled = (*made)->set_up(); !filled) return std::unexpected(filled.error());
  const footprint f = (*made)->space();
  return f.space_bytes.value_or(0) - f.log_bytes;
}

void add_claims(std::string_view figure, chart& into) {
  const auto claims = claims_of(into, figure, statements);
  into.claims.insert(into.claims.end(), claims.begin(), claims.end());
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
  into.notes.emplace_back(
      "updates write whole records in place here, where Redis writes one of ten fields of a "
      "kilobyte; records of ycsb and rows of tpcc and linkbench are no texts of their own");
}

struct compared {
  media::dirtiness_by_part plain, coalescing;
};

// A panel of two series, plain and coalescing memory, over the workloads.
panel pair_panel(std::string name, std::string y, const std::vector<std::string>& xs) {
  panel p{std::move(name), "workload", std::move(y), xs, {}, true};
  p.lines = {{"plain", "plain memory", false, empty_points(p)},
             {"coalescing", "coalescing memory", false, empty_points(p)}};
  return p;
}

panel distribution(const std::string& workload, const compared& c) {
  panel p{"distribution, " + workload, "dirty bytes of a line", "% of the lines", {"0"}, {}, false};
  for (int bytes = 8; bytes <= 64; bytes += 8)
    p.xs.push_back(fmt::format("{}-{}", bytes - 7, bytes));
  for (const auto& [name, label, parts] :
       {std::tuple{"plain", "plain memory", &c.plain},
        std::tuple{"coalescing", "coalescing memory", &c.coalescing}}) {
    series s{name, label, false, empty_points(p)};
    const media::dirtiness all = parts->all();
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
        all_(pair_panel("dirtiness" + end, "mean dirtiness of all lines written back", xs)),
        home_(
            pair_panel("dirtiness of home" + end, "mean dirtiness of home lines written back", xs)),
        lines_(pair_panel("lines" + end, "home lines written back a transaction", xs)),
        memory_(pair_panel("memory" + end, "bytes of blocks a key", xs)),
        gain_{"gain" + end, "workload", "what coalescing adds to the mean dirtiness",
              xs,           {},         true} {
    gain_.lines = {{"all", "all lines", false, empty_points(gain_)},
                   {"home", "home lines", false, empty_points(gain_)}};
  }

  void add(std::size_t place, const compared& c) {
    set(all_, place, c.plain.all().mean(), c.coalescing.all().mean());
    set(home_, place, c.plain.home.mean(), c.coalescing.home.mean());
    set(lines_, place, static_cast<double>(c.plain.home.total()) / operations_,
        static_cast<double>(c.coalescing.home.total()) / operations_);
    gain_.lines[0].points[place] = constant(c.coalescing.all().mean() - c.plain.all().mean());
    gain_.lines[1].points[place] = constant(c.coalescing.home.mean() - c.plain.home.mean());
  }
  void add_memory(std::size_t place, double plain, double coalescing) {
    set(memory_, place, plain, coalescing);
  }

  std::vector<panel> panels() && {
    return {std::move(all_), std::move(gain_), std::move(home_), std::move(lines_),
            std::move(memory_)};
  }

 private:
  static void set(panel& p, std::size_t place, double plain, double coalescing) {
    p.lines[0].points[place] = constant(plain);
    p.lines[1].points[place] = constant(coalescing);
  }

  double operations_;
  panel all_, home_, lines_, memory_, gain_;
};

result<compared> compare_memories(subject s, const sweep_options& o) {
  auto plain = dirtiness_of(s, "undo", o);
  if (!plain) return std::unexpected(plain.error());
  s.coalesce = true;
  auto coalescing = dirtiness_of(s, "undo", o);
  if (!coalescing) return std::unexpected(coalescing.error());
  return compared{*plain, *coalescing};
}

result<> compare_bytes(subject s, std::size_t place, const sweep_options& o, by_workload& into) {
  const auto plain = bytes_taken(s, o);
  if (!plain) return std::unexpected(plain.error());
  s.coalesce = true;
  const auto coalescing = bytes_taken(s, o);
  if (!coalescing) return std::unexpected(coalescing.error());
  const auto keys = static_cast<double>(o.traced_keys);
  into.add_memory(place, static_cast<double>(*plain) / keys,
                  static_cast<double>(*coalescing) / keys);
  return {};
}

// Figure 10 for values of one size; distribution panels go to `distributions`.
result<> measure_values(std::size_t value_size, const std::string& end, const sweep_options& o,
                        chart& into, std::vector<panel>& distributions) {
  std::vector<const char*> all(published.begin(), published.end());
  all.insert(all.end(), ours.begin(), ours.end());
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

std::span<const statement> dirtiness_statements() noexcept {
  return statements;
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
  add_claims("I", into);
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
  add_claims("10", into);
  add_notes(o, into);
  return {};
}

}  // namespace stele::bench::archapt
