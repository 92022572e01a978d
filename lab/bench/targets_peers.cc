// The default mechanism beside the best published peers: throughput with one and with two threads,
// stm over single_writer, the log by hand, ordered commits, tail latency. The peers are those that
// are built in (docs/guide/kv.md says how); which of them was the best is a part of each figure.
#include <bench/contender.h>
#include <bench/targets_parts.h>
#include <fmt/format.h>

#include <algorithm>

namespace stele::bench {
namespace {

struct figure {
  const char* workload;
  std::size_t value_size, operations;
  double read_share;
  // Over the best peer; 0: none.
  double one_thread, two_threads;
};
constexpr figure figures[] = {{"sps", 8, 1, 0, 1, 1.4},        {"sps", 8, 8, 0, 1.1, 1.4},
                              {"sps", 64, 1, 0, 1.2, 1.4},     {"sps", 1024, 1, 0, 1.6, 1.4},
                              {"hash", 8, 1, 0, 1.2, 1.4},     {"hash", 64, 1, 0, 1.2, 1.4},
                              {"hash", 1024, 1, 0, 1.4, 0},    {"rbtree", 8, 1, 0, 1.5, 1.4},
                              {"rbtree", 64, 1, 0, 1.4, 1.4},  {"hash", 8, 1, 0.9, 1, 1.3},
                              {"rbtree", 8, 1, 0.9, 1.2, 1.2}, {"word_hash", 8, 1, 0, 1.2, 1.4},
                              {"word_hash", 8, 1, 0.9, 1, 1.3}};

comparison of(const target_options& o, const figure& f) {
  comparison c = of(o, f.workload, f.value_size, f.operations);
  c.what.parameters.read_share = f.read_share;
  if (f.value_size > 256) c.what.parameters.keys = std::size_t{1} << 17;
  return c;
}
std::string name_of(const figure& f) {
  return fmt::format("{} {} B x {}{}", f.workload, f.value_size, f.operations,
                     f.read_share != 0 ? ", 90 % reads" : "");
}

// Of more than 8 bytes, values need a peer with a volatile replica.
std::vector<std::string> peers_of(const figure& f, std::vector<std::string> names) {
  if (f.value_size != 8)
    std::erase_if(names, [](const std::string& n) { return !n.contains("-vr"); });
  return those_built(std::move(names));
}

const row* best_peer(const report& r) {
  const row* best = nullptr;
  for (const row& w : r.rows) {
    const bool is_peer = !w.system.starts_with("default") && !w.system.starts_with("volatile") &&
                         !w.system.starts_with("one-fence");
    if (is_peer && (best == nullptr || w.tx_per_s.median > best->tx_per_s.median)) best = &w;
  }
  return best;
}
performance_target over_best_peer(const report& r, const std::string& what, double mark,
                                  std::string_view ours) {
  const row* const peer = best_peer(r);
  const double mine = rate(r, ours);
  if (peer == nullptr) return {what, "x", mark, 0, false, "no peer is built in"};
  return {what,
          "x",
          mark,
          mine / peer->tx_per_s.median,
          false,
          fmt::format("{:.2f} and {:.2f} M tx/s; {}", mine / 1e6, peer->tx_per_s.median / 1e6,
                      peer->system)};
}

result<> with_one_thread(const target_options& o, std::vector<performance_target>& targets) {
  for (const figure& f : figures) {
    const std::string name = name_of(f);
    o.progress(name);
    comparison c = of(o, f);
    c.policies = {concurrency::single_writer, concurrency::stm};
    c.rivals = peers_of(f, {"quadra-seq", "quadra-vr-seq", "trinity-seq", "trinity-vr-seq"});
    if (c.rivals.empty()) c.rivals = those_built({"libpmemobj"});
    const auto r = compare(c);
    if (!r) return std::unexpected(r.error());
    const char *const ours = "default, single_writer", *const stm = "default, stm";
    targets.push_back(over_best_peer(*r, name + ", over the best peer", f.one_thread, ours));
    targets.push_back({name + ", stm over single_writer", "x", 0.85, rate(*r, stm) / rate(*r, ours),
                       false, fmt::format("{:.2f} M tx/s under stm", rate(*r, stm) / 1e6)});
    if (f.workload == std::string_view("sps"))
      targets.push_back({name + ", over the log by hand", "x", 0.85,
                         rate(*r, ours) / rate(*r, "one-fence log by hand"), false,
                         "single_writer; a redo log that could be truncated"});
    const row& w = *find_row(*r, ours);
    targets.push_back({name + ", 99.9th percentile over median", "x", 20, w.p999_ns / w.p50_ns,
                       true, fmt::format("{:.0f} and {:.0f} ns", w.p999_ns, w.p50_ns)});
  }
  return {};
}

result<> with_two_threads(const target_options& o, std::vector<performance_target>& targets) {
  for (const figure& f : figures) {
    if (f.two_threads == 0) continue;
    const std::string name = name_of(f) + ", two threads";
    o.progress(name);
    comparison c = of(o, f);
    c.limits = false;
    const auto one = compare(c);
    if (!one) return std::unexpected(one.error());
    c.what.threads = 2;
    c.rivals = peers_of(
        f, {"quadra", "quadra-vr", "trinity", "trinity-vr", "trinity-tl2", "trinity-vr-tl2"});
    const auto two = compare(c);
    if (!two) return std::unexpected(two.error());
    targets.push_back(
        over_best_peer(*two, name + ", over the best peer", f.two_threads, "default"));
    targets.push_back({name + " over one", "x", 1.7, rate(*two, "default") / rate(*one, "default"),
                       false, "stm"});
  }
  return {};
}

result<> ordered_over_durable(const target_options& o, std::vector<performance_target>& targets) {
  for (const figure& f : figures) {
    if (f.read_share != 0) continue;
    o.progress(name_of(f) + ", ordered");
    comparison c = of(o, f);
    c.limits = false;
    std::vector<std::unique_ptr<contender>> both;
    for (const durability d : {durability::durable, durability::ordered}) {
      task t = c.what;
      t.commits = d;
      t.label = t.note = d == durability::ordered ? "-ordered" : "-durable";
      auto made = make_stele(t, "default");
      if (!made) return std::unexpected(made.error());
      both.push_back(std::move(*made));
    }
    const auto r = compare(std::move(both), c);
    if (!r) return std::unexpected(r.error());
    targets.push_back({name_of(f) + ", ordered over durable", "x", 1.3,
                       rate(*r, "default-ordered") / rate(*r, "default-durable"), false,
                       fmt::format("{:.2f} M tx/s ordered; stm, one thread, a sync at the end",
                                   rate(*r, "default-ordered") / 1e6)});
  }
  return {};
}

}  // namespace

const std::vector<target_group>& peer_targets() {
  static const std::vector<target_group> parts = {with_one_thread, with_two_threads,
                                                  ordered_over_durable};
  return parts;
}

}  // namespace stele::bench
