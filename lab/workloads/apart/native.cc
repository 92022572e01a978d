// Native runs by name, the cost of their instructions, and how their tapes are written.
#include <base/check.h>
#include <workloads/apart/entries.h>
#include <workloads/apart/native.h>

#include <algorithm>
#include <array>

namespace stele::workloads {

namespace {

constexpr std::uint64_t most_addresses = std::uint64_t{1} << 40;

// Measured values; docs/format/native.md says how and when.
struct measured {
  std::string_view workload;
  native_costs costs;
};
constexpr std::array measured_costs = {
    measured{"sps", {.per_access = 1, .per_line = 11, .per_allocation = 80, .per_operation = 12}},
    measured{"hash", {.per_access = 7, .per_line = 25, .per_allocation = 80, .per_operation = 93}},
    measured{"rbtree",
             {.per_access = 11, .per_line = 25, .per_allocation = 80, .per_operation = 40}},
    measured{"bptree",
             {.per_access = 17, .per_line = 25, .per_allocation = 80, .per_operation = 372}},
    measured{"sdg", {.per_access = 3, .per_line = 25, .per_allocation = 80, .per_operation = 13}},
    measured{"ssca2", {.per_access = 3, .per_line = 25, .per_allocation = 80, .per_operation = 14}},
};

// Addresses for twice the keys and what containers add to them, so that no thread depends on free
// blocks of another.
std::uint64_t addresses_for(const parameters& p) {
  const std::uint64_t wanted =
      p.keys * (std::uint64_t{p.value_size} + 256) * 2 + (std::uint64_t{1} << 20);
  return (wanted + native_space::max_access_bytes - 1) / native_space::max_access_bytes *
         native_space::max_access_bytes;
}

result<> check_plan(const native_plan& plan) {
  if (plan.threads == 0 || plan.threads > 65535)
    return base::fail(errc::invalid_argument,
                      std::to_string(plan.threads) + " threads: give a number from 1 to 65535");
  if (plan.params.keys > most_addresses || addresses_for(plan.params) > most_addresses) {
    return base::fail(errc::invalid_argument,
                      std::to_string(plan.params.keys) + " elements of " +
                          std::to_string(plan.params.value_size) +
                          " bytes: a native run has 2^40 addresses; give fewer or smaller ones");
  }
  return {};
}

// Runs one operation and writes its events to the tape.
void perform(native_run& run, const operation& op, unsigned thread, std::uint64_t number,
             const native_costs& costs, bool in_order, media::tape_writer& tape) {
  const media::tape_writer::scoped_lock lock(tape);
  tape.event(media::tape_op::invoked, thread, number, 0);
  tape.event(media::tape_op::tx_begin, thread, number, in_order ? media::tape_ordered_flag : 0);
  run.space().start_recording(tape, thread, costs);
  run.apply(op);
  run.space().write_instructions();
  run.space().stop_recording();
  tape.event(media::tape_op::tx_commit, thread, number, 0);
  tape.event(media::tape_op::returned, thread, number, 0);
}

}  // namespace

native_costs native_costs_of(std::string_view workload) noexcept {
  const auto found = std::ranges::find(measured_costs, workload, &measured::workload);
  return found == measured_costs.end() ? native_costs{} : found->costs;
}

result<std::unique_ptr<native_run>> make_native(std::string_view workload,
                                                const native_plan& plan) {
  const auto k = find_native_workload(workload, plan.params);
  if (!k) return std::unexpected(k.error());
  if (auto ok = check_plan(plan); !ok) return std::unexpected(std::move(ok.error()));
  auto space = native_space::make(addresses_for(plan.params), plan.bytes);
  if (!space) return std::unexpected(std::move(space.error()));
  try {
    auto run = (*k)->make_native(plan.params, std::move(*space));
    run->set_up();
    return run;
  } catch (const failure& f) {
    return std::unexpected(f.why());
  }
}

media::tape_options native_shape(native_run& run, const native_plan& plan) {
  return {.pool_size = run.space().size(), .record_bytes = plan.bytes, .mark_pointers = true};
}

result<> record_native(native_run& run, std::string_view workload, const native_plan& plan,
                       media::tape_writer& tape,
                       const std::function<bool(std::uint64_t)>& should_continue,
                       std::vector<operation>* performed) {
  if (plan.bytes) tape.image(run.space().base(), run.space().used());
  const native_costs costs = plan.costs.value_or(native_costs_of(workload));
  std::vector<base::rng> random;
  for (unsigned t = 0; t < plan.threads; ++t) random.emplace_back(base::mix(plan.seed) + t);
  try {
    for (std::uint64_t i = 0; i < plan.operations && (i % 256 != 0 || should_continue(i)); ++i) {
      const auto thread = static_cast<unsigned>(i % plan.threads);
      const operation op = run.draw(random[thread]);
      perform(run, op, thread, i, costs, plan.in_order_every != 0 && i % plan.in_order_every == 0,
              tape);
      if (performed != nullptr) performed->push_back(op);
    }
  } catch (const failure& f) {
    run.space().stop_recording();
    return std::unexpected(f.why());
  }
  return {};
}

}  // namespace stele::workloads
