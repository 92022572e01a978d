// The targets of the mechanisms after "Blurred Persistence" and of the default mechanism: over
// libpmemobj with one and with two threads, over the log by hand, the costs of a commit by
// counters, its tail latency, and the gain of the blurred mechanisms over base.
#include <bench/compare.h>
#include <bench/targets_parts.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stele::bench {
namespace {

struct against_rival {
  const char* workload;
  std::size_t value_size, operations;
  double one_thread, two_threads;  // bounds over libpmemobj with as many threads; 0: none
};
constexpr against_rival rival_targets[] = {{"sps", 8, 1, 3.6, 2.3},  {"sps", 8, 8, 15, 9},
                                           {"sps", 64, 1, 3, 1.8},   {"hash", 8, 1, 6, 4},
                                           {"hash", 64, 1, 6, 0},    {"rbtree", 8, 1, 3, 4.5},
                                           {"rbtree", 64, 1, 2.8, 0}};
constexpr const char* five_workloads[] = {"sps", "hash", "rbtree", "bptree", "kv"};

std::string name_of(const against_rival& m) {
  return fmt::format("{} {} B x {}", m.workload, m.value_size, m.operations);
}

result<> with_one_thread(const target_options& o, std::vector<performance_target>& targets) {
  for (const against_rival& m : rival_targets) {
    o.progress(name_of(m));
    comparison c = of(o, m.workload, m.value_size, m.operations);
    c.what.policy = concurrency::single_writer;
    c.rivals = {"libpmemobj"};
    const auto r = compare(c);
    if (!r) return std::unexpected(r.error());
    const row* ours = find_row(*r, "default");
    const double by_hand = rate(*r, "one-fence log by hand");
    targets.push_back(
        {name_of(m) + ", default over libpmemobj", "x", m.one_thread, over_rival(*r, "libpmemobj"),
         false,
         fmt::format("{:.0f} tx/s, {:.2f} fences, {:.1f} lines, {:.0f} B streamed a tx; {:.2f} of "
                     "the log by hand; single_writer",
                     ours->tx_per_s.median, ours->fences_per_tx.value_or(0),
                     ours->lines_per_tx.value_or(0), ours->streamed_bytes_per_tx.value_or(0),
                     ours->tx_per_s.median / by_hand)});
    if (&m == &rival_targets[0])
      targets.push_back({name_of(m) + ", default over the log by hand", "x", 0.9,
                         ours->tx_per_s.median / by_hand, false, "single_writer; the same driver"});
  }
  return {};
}

result<> with_two_threads(const target_options& o, std::vector<performance_target>& targets) {
  for (const against_rival& m : rival_targets) {
    if (m.two_threads == 0) continue;
    o.progress(name_of(m) + ", two threads");
    comparison c = of(o, m.workload, m.value_size, m.operations);
    c.limits = false;
    const auto one = compare(c);
    if (!one) return std::unexpected(one.error());
    c.what.threads = 2;
    c.rivals = {"libpmemobj"};
    const auto two = compare(c);
    if (!two) return std::unexpected(two.error());
    targets.push_back(
        {name_of(m) + ", two threads, default over libpmemobj", "x", m.two_threads,
         over_rival(*two, "libpmemobj"), false,
         fmt::format("{:.0f} tx/s; stm; libpmemobj without isolation", rate(*two, "default"))});
    if (m.value_size == 8 && m.operations == 1 && m.workload != std::string_view("rbtree"))
      targets.push_back({name_of(m) + ", two threads over one", "x", 1.7,
                         rate(*two, "default") / rate(*one, "default"), false, "stm"});
  }
  return {};
}

// The 99.9th percentile of latency over the median, during bulk persistence of a 1 MB log.
result<> tail(const target_options& o, std::vector<performance_target>& targets) {
  o.progress("commit latency");
  comparison c = of(o, "sps", 8, 1);
  c.what.policy = concurrency::single_writer;
  c.what.log_size_bytes = std::size_t{1} << 20;
  c.limits = false;
  const auto r = compare(c);
  if (!r) return std::unexpected(r.error());
  const row* ours = find_row(*r, "default");
  targets.push_back(
      {"commit latency, 99.9th percentile over the median", "x", 20, ours->p999_ns / ours->p50_ns,
       true,
       fmt::format("{:.0f} and {:.0f} ns; sps 8 B x 1, 1 MB of log", ours->p999_ns, ours->p50_ns)});
  return {};
}

// No second copy is kept: the space of the pool over its live data and logs.
result<> space(const target_options& o, std::vector<performance_target>& targets) {
  for (const std::size_t value_size : {8u, 64u}) {
    o.progress(fmt::format("space, {} B", value_size));
    comparison c = of(o, "sps", value_size, 1);
    c.limits = false;
    const auto r = compare(c);
    if (!r) return std::unexpected(r.error());
    const row* ours = find_row(*r, "default");
    const double taken = static_cast<double>(ours->space_bytes.value_or(0)),
                 due = static_cast<double>(ours->live_bytes + ours->log_bytes);
    targets.push_back({fmt::format("space over live data and logs, {} elements of {} B",
                                   c.what.parameters.keys, value_size),
                       "x", 1.15, taken / due, true,
                       fmt::format("{:.1f} MB of live data, {:.1f} MB of logs",
                                   static_cast<double>(ours->live_bytes) / 1e6,
                                   static_cast<double>(ours->log_bytes) / 1e6)});
  }
  return {};
}

result<> blurred_over_base(const target_options& o, std::vector<performance_target>& targets) {
  for (const char* workload : five_workloads) {
    o.progress(fmt::format("blurred on {}", workload));
    comparison c = of(o, workload, 8, 1);
    c.what.media = "delayed:150";
    c.what.policy = concurrency::single_writer;
    c.what.log_size_bytes = std::size_t{1} << 20;
    c.what.parameters.keys = std::size_t{1} << 18;
    c.mechanisms = {"base", "xil", "vcbp", "blurred", "adaptive"};
    c.limits = false;
    const auto r = compare(c);
    if (!r) return std::unexpected(r.error());
    const double base = rate(*r, "base"), vcbp = rate(*r, "vcbp"), blurred = rate(*r, "blurred");
    targets.push_back({fmt::format("{}, blurred over base", workload), "x", 1.56, blurred / base,
                       false,
                       fmt::format("delayed:150, 1 MB logs; xil {:.2f}, vcbp {:.2f}",
                                   rate(*r, "xil") / base, vcbp / base)});
    targets.push_back({fmt::format("{}, adaptive over the better of blurred and vcbp", workload),
                       "x", 0.95, rate(*r, "adaptive") / std::max(vcbp, blurred), false,
                       "the same run; its warm-ups are part of it"});
  }
  return {};
}

}  // namespace

double rate(const report& r, std::string_view system) {
  const row* found = find_row(r, system);
  return found == nullptr ? 0 : found->tx_per_s.median;
}

comparison of(const target_options& o, const char* workload, std::size_t value_size,
              std::size_t operations) {
  comparison c;
  c.what.workload = workload;
  c.what.parameters.value_size = value_size;
  c.what.ops_per_tx = operations;
  c.what.dir = o.dir;
  c.mechanisms = {"default"};
  c.runs = o.runs;
  c.seconds = o.seconds;
  c.cancelled = o.cancelled;
  return c;
}

double over_rival(const report& r, std::string_view rival) {
  const auto found =
      std::ranges::find_if(r.rows, [&](const row& w) { return w.system.starts_with(rival); });
  return found == r.rows.end() ? 0 : rate(r, "default") / found->tx_per_s.median;
}

const std::vector<target_group>& default_targets() {
  static const std::vector<target_group> parts = {with_one_thread, with_two_threads, tail, space,
                                                  blurred_over_base};
  return parts;
}

}  // namespace stele::bench
