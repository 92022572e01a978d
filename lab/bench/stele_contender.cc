// Stele as a contender: a pool with one mechanism and the workload on it, used as a program would
// use them.
#include <bench/drive.h>
#include <bench/host.h>
#include <fmt/format.h>
#include <tx/mechanism/catalog.h>
#include <workloads/tpcc.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

namespace stele::bench {
namespace {

using workloads::operation;

constexpr std::string_view default_name = "default";  // the mechanism of a pool that names none

event_counts counts_between(const pool_counters& a, const pool_counters& b) {
  const auto own = [&](std::string_view name) {
    return b.of_mechanism[name] - a.of_mechanism[name];
  };
  return {.fences = b.fences - a.fences,
          .lines = b.flushed_lines - a.flushed_lines,
          .streamed_bytes = b.streamed_bytes - a.streamed_bytes,
          .aborts = b.aborts - a.aborts,
          .stored_bytes = b.stored_bytes - a.stored_bytes,
          .map_hits = own("map_hits"),
          .map_misses = own("map_misses"),
          .cleaned_chunks = own("cleaned_chunks"),
          .fast_cleaned_chunks = own("fast_cleaned_chunks"),
          .moved_bytes = own("moved_bytes"),
          .skipped_lines = own("skipped_lines"),
          .checksum_lines = own("checksum_lines"),
          .undo_logged_lines = own("undo_logged_lines"),
          .truncations = b.truncations - a.truncations};
}

class stele_contender final : public contender {
 public:
  stele_contender(const task& t, std::string mechanism, std::unique_ptr<workloads::workload> w)
      : task_(t),
        mechanism_(std::move(mechanism)),
        path_(pool_path(t, fmt::format("{}{}-{}-{}", mechanism_, t.label, t.log_size_bytes,
                                       static_cast<int>(t.policy)))),
        workload_(std::move(w)),
        generators_(make_generators(t)) {}

  ~stele_contender() override {
    if (attached_) workload_->detach();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::string name() const override { return mechanism_ + task_.note; }
  std::string media() const override { return task_.media; }
  durability_level durability() const override { return detail::durability_of(workload_->core()); }

  result<> set_up() override {
    auto handle =
        detail::pool_handle::open(path_, stele_options(task_, mechanism_), workload_->root_size());
    if (!handle) return std::unexpected(std::move(handle.error()));
    workload_->attach(std::move(*handle));
    attached_ = true;
    workload_->set_commit_durability(task_.commits);
    return workload_->set_up();
  }

  result<measurement> run(double seconds) override {
    const pool_counters before = detail::counters_of(workload_->core());
    const std::size_t operations = task_.batch == 0 ? task_.ops_per_tx : task_.batch;
    auto m = drive(generators_, seconds, task_.idle_share, [&](unsigned) {
      return draw_and_apply(
          *workload_, operations, [this, n = 0u](std::span<const operation> ops) mutable {
            if (task_.until_answered && ++n % sample_short_every == 0)
              return apply_until_answered(ops);
            return task_.batch == 0 ? workload_->apply(ops) : workload_->apply_many(ops);
          });
    });
    if (m && task_.batch != 0) m->transactions *= task_.batch;
    if (m && task_.commits == durability::ordered)
      if (auto done = sync_within(*m); !done) return std::unexpected(std::move(done.error()));
    if (m) m->events = counts_between(before, detail::counters_of(workload_->core()));
    if (m) m->answered_ns = std::exchange(answered_ns_, {});
    return m;
  }

  footprint space() override {
    const pool_space s = detail::space_of(workload_->core());
    return {s.used_bytes + s.log_bytes, live_bytes_of(task_), s.log_bytes};
  }

  result<> check() override {
    const auto digest = workload_->digest();
    return digest ? result<>{} : std::unexpected(digest.error());
  }

 private:
  // A read is answered when it returns; an update when it is durable, which the sync at the end of
  // the run waits for.
  result<> apply_until_answered(std::span<const operation> ops) {
    const auto begin = std::chrono::steady_clock::now();
    auto done = workload_->apply(ops);
    const auto answer = [this, begin](const result<>& how) {
      const auto ns = std::chrono::steady_clock::now() - begin;
      const std::lock_guard hold(answered_mutex_);
      if (how) answered_ns_.record(static_cast<std::uint64_t>(ns.count()));
    };
    const auto reads = [](const operation& op) { return workloads::only_reads(op); };
    if (std::ranges::all_of(ops, reads) || !done) return answer(done), done;
    detail::runtime& core = workload_->core();
    detail::notify_when_durable(core, detail::newest_commit(core), answer);
    return done;
  }

  // Makes ordered commits durable; the time for that belongs to the run.
  result<> sync_within(measurement& m) {
    const auto begin = std::chrono::steady_clock::now();
    auto done = workload_->sync();
    m.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return done;
  }

  const task task_;
  const std::string mechanism_;
  const std::string path_;
  const std::unique_ptr<workloads::workload> workload_;
  std::vector<base::rng> generators_;
  std::mutex answered_mutex_;
  base::histogram answered_ns_;
  bool attached_ = false;
};

}  // namespace

// Bytes of a pool for a host's database, for mechanisms whose pools do not grow: pages may be half
// full, ycsb inserts an eighth of its records, and tpcc and linkbench add rows all the time.
std::size_t hosted_pool_size(const task& t) {
  const bool adds_rows = t.workload == "tpcc" || t.workload == "linkbench";
  return live_bytes_of(t) / 4 * 9 + (adds_rows ? 2 : 1) * t.spare_bytes;
}

// Bytes of a pool for the workload at its fullest. Maps: every key present, with room for headers
// and links. Arrays: twice the size, because the transaction that creates the array logs it. tpcc:
// room for the tables of one more warehouse.
std::size_t pool_size_of(const task& t) {
  if (!t.host.empty()) return hosted_pool_size(t);
  const auto& p = t.parameters;
  if (t.workload == "tpcc") {
    const std::uint64_t live = live_bytes_of(t);
    return live * 5 / 4 + live / workloads::tpcc::shape(p).warehouses + t.spare_bytes;
  }
  const std::size_t rounded =
      t.workload == "store" ? p.value_size / 8 : 0;  // blocks are rounded up from the value's size
  const std::size_t element = t.workload == "sps" ? 2 * p.value_size : p.value_size + rounded + 96;
  return p.keys * element * 5 / 4 + t.spare_bytes;
}

pool_options stele_options(const task& t, const std::string& mechanism) {
  pool_options o;
  o.create_size = t.pool_size_bytes != 0 ? t.pool_size_bytes : pool_size_of(t);
  o.layout = "comparison";
  if (mechanism != default_name) o.engine.mechanism = mechanism;
  const auto known = detail::find_mechanism(o.engine.mechanism);
  const bool has_parity = known && (*known)->has_parity;
  if (has_parity && t.pool_size_bytes == 0)
    o.create_size *= 2;  // checksums take up to 0.74 of home
  o.engine.media = t.media;
  o.policy = t.host.empty() ? t.policy : concurrency::external;
  if (!t.host.empty() && !has_parity) o.max_size = std::size_t{1} << 40;
  o.engine.log_size = t.log_size_bytes;
  o.engine.log_count = t.log_count;
  o.engine.defer_ordered = t.defer_ordered;
  o.engine.tuning = {t.adaptive, t.blurred, t.log_structured, t.archapt};
  return o;
}

contender_result make_stele(const task& t, const std::string& mechanism) {
  const auto known = detail::find_mechanism(mechanism == default_name ? "" : mechanism);
  if (!known) return std::unexpected(known.error());
  if (!t.host.empty()) return make_on_host(t, mechanism);
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  return make_stele_with(t, mechanism, std::move(*w));
}

contender_result make_stele_with(const task& t, const std::string& mechanism,
                                 std::unique_ptr<workloads::workload> w) {
  const auto known = detail::find_mechanism(mechanism == default_name ? "" : mechanism);
  if (!known) return std::unexpected(known.error());
  if (!t.host.empty() && (*known)->home != format::home_kind::in_place)
    return std::unexpected(error{
        errc::unsupported,
        fmt::format("{}: the host's adapter reads pages in place, which this mechanism's pools do "
                    "not have; choose another mechanism",
                    mechanism)});
  return std::make_unique<stele_contender>(t, mechanism, std::move(w));
}

}  // namespace stele::bench
