// Draws a machine at random.
#include <base/rng.h>
#include <explore/controller_machine.h>

#include <iterator>

namespace stele::explore {
namespace {

template <class Choices>
auto one_of(const Choices& choices, base::rng& random) {
  return choices[random.below(std::size(choices))];
}

}  // namespace

// With few banks, writes wait and others overtake them. With short queues the controller sees few
// writes. When log writes are many times faster or slower than data writes, the two shift against
// each other.
result<std::unique_ptr<sim::memory_system>> make_controller(sim::event_queue& time,
                                                            const media::tape_header& logs_of,
                                                            const std::string& scheduler,
                                                            std::uint64_t seed) {
  static constexpr unsigned banks[] = {1, 2, 4, 8, 16}, ranks[] = {1, 2, 4},
                            queues[] = {2, 4, 16, 32};
  static constexpr double speedups[] = {1, 1.7, 6, 40};
  static constexpr std::uint64_t rows[] = {256, 1024, 4096};
  static const char* const mappings[] = {"row-column-rank-bank-channel",
                                         "row-rank-bank-column-channel",
                                         "rank-row-bank-column-channel"};
  base::rng random(seed);
  sim::memory_config c = sim::dp2_memory(scheduler);
  c.ranks = one_of(ranks, random);
  c.banks = one_of(banks, random);
  c.bank_queue_entries = one_of(queues, random);
  c.write_queue_entries = c.ranks * c.banks * c.bank_queue_entries;
  c.row_bytes = one_of(rows, random);
  c.mapping = one_of(mappings, random);
  c.bank_hash = false;  // lines of logs meet in few banks
  c.open_page = random.below(2) == 0;
  c.read_latency_ns = c.write_latency_ns = static_cast<double>(random.below(200));
  c.retention = {{1e7, 1}, {1e4, one_of(speedups, random)}};
  (random.below(3) == 0 ? c.data_retention_s : c.log_retention_s) = 1e4;
  return sim::make_dp2_memory(time, c, logs_of);
}

}  // namespace stele::explore
