// Shared by the figures of the log-structured evaluation: their task, their entries, and pools
// whose state is inspected.
#include <bench/drive.h>
#include <bench/figures/lsnvmm.h>
#include <bench/figures/lsnvmm_parts.h>
#include <fmt/format.h>
#include <published/log_structured/log_home.h>
#include <tx/runtime.h>

#include <algorithm>
#include <filesystem>

namespace stele::bench::lsnvmm {

std::string medium_of(const sweep_options& o) {
  return std::string(medium) + find_charge(lsnvmm_charges(), o.charge)->media;
}

task task_on(const sweep_options& o, const pattern& p, std::size_t keys) {
  task t;
  t.media = medium_of(o);
  take_common(t, o);
  t.parameters.keys = keys;
  t.parameters.value_size = value_bytes;
  set_pattern(t, p);
  return t;
}

void set_pattern(task& t, const pattern& p) {
  t.workload = p.workload;
  t.parameters.choice = p.choice;
}

namespace {

// An upper bound of what all threads of a system write in its runs.
std::size_t written_bytes(const sweep_options& o) {
  constexpr double bytes_per_s = 2e8;
  return static_cast<std::size_t>(bytes_per_s * o.seconds * (o.runs + 1));
}

}  // namespace

entry all_optimisations(const sweep_options& o, std::string name, std::string label) {
  entry e{std::move(name), std::move(label), mechanism, chunk_bytes};
  e.own = [written = written_bytes(o)](task& t) {
    const std::size_t content = t.parameters.keys * (t.parameters.value_size + 96);
    t.pool_size_bytes = 3 * content + (std::size_t{16} << 20) + written;
    t.log_structured.word_cache = true;
  };
  return e;
}

std::vector<entry> stages(const sweep_options& o) {
  struct stage {
    const char* name;
    bool two_layers, group_update, node_cache, lock_free_readers;
  };
  static constexpr stage all[] = {{"base", false, false, false, false},
                                  {"2L", true, false, false, false},
                                  {"2L-GU", true, true, false, false},
                                  {"2L-GU-C", true, true, true, false},
                                  {"all", true, true, true, true}};
  std::vector<entry> entries;
  for (const stage& s : all) {
    entry e = all_optimisations(o, s.name, s.name);
    e.own = [s, own = e.own](task& t) {
      own(t);
      t.log_structured.two_layers = s.two_layers;
      t.log_structured.group_update = s.group_update;
      t.log_structured.node_cache = s.node_cache;
      t.log_structured.lock_free_readers = s.lock_free_readers;
      t.log_structured.word_cache = false;
    };
    entries.push_back(std::move(e));
  }
  return entries;
}

entry in_place(const sweep_options& o, const logging_system& s) {
  entry e{s.mechanism, fmt::format("{} ({})", s.mechanism, s.text), s.mechanism};
  e.own = [written = written_bytes(o)](task& t) {
    if (t.parameters.choice == workloads::key_choice::fresh)  // the structure grows
      t.pool_size_bytes = pool_size_of(t) + 2 * written;
  };
  return e;
}

double per_transaction(const row& r, std::uint64_t event_counts::* count) {
  if (!r.events || r.transactions == 0) return 0;
  return static_cast<double>((*r.events).*count) / static_cast<double>(r.transactions);
}

double traffic_of(const row& r) {
  return 64 * per_transaction(r, &event_counts::lines) +
         per_transaction(r, &event_counts::streamed_bytes);
}

double stored_of(const row& r) {
  return per_transaction(r, &event_counts::stored_bytes) +
         per_transaction(r, &event_counts::streamed_bytes);
}

double hit_percent_of(const row& r) {
  const double hits = per_transaction(r, &event_counts::map_hits),
               misses = per_transaction(r, &event_counts::map_misses);
  return hits + misses == 0 ? 0 : 100 * hits / (hits + misses);
}

filled_pool::filled_pool(const task& t, std::unique_ptr<workloads::workload> w)
    : path_(pool_path(t, "filled" + t.label)),
      workload_(std::move(w)),
      random_(base::mix(t.seed)) {}

filled_pool::~filled_pool() {
  if (attached_) workload_->detach();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

result<std::unique_ptr<filled_pool>> filled_pool::make(const task& t, const pool_options& options) {
  auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(std::move(w.error()));
  std::unique_ptr<filled_pool> p(new filled_pool(t, std::move(*w)));
  auto handle = detail::pool_handle::open(p->path_, options, p->workload_->root_size());
  if (!handle) return std::unexpected(std::move(handle.error()));
  p->workload_->attach(std::move(*handle));
  p->attached_ = true;
  if (auto filled = p->workload_->set_up(); !filled)
    return std::unexpected(std::move(filled.error()));
  return p;
}

result<> filled_pool::apply(std::uint64_t operations) {
  for (std::uint64_t i = 0; i < operations; ++i) {
    const auto op = workload_->draw(random_);
    if (auto done = workload_->apply({&op, 1}); !done) return done;
  }
  return {};
}

std::uint64_t filled_pool::live_bytes() {
  return detail::log_space_of(workload_->core().mechanism())->usage.total_live() * 8;
}

std::uint64_t filled_pool::entries_bytes() {
  std::uint64_t words = 0;
  map().for_each([&](const storage::home_map::mapped_range& p) {
    words += 1 + (storage::is_data(p.at) ? p.words : 0);
  });
  return words * 8;
}

const storage::home_map& filled_pool::map() {
  return detail::log_space_of(workload_->core().mechanism())->map;
}

std::vector<std::uint64_t> filled_pool::chunk_writes() {
  const storage::log_space& space = *detail::log_space_of(workload_->core().mechanism());
  std::vector<std::uint64_t> writes;
  for (std::uint32_t c = 0; c < space.chunk_count(); ++c) writes.push_back(space[c].generation);
  std::ranges::sort(writes);
  return writes;
}

result<std::size_t> pool_for_share(task t, double share, std::uint64_t operations) {
  t.media = "adr";
  t.log_size_bytes = chunk_bytes;
  t.pool_size_bytes = 4 * pool_size_of(t) + operations * (2 * t.parameters.value_size + 1024);
  pool_options options = stele_options(t, mechanism);
  options.engine.background = false;
  const auto p = filled_pool::make(t, options);
  if (!p) return std::unexpected(p.error());
  if (auto done = (*p)->apply(operations); !done) return std::unexpected(std::move(done.error()));
  return static_cast<std::size_t>(static_cast<double>((*p)->entries_bytes()) / share) + chunk_bytes;
}

}  // namespace stele::bench::lsnvmm
