// Runs contenders in turn and computes their rows.
#include <bench/compare.h>
#include <bench/host.h>
#include <bench/limits.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench {
namespace {

struct contender_runs {
  std::unique_ptr<contender> system;
  std::vector<double> tx_per_s;
  base::histogram latency_ns, answered_ns;
  std::uint64_t transactions = 0;
  std::optional<event_counts> events;
};

struct hardware_runs {
  std::vector<double> streamed, flushed, empty, synced, driver;
};

constexpr double warm_up_share = 0.2;  // share of a run's seconds, run once before the first run

error naming(const contender& system, error e) {
  e.message = fmt::format("{}: {}", system.name(), e.message);
  return e;
}

std::string_view name_of(concurrency policy) {
  switch (policy) {
    case concurrency::stm:
      return "stm";
    case concurrency::single_writer:
      return "single_writer";
    case concurrency::external:
      break;
  }
  return "external";
}

// The tasks of Stele's rows of one mechanism.
std::vector<task> tasks_of_stele(const comparison& c) {
  std::vector<task> tasks;
  for (const concurrency policy : c.policies.empty() ? std::vector{c.what.policy} : c.policies) {
    task& t = tasks.emplace_back(c.what);
    t.policy = policy;
    if (c.policies.size() > 1) t.note += fmt::format(", {}", name_of(policy));
    if (t.commits == durability::ordered)
      t.note += t.defer_ordered == deferral::always ? ", deferred" : ", ordered";
    if (c.batch == 0) continue;
    task many = t;
    many.batch = c.batch;
    many.note += fmt::format(", {} a call", c.batch);
    many.label += "-many";
    tasks.push_back(std::move(many));
  }
  return tasks;
}

// The task of a rival; see comparison::rivals.
task task_of_rival(const comparison& c) {
  task t = c.what;
  if (t.workload == "word_hash") t.workload = "hash";
  return t;
}

void explain_rows(const comparison& c, std::vector<std::string>& notes) {
  if (c.what.commits == durability::ordered)
    notes.push_back(
        "rows named ordered or deferred are durable at the latest with the sync at the end of each "
        "run, whose time is "
        "counted; in other rows each commit is durable when it returns");
  if (c.batch != 0)
    notes.push_back(
        fmt::format("rows named {} a call read so many items by one get_many or find_many, and "
                    "change as many in one transaction; they count an item as a transaction, their "
                    "latencies are of calls",
                    c.batch));
  if (!c.rivals.empty() && task_of_rival(c).workload != c.what.workload)
    notes.push_back(fmt::format("rivals have no structure for {} and run {}, with the same keys",
                                c.what.workload, task_of_rival(c).workload));
}

// Creates the limit models that fit the task, then all contenders requested by name.
result<std::vector<std::unique_ptr<contender>>> make_contenders(const comparison& c,
                                                                std::vector<std::string>& notes) {
  if (c.batch != 0) {
    const auto w = workloads::make_workload(c.what.workload, c.what.parameters);
    if (!w) return std::unexpected(w.error());
    if (!c.what.host.empty() || !(*w)->has_calls_for_many())
      return std::unexpected(
          error{errc::invalid_argument,
                fmt::format("the workload '{}' has no calls for many items, so it takes no batch",
                            c.what.workload)});
  }
  std::vector<std::unique_ptr<contender>> made;
  std::optional<error> failure;
  const auto take = [&](contender_result one, bool is_limit) {
    if (one)
      made.push_back(std::move(*one));
    else if (is_limit && one.error().code == errc::unsupported)
      notes.push_back(std::move(one.error().message));
    else if (!failure)
      failure = std::move(one.error());
  };
  const bool is_hosted = !c.what.host.empty();
  if (c.limits && is_hosted) take(make_host_limit(c.what), true);
  if (c.limits && !is_hosted) {
    take(make_volatile(c.what), true);
    take(make_one_fence_log(c.what), true);
  }
  for (const std::string& mechanism : c.mechanisms)
    for (const task& t : tasks_of_stele(c)) take(make_stele(t, mechanism), false);
  for (const std::string& rival : c.rivals)
    take(is_hosted ? make_host_rival(c.what, rival) : make_rival(task_of_rival(c), rival), false);
  if (made.empty() && !failure)
    failure = {errc::invalid_argument, "nothing to compare: name a mechanism or a rival"};
  if (failure) return std::unexpected(std::move(*failure));
  explain_rows(c, notes);
  return made;
}

result<std::vector<contender_runs>> set_up(std::vector<std::unique_ptr<contender>> contenders,
                                           const comparison& c) {
  std::vector<contender_runs> all_runs;
  for (auto& system : contenders) {
    c.progress(fmt::format("setting up {}", system->name()));
    if (auto done = system->set_up(); !done)
      return std::unexpected(naming(*system, std::move(done.error())));
    if (auto warm = system->run(c.seconds * warm_up_share); !warm)
      return std::unexpected(naming(*system, std::move(warm.error())));
    all_runs.push_back({std::move(system), {}, {}, {}, 0, std::nullopt});
  }
  return all_runs;
}

result<> run_once(contender_runs& e, double seconds) {
  auto m = e.system->run(seconds);
  if (!m) return std::unexpected(naming(*e.system, std::move(m.error())));
  e.tx_per_s.push_back(static_cast<double>(m->transactions) / m->seconds);
  e.latency_ns.merge(m->latency_ns);
  e.answered_ns.merge(m->answered_ns);
  e.transactions += m->transactions;
  if (m->events) {
    event_counts& sum = e.events ? *e.events : e.events.emplace();
    sum.fences += m->events->fences;
    sum.lines += m->events->lines;
    sum.streamed_bytes += m->events->streamed_bytes;
    sum.aborts += m->events->aborts;
    sum.stored_bytes += m->events->stored_bytes;
    sum.map_hits += m->events->map_hits;
    sum.map_misses += m->events->map_misses;
    sum.cleaned_chunks += m->events->cleaned_chunks;
    sum.fast_cleaned_chunks += m->events->fast_cleaned_chunks;
    sum.moved_bytes += m->events->moved_bytes;
    sum.skipped_lines += m->events->skipped_lines;
    sum.checksum_lines += m->events->checksum_lines;
    sum.undo_logged_lines += m->events->undo_logged_lines;
    sum.truncations += m->events->truncations;
  }
  return {};
}

result<> sample_hardware(const task& t, hardware_runs& into) {
  if (t.media == "file") {
    const auto ns = measure_synced_block(t.dir);
    if (ns) into.synced.push_back(*ns);
    return ns ? result<>{} : std::unexpected(ns.error());
  }
  const auto costs = measure_memory(t.dir);
  if (!costs) return std::unexpected(costs.error());
  into.streamed.push_back(costs->streamed_line_and_fence);
  into.flushed.push_back(costs->flushed_line_and_fence);
  into.empty.push_back(costs->empty_fence);
  return {};
}

result<> sample_limits(const task& t, const workloads::workload& draws, hardware_runs& into) {
  into.driver.push_back(measure_driver(t, draws));
  return sample_hardware(t, into);
}

limits limits_of(const hardware_runs& h) {
  const auto sum_up = [](const std::vector<double>& v) {
    return v.empty() ? std::nullopt : std::optional(spread_of(v));
  };
  return {sum_up(h.streamed), sum_up(h.flushed), sum_up(h.empty), sum_up(h.synced),
          sum_up(h.driver)};
}

row row_of(contender_runs& e, const task& t) {
  row r;
  r.system = e.system->name();
  r.workload = t.workload;
  r.media = e.system->media();
  r.survives = e.system->durability();
  r.threads = t.threads;
  r.tx_per_s = spread_of(e.tx_per_s);
  r.transactions = e.transactions;
  r.events = e.events;
  if (e.events && e.transactions != 0) {
    const auto each = [&](std::uint64_t sum) {
      return static_cast<double>(sum) / static_cast<double>(e.transactions);
    };
    r.fences_per_tx = each(e.events->fences);
    r.lines_per_tx = each(e.events->lines);
    r.streamed_bytes_per_tx = each(e.events->streamed_bytes);
    r.aborts_per_tx = each(e.events->aborts);
  }
  r.p50_ns = static_cast<double>(e.latency_ns.percentile(50));
  r.p99_ns = static_cast<double>(e.latency_ns.percentile(99));
  r.p999_ns = static_cast<double>(e.latency_ns.percentile(99.9));
  const auto& answered = e.answered_ns.count() != 0 ? e.answered_ns : e.latency_ns;
  r.answered_p50_ns = static_cast<double>(answered.percentile(50));
  r.answered_p99_ns = static_cast<double>(answered.percentile(99));
  const footprint space = e.system->space();
  r.space_bytes = space.space_bytes;
  r.live_bytes = space.live_bytes;
  r.log_bytes = space.log_bytes;
  return r;
}

}  // namespace

const row* find_row(const report& r, std::string_view system) {
  const auto found = std::ranges::find(r.rows, system, &row::system);
  return found == r.rows.end() ? nullptr : &*found;
}

result<report> compare(const comparison& c) {
  std::vector<std::string> notes;
  auto contenders = make_contenders(c, notes);
  if (!contenders) return std::unexpected(std::move(contenders.error()));
  auto out = compare(std::move(*contenders), c);
  if (out) out->notes.insert(out->notes.begin(), notes.begin(), notes.end());
  return out;
}

result<report> compare(std::vector<std::unique_ptr<contender>> contenders, const comparison& c) {
  report out;
  auto all_runs = set_up(std::move(contenders), c);
  if (!all_runs) return std::unexpected(std::move(all_runs.error()));
  hardware_runs hardware;
  const auto draws = workloads::make_workload(c.what.workload, c.what.parameters);
  if (!draws) return std::unexpected(draws.error());
  unsigned completed = 0;
  std::string last;  // the newest measurement
  for (; completed < c.runs && !c.cancelled(); ++completed) {
    if (c.limits)
      if (const auto done = sample_limits(c.what, **draws, hardware); !done)
        return std::unexpected(done.error());
    for (contender_runs& e : *all_runs) {
      c.progress(fmt::format("run {} of {}: {}{}", completed + 1, c.runs, e.system->name(), last));
      if (const auto done = run_once(e, c.seconds); !done) return std::unexpected(done.error());
      last = fmt::format("; {} did {:.0f} tx/s", e.system->name(), e.tx_per_s.back());
    }
  }
  if (completed == 0)
    return std::unexpected(error{errc::cancelled, "interrupted before the first run was complete"});
  if (completed < c.runs)
    out.notes.push_back(fmt::format("interrupted after {} of {} runs", completed, c.runs));
  out.hardware = limits_of(hardware);
  for (contender_runs& e : *all_runs) {
    if (auto sound = e.system->check(); !sound)
      return std::unexpected(naming(*e.system, std::move(sound.error())));
    out.rows.push_back(row_of(e, c.what));
  }
  return out;
}

}  // namespace stele::bench
