// Figures 9 and 13 of the log-structured evaluation: memory held beyond live data, and ordinary
// memory for the map.
//
// The memory held by a log-structured pool is the size that its file must have: the smallest pool
// in which the workload runs to its end, whatever cleaning costs. The transaction that allocates an
// object writes it in full, with up to 64 operations per transaction.
#include <bench/figures/blurred_parts.h>
#include <bench/figures/fragmentation.h>
#include <bench/figures/lsnvmm_parts.h>
#include <fmt/format.h>
#include <tx/runtime.h>

namespace stele::bench::lsnvmm {
namespace {

constexpr std::size_t operations_a_transaction = 64;
constexpr std::size_t spare_chunks = 32;  // needed by every small pool

struct nothing {
  field<std::uint64_t> word;
};

void apply_one(const heap_operation& op, std::vector<void*>& objects,
               std::span<const std::byte> bytes) {
  if (op.what == heap_operation::kind::free) return detail::deallocate(objects[op.object]);
  objects[op.object] = detail::allocate(op.size_bytes, 8);
  stele::store_bytes(objects[op.object], bytes.data(), op.size_bytes);
}

pool_options tight_pool(std::size_t size_bytes) {
  pool_options p;
  p.create_size = size_bytes;
  p.engine.mechanism = mechanism;
  p.engine.media = "adr";
  p.policy = concurrency::single_writer;
  p.engine.tuning = log_structured_options{.clean_from = 0.9, .victim_live_share = 0.9};
  p.engine.background = false;
  return p;
}

// Returns whether the workload ran to its end. Errors: those of the pool except full.
result<bool> fits(const heap_workload& w, const sweep_options& o, std::size_t size_bytes) {
  task t;
  t.dir = o.dir;
  const scratch_file file(pool_path(t, fmt::format("held-{}", w.name)));
  auto p = pool<nothing>::open(file.path, tight_pool(size_bytes));
  if (!p) return std::unexpected(std::move(p.error()));
  const std::vector<std::byte> bytes(4096, std::byte{1});
  heap_operations operations(w, o.phase_bytes, o.seed);
  std::vector<void*> objects(operations.most_objects());
  const auto live = run_heap_workload<operations_a_transaction>(
      operations, [&](std::span<const heap_operation> batch) {
        return p->update([&](nothing&) {
          for (const heap_operation& op : batch) apply_one(op, objects, bytes);
        });
      });
  if (!live && live.error().code != errc::full) return std::unexpected(live.error());
  return live.has_value();
}

result<std::uint64_t> live_bytes_of(const heap_workload& w, const sweep_options& o) {
  return run_heap_workload(heap_operations(w, o.phase_bytes, o.seed),
                           [](std::span<const heap_operation>) { return result<>{}; });
}

// Adds a series for each allocator; allocators that are not installed add a note.
result<> add_peers(const sweep_options& o, chart& into, panel& p) {
  fragmentation_options f{o.phase_bytes, o.seed, o.dir, o.progress};
  for (const std::string& peer : heap_peers()) {
    series s{peer, peer, false, std::vector<std::optional<spread>>(heap_workloads.size())};
    for (std::size_t i = 0; i < heap_workloads.size(); ++i) {
      if (o.cancelled()) return into.complete = false, result<>{};
      o.progress(fmt::format("{} on {}", peer, heap_workloads[i].name));
      const auto space = measure_peer(peer, heap_workloads[i], f);
      if (!space && space.error().code != errc::unsupported) return std::unexpected(space.error());
      if (!space) into.notes.push_back(space.error().message);
      if (!space) break;
      const double percent = 100 * space->fragmentation();
      s.points[i] = known(percent);
    }
    if (s.points.front()) p.lines.push_back(std::move(s));
  }
  return {};
}

}  // namespace

result<held_space> smallest_pool(const heap_workload& w, const sweep_options& o) {
  const auto live = live_bytes_of(w, o);
  if (!live) return std::unexpected(live.error());
  // Bisects in steps of a two-hundredth of the live bytes: `none` steps are too few, `enough`
  // suffice.
  const auto bytes = [&](unsigned steps) { return *live + *live * steps / 200; };
  unsigned none = 0, enough = 64;
  for (unsigned tried = 8;; tried = none + (enough - none) / 2) {
    o.progress(fmt::format("{} in {:.1f} % more than is live", w.name, tried / 2.0));
    const auto ran = fits(w, o, bytes(tried));
    if (!ran) return std::unexpected(ran.error());
    (*ran ? enough : none) = tried;
    if (enough - none <= 1) break;
  }
  return held_space{*live, bytes(enough)};
}

result<> measure_fragmentation(const sweep_options& o, chart& into) {
  panel p{"fragmentation",
          "workload",
          "% of the most memory held that holds no live byte",
          {},
          {},
          true};
  for (const heap_workload& w : heap_workloads) p.xs.emplace_back(w.name);
  if (auto done = add_peers(o, into, p); !done) return done;
  series ours{mechanism, mechanism, false,
              std::vector<std::optional<spread>>(heap_workloads.size())};
  for (std::size_t i = 0; i < heap_workloads.size() && into.complete; ++i) {
    const auto held = smallest_pool(heap_workloads[i], o);
    if (!held) return std::unexpected(held.error());
    ours.points[i] = known(held->percent());
    into.complete = into.complete && !o.cancelled();
  }
  p.lines.push_back(std::move(ours));
  into.panels.push_back(std::move(p));
  into.notes.push_back(scale_of({o.phase_bytes, o.seed, o.dir, o.progress}));
  into.notes.emplace_back(
      "log_structured: the smallest pool file that the workload runs to its end in, within half a "
      "percent; the map of home in "
      "ordinary memory is not counted (figure 13)");
  return {};
}

result<map_footprint> map_of_kv(const sweep_options& o, std::size_t value_size) {
  task t = task_on(o, {"kv", "kv", workloads::key_choice::uniform},
                   2 * o.data_bytes / (value_size + 16));
  t.parameters.value_size = value_size;
  t.log_size_bytes = chunk_bytes;
  const auto room = pool_for_share(t, 0.7, 0);
  if (!room) return std::unexpected(room.error());
  t.pool_size_bytes = *room + spare_chunks * chunk_bytes;
  const auto p = filled_pool::make(t, stele_options(t, mechanism));
  if (!p) return std::unexpected(p.error());
  const storage::home_map& map = (*p)->map();
  std::uint64_t ranges = 0;
  map.for_each([&](const storage::home_map::mapped_range&) { ++ranges; });
  return map_footprint{(*p)->counters().of_mechanism["map_bytes"],
                       bench::live_bytes_of(t),
                       (*p)->live_bytes(),
                       ranges,
                       map.bytes(),
                       t.parameters.keys / 2};
}

result<> measure_dram(const sweep_options& o, chart& into) {
  static constexpr std::size_t sizes[] = {16, 64, 128, 256, 1024, 4096};
  panel p{"footprint",
          "value size, bytes",
          "% of live data: map of home and node cache in ordinary memory",
          {},
          {},
          false};
  for (const std::size_t size : sizes) p.xs.push_back(fmt::format("{}", size));
  p.lines = {{"content", "of keys and values", false,
              std::vector<std::optional<spread>>(std::size(sizes))},
             {"live", "of all that is live in the log", false,
              std::vector<std::optional<spread>>(std::size(sizes))}};
  panel parts{"parts", p.x, "of each element", p.xs, {}, false};
  for (const auto& [name, label] :
       {std::pair{"lists", "bytes of lists"}, std::pair{"cache", "bytes of node caches"},
        std::pair{"nodes", "nodes"}})
    parts.lines.push_back(
        {name, label, false, std::vector<std::optional<spread>>(std::size(sizes))});
  for (std::size_t i = 0; i < std::size(sizes) && into.complete; ++i) {
    o.progress(fmt::format("values of {} B", sizes[i]));
    const auto f = map_of_kv(o, sizes[i]);
    if (!f) return std::unexpected(f.error());
    const auto percent = [&](std::uint64_t of) {
      return 100 * static_cast<double>(f->map_bytes) / static_cast<double>(of);
    };
    for (const auto& [line, v] :
         {std::pair{0, percent(f->content_bytes)}, std::pair{1, percent(f->live_bytes)}})
      p.lines[line].points[i] = known(v);
    const auto each = [&](std::uint64_t all) {
      return static_cast<double>(all) / static_cast<double>(f->elements);
    };
    const double values[] = {each(f->lists_bytes), each(f->map_bytes - f->lists_bytes),
                             each(f->nodes)};
    for (std::size_t line = 0; line < std::size(values); ++line)
      parts.lines[line].points[i] = known(values[line]);
    into.complete = !o.cancelled();
  }
  into.panels = {std::move(p), std::move(parts)};
  into.notes.push_back(
      fmt::format("{:g} MiB of keys and values (the paper: 1 GB), inserted up to 128 a "
                  "transaction; what is live fills 0.7 of the pool",
                  static_cast<double>(o.data_bytes) / (1 << 20)));
  return {};
}

}  // namespace stele::bench::lsnvmm
