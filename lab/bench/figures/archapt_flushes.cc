// Figure 9 of the architecture-aware evaluation: the lines that a transaction flushes.
//
// Counted over whole periods of the log, from one truncation to another, so that deferred work is
// neither lost nor counted twice. Truncations happen in the commits, so the counts are a function
// of the seed. Of the read-only transactions, one in sixteen is run, for the queue, and all are
// counted: they flush nothing.
#include <bench/figures/archapt_parts.h>
#include <bench/host.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace stele::bench::archapt {
namespace {

constexpr unsigned periods_before = 2, periods = 4;
constexpr std::uint64_t line_bytes = 64, looked_at_every = 32, one_read_of = 16;

struct sample {
  pool_counters events;
  std::uint64_t transactions = 0;
};

// A filled pool for one entry, removed at the end.
class counted_pool {
 public:
  counted_pool(const task& t, std::unique_ptr<workloads::workload> w)
      : window_(t.log_size_bytes),
        path_(pool_path(t, "flushes")),
        workload_(std::move(w)),
        random_(base::mix(t.seed)) {}
  counted_pool(const counted_pool&) = delete;
  counted_pool& operator=(const counted_pool&) = delete;
  ~counted_pool() {
    if (attached_) workload_->detach();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  result<> set_up(const task& t, const std::string& mechanism) {
    pool_options options = stele_options(t, mechanism);
    options.engine.background = false;
    auto handle = detail::pool_handle::open(path_, options, workload_->root_size());
    if (!handle) return std::unexpected(std::move(handle.error()));
    workload_->attach(std::move(*handle));
    attached_ = true;
    workload_->set_commit_durability(t.commits);
    return workload_->set_up();
  }

  // Runs until the log has been written `times` times over and, with truncations, one has just
  // happened.
  result<sample> run(unsigned times, const std::function<bool()>& cancelled) {
    const pool_counters before = counters();
    const std::uint64_t enough = before.streamed_bytes + times * window_;
    for (pool_counters last = before;;) {
      if (cancelled()) return std::unexpected(error{errc::cancelled, "interrupted"});
      if (auto done = apply(looked_at_every); !done)
        return std::unexpected(std::move(done.error()));
      const pool_counters now = counters();
      const bool is_cut =
          now.truncations == before.truncations || now.truncations != last.truncations;
      if (now.streamed_bytes >= enough && is_cut) return sample{now, transactions_};
      last = now;
    }
  }

 private:
  pool_counters counters() { return detail::counters_of(workload_->core()); }
  result<> apply(std::uint64_t updates) {
    while (updates != 0) {
      const workloads::operation op = workload_->draw(random_);
      ++transactions_;
      if (only_reads(op) && transactions_ % one_read_of != 0) continue;
      updates -= !only_reads(op);
      if (auto done = workload_->apply({&op, 1}); !done) return done;
    }
    return {};
  }

  const std::uint64_t window_;
  const std::string path_;
  const std::unique_ptr<workloads::workload> workload_;
  base::rng random_;
  std::uint64_t transactions_ = 0;
  bool attached_ = false;
};

struct flushes {
  double home = 0, checksums = 0, skipped = 0, old_values = 0, log = 0;  // lines per transaction
  double flushed() const { return home + checksums; }
};

result<flushes> count_flushes(const sweep_options& o, const mix& m, const entry& e) {
  task t = task_on(o, m, 1);
  e.own(t);
  t.log_size_bytes /= 2;  // a background thread truncates at half full; here the log fills up
  auto w =
      t.host.empty() ? workloads::make_workload(t.workload, t.parameters) : make_hosted_workload(t);
  if (!w) return std::unexpected(std::move(w.error()));
  counted_pool pool(t, std::move(*w));
  if (auto done = pool.set_up(t, e.mechanism); !done)
    return std::unexpected(std::move(done.error()));
  const auto from = pool.run(periods_before, o.cancelled);
  if (!from) return std::unexpected(from.error());
  const auto to = pool.run(periods, o.cancelled);
  if (!to) return std::unexpected(to.error());
  const auto each = [&](auto&& of) {
    return static_cast<double>(of(to->events) - of(from->events)) /
           static_cast<double>(to->transactions - from->transactions);
  };
  const auto each_own = [&](std::string_view name) {
    return each([&](const pool_counters& c) { return c.of_mechanism[name]; });
  };
  const double checksums = each_own("checksum_lines");
  return flushes{.home = each([](const pool_counters& c) { return c.flushed_lines; }),
                 .checksums = checksums,
                 .skipped = each_own("skipped_lines"),
                 .old_values = each_own("undo_logged_lines"),
                 .log = each([](const pool_counters& c) { return c.streamed_bytes; }) / line_bytes -
                        checksums};
}

struct part {
  const char *panel, *y;
  double (*of)(const flushes& f);
};
constexpr part parts[] = {
    {"flushed",
     "lines a transaction, flushed of home and of the logs' heads, streamed of checksums",
     [](const flushes& f) { return f.flushed(); }},
    {"checksums", "of these, lines of checksums", [](const flushes& f) { return f.checksums; }},
    {"skipped", "lines of home a transaction that checksums cover in place of a flush",
     [](const flushes& f) { return f.skipped; }},
    {"log", "lines of the log a transaction, streamed", [](const flushes& f) { return f.log; }},
    {"old values",
     "lines of home a transaction whose old values went to the log for their being covered",
     [](const flushes& f) { return f.old_values; }}};

// The share of the base's lines that the other system saves.
panel saved_of(const panel& lines, std::string name) {
  static constexpr pair pairs[] = {
      {system::undo_archapt, system::undo},    {system::undo_later, system::undo},
      {system::undo_pays, system::undo},       {system::undo_always, system::undo},
      {system::redo_archapt, system::redo},    {system::redo_pays, system::redo},
      {system::redo_always, system::redo},     {system::async, system::redo},
      {system::undo_coalescing, system::undo}, {system::later_coalescing, system::undo},
      {system::redo_coalescing, system::redo}};
  panel saved = ratios_of(lines, pairs, std::move(name));
  saved.y = "% of the base's";
  for (series& s : saved.lines)
    for (auto& point : s.points)
      if (point)
        point = combined({&*point}, [](std::span<const double> v) { return 100 * (1 - v[0]); });
  return saved;
}

panel with_logs(const panel& flushed, const panel& log) {
  panel all = flushed;
  all.name = "flushed or streamed";
  for (std::size_t s = 0; s < all.lines.size(); ++s)
    for (std::size_t i = 0; i < all.xs.size(); ++i)
      if (auto& point = all.lines[s].points[i]; point) {
        const double sum = point->median + log.lines[s].points[i]->median;
        point = known(sum);
      }
  return all;
}

// The lines of the log are neither fewer nor more: they are what no system saves.
std::string mean_of(const panel& saved, const pair& of) {
  double sum = 0;
  std::size_t places = 0;
  for (const auto& point : saved.find(fmt::format("{} / {}", of.a, of.b))->points)
    if (point) sum += point->median, ++places;
  return fmt::format("{}, {} / {}: mean {:.1f} %", saved.name, of.a, of.b,
                     sum / static_cast<double>(std::max<std::size_t>(places, 1)));
}

}  // namespace

result<> measure_flushes(const sweep_options& o, chart& c) {
  const auto some = mixes_that_write();
  auto entries =
      entries_of({system::undo, system::undo_archapt, system::undo_later, system::undo_pays,
                  system::undo_always, system::undo_coalescing, system::later_coalescing,
                  system::redo, system::async, system::redo_archapt, system::redo_pays,
                  system::redo_always, system::redo_coalescing});
  if (is_on_redis(o))  // which decides where values are, and commits durably on memory
    std::erase_if(entries, [](const entry& e) {
      return e.name.ends_with("coalescing") || e.name.contains("later");
    });
  std::vector<panel> panels;
  for (const part& p : parts) {
    panels.push_back({p.panel, "workload", p.y, names_of(some), {}, true});
    for (const entry& e : entries)
      panels.back().lines.push_back(
          {e.name, e.label, false, std::vector<std::optional<spread>>(some.size())});
  }
  for (std::size_t i = 0; i < some.size() && c.complete; ++i)
    for (std::size_t e = 0; e < entries.size() && c.complete; ++e) {
      o.progress(fmt::format("{}, {}", some[i].name, entries[e].name));
      const auto counted = count_flushes(o, some[i], entries[e]);
      if (!counted && counted.error().code != errc::cancelled)
        return std::unexpected(counted.error());
      c.complete = counted.has_value();
      for (std::size_t p = 0; counted && p < panels.size(); ++p) {
        const double v = parts[p].of(*counted);
        panels[p].lines[e].points[i] = known(v);
      }
    }
  const panel saved = saved_of(panels.front(), "saved"),
              saved_of_all =
                  saved_of(with_logs(panels.front(), panels[3]), "saved, with the log's lines");
  for (const pair& of :
       {pair{system::undo_archapt, system::undo}, pair{system::undo_later, system::undo},
        pair{system::redo_archapt, system::redo}, pair{system::later_coalescing, system::undo},
        pair{system::redo_coalescing, system::redo}})
    if (is_measured(saved, of)) {
      c.notes.push_back(verdict_of(saved, {of, 60.0, std::nullopt}));
      c.notes.push_back(mean_of(saved_of_all, of));
    }
  c.panels = {saved, saved_of_all};
  c.panels.insert(c.panels.end(), panels.begin(), panels.end());
  c.notes.push_back(fmt::format(
      "one run of one thread: counts over {} times as many bytes of log as it holds, from "
      "truncation to truncation, after {} for a start; logs of half the size that the others have, "
      "cut when they are full",
      periods, periods_before));
  if (is_on_redis(o)) {
    c.notes.emplace_back(
        "a server without a pool ran each transaction; its commands were done in a pool of this "
        "process as the module does them. On memory it commits durably in the command, so there is "
        "no archapt-undo later");
    return {};
  }
  for (const char* note : {later_note, skipping_note}) c.notes.emplace_back(note);
  c.notes.emplace_back(
      "coalescing: containers on coalescing memory (section III-D), the text's second technique; "
      "its 66 % is of both");
  return {};
}

}  // namespace stele::bench::archapt
