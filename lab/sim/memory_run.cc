// Submits the requests of a trace in their cycles, and collects what the memory did.
#include <base/check.h>
#include <fmt/format.h>
#include <sim/controller/command_trace.h>
#include <sim/epochs.h>
#include <sim/feed/convert.h>
#include <sim/memory_result.h>
#include <sim/memory_run.h>
#include <sim/plugins.h>

#include <filesystem>

namespace stele::sim {
namespace {

class driver final : public event_handler {
 public:
  driver(event_queue& events, memory_system& memory, request_trace& trace, unsigned reads_in_flight)
      : events_(events), memory_(memory), trace_(trace), reads_at_most_(reads_in_flight) {
    const picoseconds clock = from_ns(memory.config().clock_ns);
    clock_ = clock == 0 ? cycle_without_clock : clock;
  }

  void start() {
    fetch();
    if (next_) wait_for(next_->cycle);
  }

  void handle(picoseconds now, std::uint64_t what) override {
    if (what != timer) {
      reads_in_flight_ -= what == read_completed;
      return void(finished = now);
    }
    request r;
    r.address = next_->address;
    r.kind = next_->write ? access::write : access::read;
    r.reply_to = this;
    r.token = next_->write ? write_completed : read_completed;
    if (may_submit(r)) {
      memory_.submit(now, r);
      reads_in_flight_ += r.kind == access::read;
      ++requests;
      fetch();
    } else {
      ++stalled_cycles;
    }
    if (next_) wait_for(std::max(next_->cycle, cycle_ + 1));
  }

  std::uint64_t requests = 0, stalled_cycles = 0;
  picoseconds finished = 0;  // when the last request so far completed
  result<> status;

 private:
  static constexpr std::uint64_t timer = 0, read_completed = 1, write_completed = 2;

  bool may_submit(const request& r) const {
    const bool waits =
        r.kind == access::read && reads_at_most_ != 0 && reads_in_flight_ == reads_at_most_;
    return !waits && memory_.has_room(r);
  }

  void fetch() {
    auto r = trace_.next();
    if (r && *r && (*r)->address >= memory_.config().capacity_bytes)
      r = base::fail(errc::invalid_argument,
                     fmt::format("the trace has a request to {:#x}, and the memory's "
                                 "capacity_bytes is {}; give the memory more capacity",
                                 (*r)->address, memory_.config().capacity_bytes));
    if (r && *r && (*r)->cycle > latest / clock_)
      r = base::fail(
          errc::invalid_argument,
          fmt::format("the trace has a request in cycle {}, and a run may last {} cycles "
                      "of this memory's clock (53 days); shorten the trace's pauses",
                      (*r)->cycle, latest / clock_));
    if (!r) status = std::unexpected(r.error());
    next_ = r ? *r : std::nullopt;
  }
  void wait_for(std::uint64_t cycle) {
    cycle_ = cycle;
    events_.schedule(cycle * clock_, *this, timer);
  }

  event_queue& events_;
  memory_system& memory_;
  request_trace& trace_;
  unsigned reads_at_most_, reads_in_flight_ = 0;
  picoseconds clock_;
  std::optional<traced_request> next_;
  std::uint64_t cycle_ = 0;
};

// For what is in the queues when the last request comes.
constexpr picoseconds time_behind_latest = 1'000'000'000'000'000;

result<> run_to_end(event_queue& events, driver& d, const request_trace& trace, epochs& line,
                    const memory_run_options& o) {
  std::error_code none;
  const double size = static_cast<double>(std::filesystem::file_size(o.trace, none));
  for (std::uint64_t steps = 1; !events.empty() && d.status; ++steps) {
    if (events.next() > latest + time_behind_latest)
      return base::fail(errc::invalid_argument,
                        "the run goes beyond 53 days of simulated time; give the memory shorter "
                        "latencies, or a shorter trace");
    if (line.exceeded_at(events.next())) return std::unexpected(line.finish(events.next()).error());
    while (events.next() > line.end()) line.close();
    events.step(line.end());
    if (steps % (1 << 16) != 0) continue;
    if (o.cancelled && o.cancelled()) return base::fail(errc::cancelled, "interrupted");
    if (o.progress && size > 0) o.progress(static_cast<double>(trace.bytes_read()) / size);
  }
  return d.status;
}

void add_part(run_result& r, driver& d, memory_system& m, const std::string& name,
              const memory_part& part, const std::pair<double, double>& before = {}) {
  r.add("run.requests", static_cast<double>(d.requests) - before.first);
  r.add("run.stalled_cycles", static_cast<double>(d.stalled_cycles) - before.second, "cycles");
  add_memory(r, name, m, part);
}

result<run_result> run_trace(const machine_config& machine, const memory_run_options& o) {
  if (o.memory != "nonvolatile_memory" && o.memory != "volatile_memory")
    return base::fail(errc::invalid_argument, "there is no memory \"" + o.memory +
                                                  "\"; choose nonvolatile_memory or "
                                                  "volatile_memory");
  auto trace = request_trace::open(o.format, o.trace);
  if (!trace) return std::unexpected(trace.error());
  event_queue events;
  auto m = make_memory(
      events, o.memory == "volatile_memory" ? machine.volatile_memory : machine.nonvolatile_memory);
  if (!m) return std::unexpected(m.error());
  std::unique_ptr<command_trace> written;
  if (!o.commands.empty()) {
    auto opened = command_trace::open(o.commands, **m);
    if (!opened) return std::unexpected(opened.error());
    written = std::move(*opened);
  }
  driver d(events, **m, **trace, o.reads_in_flight);
  memory_part epoch;
  std::pair<double, double> before;
  epochs line(o.timeline_interval, [&](picoseconds until) {
    run_result part;
    epoch.until = until;
    add_part(part, d, **m, o.memory, epoch, before);
    epoch = {(*m)->statistics(until), until, until};
    before = {d.requests, d.stalled_cycles};
    return std::move(part.quantities);
  });
  d.start();
  if (auto ran = run_to_end(events, d, **trace, line, o); !ran) return std::unexpected(ran.error());
  run_result r;
  r.machine = machine;
  r.label = o.memory;
  r.tape = std::filesystem::path(o.trace).filename();
  r.simulated = d.finished;
  auto epochs_made = line.finish(d.finished);
  if (!epochs_made) return std::unexpected(epochs_made.error());
  r.line = std::move(*epochs_made);
  const memory_part whole{{}, 0, std::max(d.finished, events.now())};
  add_part(r, d, **m, o.memory, whole);
  add_wear(r, o.memory, **m, whole.until);
  add_histograms(r, o.memory, **m, whole);
  if (written)
    if (auto ended = written->finish(); !ended) return std::unexpected(ended.error());
  return r;
}

}  // namespace

result<run_result> run_memory(const machine_config& machine, const memory_run_options& o) {
  return with_plugins(machine, [&] { return run_trace(machine, o); });
}

}  // namespace stele::sim
