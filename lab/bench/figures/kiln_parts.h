// Shared by the figures of Kiln's evaluation: the two sizes of elements, the systems, and panels
// made from runs.
//
// A panel's values are means of a ratio over the workloads: a quantity of a system divided by that
// of the native system at the panel's base. A value is left out when one of its runs is missing or
// its base is zero.
#pragma once

#include <bench/figures/kiln_runs.h>

#include <array>

namespace stele::bench::kiln {

inline constexpr std::array<const char*, 6> workloads = {"sps",    "hash", "rbtree",
                                                         "bptree", "sdg",  "ssca2"};
inline constexpr std::array<unsigned, 5> thread_counts = {1, 2, 4, 8, 16};
inline constexpr unsigned most_threads = 16;

enum class element { small, large };
inline constexpr std::array elements = {element::small, element::large};
std::string name_of(element e);
std::span<const char* const> workloads_of(const sweep_options& o);

// A column: a machine and the number of threads that run on it.
struct system {
  std::string name, label;
  sim::machine_config machine;
  unsigned threads = most_threads;
  bool cold = false;  // the tapes begin with empty caches
};

// The base machine of the figures, read from its file by each call.
[[nodiscard]] result<sim::machine_config> base_machine();
// Isolation depends on the elements: HTM for small ones, a mutex for large ones; run_spec_of() sets
// it.
system system_of(const sim::machine_config& base, std::string design, std::string label,
                 unsigned threads = most_threads);
std::vector<system> systems_of(const sim::machine_config& base,
                               std::span<const char* const> designs,
                               unsigned threads = most_threads);

run_spec run_spec_of(const system& s, const std::string& workload, element e,
                     const sweep_options& o);
// Runs all workloads with small and large elements. Returns false when interrupted.
[[nodiscard]] result<bool> run_all(std::span<const system> systems, const sweep_options& o,
                                   chart& c);

using quantity_of = double (*)(const sim::run_result& r);
double throughput(const sim::run_result& r);
double memory_reads(const sim::run_result& r);
double memory_writes(const sim::run_result& r);
double memory_traffic(const sim::run_result& r);
double cache_reads(const sim::run_result& r);
double cache_writes(const sim::run_result& r);
double cache_accesses(const sim::run_result& r);
double processor_power(const sim::run_result& r);
double memory_power(const sim::run_result& r);
double processor_energy(const sim::run_result& r);
double memory_energy(const sim::run_result& r);

std::optional<double> one(const system& s, const std::string& workload, element e, quantity_of what,
                          const sweep_options& o);
std::optional<double> ratio(const system& s, const system& base, const std::string& workload,
                            element e, quantity_of what, const sweep_options& o);
std::optional<double> mean_ratio(const system& s, const system& base, element e, quantity_of what,
                                 const sweep_options& o);

// A series for each system; a place for each workload, and "mean" for all.
panel by_workload(std::string name, std::string y, std::span<const system> systems,
                  const system& base, element e, quantity_of what, const sweep_options& o);
// A series for each system, a place for each number of threads; the base is a single system.
panel by_threads(std::string name, std::string y, std::span<const system> systems,
                 const system& base, element e, quantity_of what, std::span<const unsigned> counts,
                 const sweep_options& o);
// A place for each quantity, divided by the base's.
struct named_quantity {
  const char* name;
  quantity_of what;
};
panel by_quantity(std::string name, std::string y, std::span<const system> systems,
                  const system& base, element e, std::span<const named_quantity> quantities,
                  const sweep_options& o);

series series_of(const system& s);
void put(series& s, const std::optional<double>& value);
system with_threads(system s, unsigned threads);

[[nodiscard]] result<> measure_logging(const sweep_options& o, chart& c);        // figure 1
[[nodiscard]] result<> measure_sram(const sweep_options& o, chart& c);           // 6
[[nodiscard]] result<> measure_logs_in_cache(const sweep_options& o, chart& c);  // 7
[[nodiscard]] result<> measure_gap(const sweep_options& o, chart& c);            // 8
[[nodiscard]] result<> measure_in_place(const sweep_options& o, chart& c);       // 9
[[nodiscard]] result<> measure_latency(const sweep_options& o, chart& c);        // 10
[[nodiscard]] result<> measure_power(const sweep_options& o, chart& c);          // 11
[[nodiscard]] result<> measure_overflow(const sweep_options& o, chart& c);
[[nodiscard]] result<> measure_sensitivity(const sweep_options& o, chart& c);

}  // namespace stele::bench::kiln
