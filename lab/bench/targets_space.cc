// How full the heap of a pool gets with values of one size: `stele bench space`. The mark is 85 of
// 100 bytes of its chunks; docs/format/heap.md names the sizes that fall short of it.
#include <bench/targets_parts.h>
#include <fmt/format.h>
#include <stele/memory.h>
#include <stele/pool.h>
#include <tx/runtime.h>
#include <unistd.h>

namespace stele::bench {
namespace {

constexpr std::size_t pool_bytes = 128u << 20;
constexpr double mark_percent = 85;

struct fullness {
  std::uint64_t values = 0, heap_bytes = 0;
};

// Makes values until none fits, many in a transaction as long as many fit.
result<fullness> fill(const std::string& path, std::size_t value_bytes) {
  pool_options options;
  options.create_size = pool_bytes;
  options.engine.media = "process";
  auto p = pool<field<std::uint64_t>>::open(path, options);
  if (!p) return std::unexpected(p.error());
  const auto& h = p->core().state().file.header();
  fullness found{0, h.chunk_count << h.chunk_shift};
  for (std::uint64_t together = 256; together != 0;) {
    const auto made = p->update([&](field<std::uint64_t>&) {
      for (std::uint64_t i = 0; i < together; ++i) (void)pool_memory::allocate(value_bytes, 8);
    });
    if (made)
      found.values += together;
    else if (made.error().code == errc::full)
      together /= 2;
    else
      return std::unexpected(made.error());
  }
  if (auto closed = p->close(); !closed) return std::unexpected(closed.error());
  return found;
}

}  // namespace

result<std::vector<performance_target>> measure_space_targets(const target_options& o) {
  std::vector<performance_target> targets;
  for (const std::size_t size :
       {16u,     17u,     24u,     28u,      32u,     34u,     40u,     41u,     48u,
        64u,     100u,    200u,    500u,     1000u,   2000u,   4000u,   5000u,   8193u,
        10000u,  13000u,  16384u,  17000u,   20000u,  25000u,  33000u,  40000u,  50000u,
        65536u,  66000u,  80000u,  100000u,  131073u, 170000u, 200000u, 262145u, 330000u,
        400000u, 500000u, 700000u, 1000000u, 1048576u}) {
    if (o.cancelled()) return std::unexpected(error{errc::cancelled, "the benchmark was stopped"});
    o.progress(fmt::format("values of {} B", size));
    const std::string path = o.dir + "/space";
    const auto filled = fill(path, size);
    ::unlink(path.c_str());
    if (!filled) return std::unexpected(filled.error());
    const double percent =
        100 * static_cast<double>(filled->values * size) / static_cast<double>(filled->heap_bytes);
    targets.push_back(
        {fmt::format("values of {} B", size), "%", mark_percent, percent, false,
         fmt::format("{} in chunks of {} bytes in all", filled->values, filled->heap_bytes)});
    o.measured(targets.back());
  }
  return targets;
}

}  // namespace stele::bench
