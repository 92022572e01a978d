// The rivals that are built from checkouts of their sources: Quadra and Trinity (durabletx.cc) and
// Viper (viper.cc). Each runs in a process of its own.
//
// Quadra and Trinity run on media "adr": their flush instruction is chosen when they are compiled.
// A name that ends in -seq is the memory without any isolation, for one thread. The others isolate:
// by flat combining, where one thread runs the transactions of all under a reader-writer lock, or
// by TL2, where transactions run side by side and may abort. -vr is the variant with a volatile
// replica of the content, which reads use and which writes update first; the reported space is that
// of the pool alone, to which the replica adds three eighths.
#include <bench/contender_process.h>
#include <bench/rivals/checkouts.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pool/volatile_storage.h>
#include <workloads/key_space.h>

#include <algorithm>
#include <array>
#include <bit>

namespace stele::bench {
namespace {

// Paths; empty in a build without the checkout.
constexpr std::string_view durabletx_programs = STELE_DURABLETX_PROGRAMS;
constexpr std::string_view viper_program = STELE_VIPER_PROGRAM;

struct memory_kind {
  std::string_view rival;
  std::string_view program;
  std::string_view isolation;  // in the row's name; empty: none, one thread
  bool has_replica;
};

constexpr std::array<memory_kind, 10> memory_kinds = {{
    {"quadra-seq", "quadra", "", false},
    {"quadra", "quadra", "flat combining", false},
    {"quadra-vr-seq", "quadra-vr", "", true},
    {"quadra-vr", "quadra-vr", "flat combining", true},
    {"trinity-seq", "trinity", "", false},
    {"trinity", "trinity", "flat combining", false},
    {"trinity-vr-seq", "trinity-vr", "", true},
    {"trinity-vr", "trinity-vr", "flat combining", true},
    {"trinity-tl2", "trinity-tl2", "TL2", false},
    {"trinity-vr-tl2", "trinity-vr-tl2", "TL2", true},
}};

constexpr std::size_t largest_block = std::size_t{1} << 30;  // of their allocators
constexpr unsigned most_threads = 120;                       // their registry has 128 places

std::unexpected<error> unsupported(std::string_view rival, std::string why) {
  return std::unexpected(error{errc::unsupported, fmt::format("{}: {}", rival, why)});
}

// Bytes of one word in the pool, or in the replica.
std::size_t word_bytes(const memory_kind& kind) {
  return kind.has_replica ? 8 : 32;
}

// The largest block of the structure: the array, or the buckets of the hash map.
std::size_t largest_block_of(const task& t, const memory_kind& kind) {
  const auto& p = t.parameters;
  const std::size_t words = t.workload == "sps"    ? p.keys * (p.value_size / 8)
                            : t.workload == "hash" ? std::bit_ceil(p.keys)
                                                   : 0;
  return (words + 2) * word_bytes(kind);
}

// Blocks are powers of two with a header of two words. The maps are half full; some keys more are
// provided for, and for each thread of TL2 a slab.
std::size_t region_bytes_of(const task& t, const memory_kind& kind) {
  const auto& p = t.parameters;
  const std::size_t node_words = (t.workload == "hash" ? 2 : 4) + p.value_size / 8 + 2;
  const std::size_t nodes = t.workload == "sps" ? 0 : p.keys * 5 / 8 + 4096;
  const std::size_t node_bytes = std::bit_ceil(node_words * word_bytes(kind));
  const std::size_t spare = (std::size_t{24} + (kind.isolation == "TL2" ? 8 * t.threads : 0)) << 20;
  const std::size_t content = std::bit_ceil(largest_block_of(t, kind)) + nodes * node_bytes + spare;
  const std::size_t pool = kind.has_replica ? content / 24 * 64 + 64 : content;
  return (pool + 4095) / 4096 * 4096;
}

result<> fits(const task& t, const memory_kind& kind) {
  if (t.workload != "sps" && t.workload != "hash" && t.workload != "rbtree")
    return unsupported(
        kind.rival,
        fmt::format("no structure for the workload '{}'; there are sps, hash and rbtree",
                    t.workload));
  if (t.media != "adr")
    return unsupported(kind.rival, fmt::format("it runs on media 'adr', not '{}'", t.media));
  if (kind.isolation.empty() && t.threads != 1)
    return unsupported(kind.rival, "it has no isolation and runs on one thread only");
  if (t.threads > most_threads)
    return unsupported(kind.rival, fmt::format("it runs on at most {} threads", most_threads));
  if (!kind.has_replica && t.parameters.value_size != 8)
    return unsupported(kind.rival,
                       fmt::format("its values have 8 bytes, not {}; the rivals with -vr in their "
                                   "names have values of any size",
                                   t.parameters.value_size));
  if (largest_block_of(t, kind) > largest_block)
    return unsupported(kind.rival,
                       "its allocator gives at most 1 GiB in one block; use fewer keys or smaller "
                       "values");
  if (auto w = workloads::make_workload(t.workload, t.parameters); !w)
    return std::unexpected(std::move(w.error()));
  return {};
}

std::string name_of(const memory_kind& kind) {
  std::string name(kind.rival);
  if (!kind.isolation.empty()) name += fmt::format(", {}", kind.isolation);
  return name;
}

}  // namespace

std::vector<std::string_view> durabletx_rivals() {
  std::vector<std::string_view> names;
  if (!durabletx_programs.empty())
    for (const memory_kind& kind : memory_kinds) names.push_back(kind.rival);
  return names;
}
bool has_viper() {
  return !viper_program.empty();
}

contender_result make_durabletx(const task& t, std::string_view rival) {
  const auto kind = std::ranges::find(memory_kinds, rival, &memory_kind::rival);
  if (const auto done = fits(t, *kind); !done) return std::unexpected(done.error());
  return make_contender_process(t, {name_of(*kind), t.media, durability_of(t, t.dir)},
                                {fmt::format("{}{}", durabletx_programs, kind->program),
                                 {std::string(rival)},
                                 {fmt::format("STELE_REGION_BYTES={}", region_bytes_of(t, *kind)),
                                  fmt::format("STELE_REGION_DIR={}", t.dir)},
                                 {}});
}

contender_result make_viper(const task& t) {
  if (t.workload != "store")
    return unsupported(
        "viper",
        fmt::format("it is a key-value store and runs the workload 'store', not '{}'", t.workload));
  if (t.media != "adr")
    return unsupported("viper", fmt::format("it runs on media 'adr', not '{}'", t.media));
  if (std::ranges::find(viper_value_sizes, t.parameters.value_size) == viper_value_sizes.end())
    return unsupported("viper",
                       fmt::format("it is compiled for values of {} bytes, not {}",
                                   fmt::join(viper_value_sizes, ", "), t.parameters.value_size));
  if (auto w = workloads::make_workload(t.workload, t.parameters); !w)
    return std::unexpected(std::move(w.error()));
  const std::string folder = pool_path(t, "viper");
  std::string name = "viper, no reclamation";
  if (t.ops_per_tx > 1) name += ", each operation alone";
  return make_contender_process(
      t, {std::move(name), t.media, durability_of(t, t.dir)},
      {std::string(viper_program), {}, {fmt::format("STELE_VIPER_DIR={}", folder)}, folder});
}

}  // namespace stele::bench
