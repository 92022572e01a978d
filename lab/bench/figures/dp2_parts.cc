// Records tapes and replays them to the controller.
#include <bench/figures/dp2_parts.h>
#include <fmt/format.h>
#include <workloads/record.h>

namespace stele::bench::dp2 {

std::vector<std::string> value_axis() {
  std::vector<std::string> names;
  for (const std::size_t size : value_sizes) names.push_back(fmt::format("{}", size));
  return names;
}

std::vector<std::string> workload_axis() {
  return {workloads.begin(), workloads.end()};
}

result<sim::write_trace> recorded_trace::trace(bool truncations) const {
  sim::write_trace t(std::move(*media::tape_reader::from_memory(tape->memory())));
  if (!truncations)
    if (auto done = t.leave_out_truncations(); !done) return std::unexpected(done.error());
  return t;
}
media::tape_header recorded_trace::header() const {
  return media::tape_reader::from_memory(tape->memory())->header();
}

result<recorded_trace> trace_of(const sweep_options& o, const std::string& workload,
                                std::size_t value_size, unsigned threads) {
  workloads::recording_options r;
  r.workload = workload;
  r.mechanism = "base";
  r.content.keys = o.traced_keys;
  r.content.value_size = value_size;
  r.content.seed = r.seed = o.seed;
  r.operations = o.traced_operations;
  r.threads = threads;
  r.record_bytes = false;
  r.dir = o.dir;
  r.cancelled = o.cancelled;
  auto tape = workloads::record(
      r, [](const media::tape_options& shape) -> result<std::unique_ptr<media::tape_writer>> {
        return media::tape_writer::to_memory(shape);
      });
  if (!tape) return std::unexpected(std::move(tape.error()));
  return recorded_trace{std::move(*tape)};
}

result<double> bandwidth_of(const recorded_trace& t, const controller_setting& how) {
  sim::event_queue time;
  sim::memory_config c = sim::dp2_memory(how.scheduler, how.log_retention_s);
  c.truncation_retention = how.truncation_retention;
  auto memory = sim::make_dp2_memory(time, c, t.header());
  if (!memory) return std::unexpected(std::move(memory.error()));
  auto trace = t.trace(how.truncations);
  if (!trace) return std::unexpected(trace.error());
  const auto done = sim::replay_writes(*trace, time, **memory);
  if (!done) return std::unexpected(done.error());
  return done->bytes_per_s();
}

result<write_counts> count_writes(const recorded_trace& t) {
  const auto ranges = sim::log_classes_of(t.header());
  if (!ranges) return std::unexpected(ranges.error());
  write_counts sums;
  auto trace = t.trace();
  if (!trace) return std::unexpected(trace.error());
  for (;;) {
    const auto s = trace->next();
    if (!s) return std::unexpected(s.error());
    if (!*s) return sums;
    if ((*s)->what != sim::trace_step::kind::write) continue;
    const sim::write_class what = ranges->classify((*s)->address).what;
    ++(what == sim::write_class::log_record      ? sums.log
       : what == sim::write_class::commit_record ? sums.commit
                                                 : sums.data);
  }
}

series empty_series(std::string name, std::string label, std::size_t places) {
  return {std::move(name), std::move(label), false, std::vector<std::optional<spread>>(places)};
}

void put(series& s, std::size_t place, double value) {
  s.points[place] = known(value);
}

}  // namespace stele::bench::dp2
