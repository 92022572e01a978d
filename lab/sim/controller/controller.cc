// Creates a memory from its configuration. Keeps the state that its channels share: the order of
// the stream, retention of logs, wear.
#include <base/check.h>
#include <sim/controller/controller.h>

#include <sstream>
#include <utility>

namespace stele::sim {
namespace {

result<void> check_queues(const memory_config& c) {
  if (c.read_queue_entries == 0 || c.write_queue_entries == 0)
    return base::fail(errc::invalid_argument,
                      "memory: a queue of 0 entries admits nothing; give read_queue_entries and "
                      "write_queue_entries of at least 1");
  if (!(c.write_drain_to >= 0 && c.write_drain_to < c.write_drain_from && c.write_drain_from <= 1))
    return base::fail(errc::invalid_argument,
                      "memory: write_drain_to must be below write_drain_from, both from 0 to 1");
  if (c.ranks * c.bank_groups * c.banks > max_banks)
    return base::fail(errc::invalid_argument,
                      "memory: " + std::to_string(c.ranks * c.bank_groups * c.banks) +
                          " banks in a channel; at most " + std::to_string(max_banks) +
                          ", use more channels");
  return {};
}

result<void> check_times(const memory_config& c) {
  if (c.refresh != "all-bank" && c.refresh != "same-bank")
    return base::fail(errc::invalid_argument, "memory: there is no refresh \"" + c.refresh +
                                                  "\"; use all-bank or same-bank");
  for (const double t : {c.read_latency_ns, c.write_latency_ns, c.write_pulse_ns,
                         c.refresh_interval_ns, c.refresh_time_ns})
    if (!(t >= 0 && t < 1e9))
      return base::fail(
          errc::invalid_argument,
          "memory: a latency or refresh time is negative or above a second; give nanoseconds");
  return {};
}

// Times are whole picoseconds, and a time that is given must not become none.
result<void> check_rounding(const memory_config& given) {
  if (given.clock_ns > 0 && from_ns(given.clock_ns) == 0)
    return base::fail(errc::invalid_argument,
                      "memory: clock_ns is less than a picosecond; give a longer cycle, or 0 for "
                      "times as they are");
  if (given.refresh_interval_ns > 0 && from_ns(in_cycles(given).refresh_interval_ns) == 0)
    return base::fail(errc::invalid_argument,
                      "memory: refresh_interval_ns is less than a cycle or a picosecond; give a "
                      "longer one, or 0 for no refresh");
  if (given.age_limit_ns > 0 && from_ns(given.age_limit_ns) == 0)
    return base::fail(errc::invalid_argument,
                      "memory: age_limit_ns is less than a picosecond; give a longer one, or 0 for "
                      "no limit");
  return {};
}

struct parts {
  memory_config config;  // in cycles
  mapping places;
  timing_table timing;
  const scheduler_kind* kind;
  write_pulses pulses;
};

result<parts> parts_of(const memory_config& given) {
  if (auto sound = check_rounding(given); !sound) return std::unexpected(sound.error());
  const memory_config c = in_cycles(given);
  const auto places = mapping::parse(c);
  if (!places) return std::unexpected(places.error());
  for (auto check : {check_queues, check_times, check_link})
    if (auto sound = check(c); !sound) return std::unexpected(sound.error());
  const auto timing = timing_table::compile(c);
  if (!timing) return std::unexpected(timing.error());
  const auto kind = find_scheduler(c.scheduler);
  if (!kind) return std::unexpected(kind.error());
  const auto pulses = pulses_of(c);
  if (!pulses) return std::unexpected(pulses.error());
  return parts{c, *places, *timing, *kind, *pulses};
}

}  // namespace

result<std::unique_ptr<memory_system>> make_memory(event_queue& events, const memory_config& given,
                                                   controller_mutant mutant) {
  const auto p = parts_of(given);
  if (!p) return std::unexpected(p.error());
  std::unique_ptr<memory_system> m(new memory_system(p->config, p->places, mutant));
  for (unsigned i = 0; i < p->config.controllers * p->config.channels; ++i)
    m->channels_.push_back(std::make_unique<channel>(channel_context{
        events, m->config_, p->timing, *p->kind, p->pulses, m->stream_, *m, i, mutant}));
  if (!m->channels_.back()->has_scheduler())
    return base::fail(errc::invalid_argument, "memory: the plug-in " +
                                                  schedulers().plugin_of(given.scheduler) +
                                                  " makes no scheduler \"" + given.scheduler +
                                                  "\"; let its make return one");
  cxl_device& device = *m;
  if (p->config.cxl_flit_bytes != 0)
    m->link_ = std::make_unique<cxl_link>(events, m->config_, device);
  return m;
}

result<void> check_memory(const memory_config& c) {
  if (auto made = parts_of(c); !made) return std::unexpected(made.error());
  return {};
}

void memory_system::submit(picoseconds now, const request& r) {
  link_ ? link_->submit(now, r) : deliver(now, r);
}

void memory_system::barrier(picoseconds now, std::uint16_t) {
  link_ ? link_->barrier(now) : deliver_barrier();
}

void memory_system::deliver(picoseconds now, const request& r) {
  const device_address p = mapping_.locate(r.address);
  channels_[p.channel]->submit(now, r, p);
}

bool memory_system::has_room(const request& r) const noexcept {
  if (link_) return link_->has_room();
  const device_address p = mapping_.locate(r.address);
  return channels_[p.channel]->has_room_for(r.kind, p.bank);
}

std::size_t memory_system::outstanding() const noexcept {
  if (link_) return link_->outstanding();
  std::size_t all = 0;
  for (const auto& c : channels_) all += c->outstanding();
  return all;
}

void memory_system::order_changed(picoseconds now) {
  for (const auto& c : channels_) c->order_changed(now);
}

void memory_system::observe_commands(command_observer* observer) noexcept {
  for (const auto& c : channels_) c->observe(observer);
}

// --- logs ---

result<void> memory_system::set_ranges(const std::vector<log_range>& logs) {
  if (outstanding())
    return base::fail(
        errc::in_use,
        "memory: log ranges change while requests are unfinished; let them end first");
  auto ranges = log_ranges::of(logs);
  if (!ranges) return std::unexpected(ranges.error());
  stream_ = epoch_tracker(std::move(*ranges));
  log_lines_.clear();
  for (const log_range& l : logs)
    for (const auto& [begin, end] :
         {std::pair{l.records_begin, l.records_end}, std::pair{l.commit_begin, l.commit_end}})
      log_lines_.push_back(
          {begin, std::vector<last_write>((end - begin) / line_bytes), never, never});
  return {};
}

const memory_system::last_write* memory_system::written_at(std::uint64_t address) const noexcept {
  const write_origin origin = stream_.ranges().classify(address);
  if (origin.what == write_class::data) return nullptr;
  const log_lines& lines = log_lines_[2 * origin.log + (origin.what == write_class::commit_record)];
  return &lines.written[(address - lines.begin) / line_bytes];
}

// That the write of a log's line had.
double memory_system::retention_s(const last_write& w) const noexcept {
  return w.truncation && config_.truncation_retention == "data" ? config_.data_retention_s
                                                                : config_.log_retention_s;
}

bool memory_system::expired(std::uint64_t address, picoseconds now) const noexcept {
  const last_write* written = written_at(address);
  if (config_.technology != "pcm" || !written || written->at == never ||
      mutant_ == controller_mutant::expired_logs_trusted)
    return false;
  return static_cast<double>(now - written->at) > retention_s(*written) * 1e12;
}

result<picoseconds> memory_system::trusted_log_line(std::uint64_t address, picoseconds now) const {
  const last_write* written = written_at(address);
  const std::string line = "memory: the line at " + std::to_string(address);
  if (!written)
    return base::fail(errc::invalid_argument,
                      line + " is in no log's range; ask for a log's lines only");
  if (written->at == never)
    return base::fail(errc::not_found, line + " of a log was never written");
  if (!expired(address, now)) return written->at;
  std::ostringstream why;
  why << line << " of a log was written " << static_cast<double>(now - written->at) * 1e-12
      << " s ago and lasts " << retention_s(*written)
      << " s; truncate sooner or write the log with a longer retention";
  return base::fail(errc::corrupt, why.str());
}

result<std::size_t> memory_system::trusted_logs(picoseconds now) const {
  std::size_t relied_on = 0;
  for (std::size_t i = 0; i < log_lines_.size(); i += 2) {
    const log_lines &records = log_lines_[i], &commits = log_lines_[i + 1];
    const bool all = commits.written.empty();
    for (const log_lines* lines : {&records, &commits})
      for (std::size_t n = 0; n < lines->written.size(); ++n) {
        const picoseconds written = lines->written[n].at;
        // A record after the last write to the commit line is not committed.
        const bool committed = commits.last != never && written <= commits.last &&
                               (commits.before_last == never || written > commits.before_last);
        if (written == never || (lines == &records && !all && !committed)) continue;
        if (auto trusted = trusted_log_line(lines->begin + n * line_bytes, now); !trusted)
          return std::unexpected(trusted.error());
        ++relied_on;
      }
  }
  return relied_on;
}

void memory_system::persisted(const write_report& report) {
  if (const write_origin origin = report.origin; origin.what != write_class::data) {
    log_lines& lines = log_lines_[2 * origin.log + (origin.what == write_class::commit_record)];
    lines.before_last = std::exchange(lines.last, report.persisted);
    lines.written[(report.req.address - lines.begin) / line_bytes] = {report.persisted,
                                                                      report.truncation};
  }
  if (config_.endurance_writes != 0) count_wear(report);
  if (!observer_) return;
  if (!link_) return observer_->persisted(report);
  write_report as_submitted = report;
  as_submitted.req = link_->submitted(report.req.token);
  observer_->persisted(as_submitted);
}

std::size_t memory_system::longest_queue(access kind, picoseconds from) const noexcept {
  std::size_t longest = 0;
  for (const auto& c : channels_) longest = std::max(longest, c->longest_queue(kind, from));
  return longest;
}

void memory_system::count_wear(const write_report& report) {
  const write_class what = report.origin.what;
  ++(what == write_class::data            ? wear_.data
     : what == write_class::commit_record ? wear_.commit_lines
                                          : wear_.log_records);
  wear_.truncations += report.truncation;
  const std::uint64_t writes = ++line_writes_[report.req.address];
  wear_.lines += writes == 1;
  if (writes > wear_.most_writes)
    wear_.most_writes = writes, wear_.most_worn_line = report.req.address;
}

memory_statistics memory_system::statistics(picoseconds now) {
  memory_statistics all;
  for (const auto& c : channels_) all.add(c->statistics(now));
  if (link_) link_->add_to(all);
  return all;
}

}  // namespace stele::sim
