// Runs a machine, and collects its counts.
#include <sim/checkpoint.h>
#include <sim/config_file.h>
#include <sim/controller/command_trace.h>
#include <sim/epochs.h>
#include <sim/machine.h>
#include <sim/memory_result.h>
#include <sim/plugins.h>
#include <sim/simulation.h>

#include <base/check.h>
#include <algorithm>
#include <array>
#include <filesystem>

namespace stele::sim {

namespace {

void add_counts(std::vector<quantity>& q, const std::string& part,
                std::initializer_list<std::pair<const char*, std::uint64_t>> counts,
                const char* unit = "") {
  for (const auto& [what, value] : counts)
    q.push_back({part + "." + what, static_cast<double>(value), unit});
}

// Those of parts that a machine may do without.
void add_optional(std::vector<quantity>& q, const simulation& s) {
  const hierarchy_counts& c = s.caches->counts;
  if (s.machine.prefetch.kind != "none")
    add_counts(q, "prefetch",
               {{"issued", c.prefetches_issued},
                {"dropped", c.prefetches_dropped},
                {"useful", c.prefetches_useful},
                {"late", c.prefetches_late},
                {"useless", c.prefetches_useless}},
               "lines");
  if (!s.tlbs.empty()) {
    tlb_counts all;
    for (const auto& of_core : s.tlbs) all += of_core->counts;
    add_counts(q, "tlb",
               {{"l1_hits", all.l1_hits},
                {"l2_hits", all.l2_hits},
                {"misses", all.misses},
                {"walks", all.walks},
                {"walk_loads", all.walk_loads}});
    q.push_back({"tlb.walk_time", static_cast<double>(all.walk_time) / 1000, "ns"});
  }
}

// The counts that add up over a run, with path and unit.
std::vector<quantity> totals_of(simulation& s) {
  thread_counts t;
  for (const auto& thread : s.threads) t += thread->counts;
  const hierarchy_counts& c = s.caches->counts;
  const auto n = [](std::uint64_t v) { return static_cast<double>(v); };
  std::vector<quantity> q = {
      {"run.transactions", n(t.commits), ""},
      {"run.operations", n(t.operations), ""},
      {"run.events", n(t.events), ""},
      {"run.instructions", n(t.instructions), ""},
      {"run.loads", n(t.loads), ""},
      {"run.stores", n(t.stores), ""},
      {"run.commit_time", n(t.commit_time) / 1000, "ns"},
      {"isolation.attempts_lost", n(t.aborts), ""},
      {"isolation.conflicts", n(s.isolation->counts.conflicts), ""},
      {"isolation.displacements", n(s.isolation->counts.capacity_aborts), ""},
      {"isolation.lock_taken", n(s.isolation->counts.lock_taken), ""},
      {"l1.hits", n(c.l1_hits), ""},
      {"l1.misses", n(c.l1_misses), ""},
      {"l1.reads", n(t.loads + c.l1_newer_lines), ""},
      {"l1.writes", n(t.stores + c.l1_fills), ""},
      {"l2.hits", n(c.l2_hits), ""},
      {"l2.misses", n(c.l2_misses), ""},
      {"l2.reads", n(c.l2_reads), ""},
      {"l2.writes", n(c.l2_writes), ""},
      {"l3.hits", n(c.l3_hits), ""},
      {"l3.misses", n(c.l3_misses), ""},
      {"l3.reads", n(c.l3_reads), ""},
      {"l3.writes", n(c.l3_writes + c.l3_fills), ""},
      {"l3.written_back_to", n(c.l3_writes), "lines"},
      {"coherence.invalidations", n(c.invalidations), ""},
      {"coherence.transfers", n(c.transfers), ""},
      {"coherence.flushed", n(c.flushed_lines), "lines"},
      {"coherence.refusals", n(c.nacks), ""},
      {"coherence.queue_waits", n(c.queue_waits), ""}};
  add_optional(q, s);
  if (s.kiln_design != nullptr) {
    const kiln_counts& k = s.kiln_design->counts;
    add_counts(q, "kiln",
               {{"transactions", k.transactions},
                {"lines", k.lines},
                {"arrived_before_end", k.arrived_before_end},
                {"queue_evictions", k.queue_evictions},
                {"queue_waits", k.queue_waits},
                {"queue_aborts", k.queue_aborts},
                {"unqueued_lines", k.unqueued_lines},
                {"tag_scans", k.tag_scans},
                {"superseded_kept", k.superseded_kept},
                {"superseded_written", k.superseded_written},
                {"overflows", k.overflows},
                {"overflowed_lines", k.overflowed_lines},
                {"overflowed_transactions", k.overflowed_transactions},
                {"overflow_aborts", k.overflow_aborts},
                {"waits_for_older", k.waits_for_older}});
    q.push_back({"kiln.commit_latency", n(k.commit_latency) / 1000, "ns"});
  }
  return q;
}

double value_of(const std::vector<quantity>& q, std::string_view path) {
  const auto found = std::ranges::find(q, path, &quantity::path);
  return found == q.end() ? 0 : found->value;
}

// Rates, ratios and energies that follow from the totals. memory: the time in which the nonvolatile
// memory moved its bytes; it writes on when the last transaction has ended. counted: the time of
// the totals, in which all their energy was spent.
void add_derived(run_result& r, picoseconds memory, picoseconds counted) {
  const std::vector<quantity> q = r.quantities;
  const auto of = [&](std::string_view path) { return value_of(q, path); };
  const auto share = [](double part, double rest) {
    return part + rest == 0 ? 0 : part / (part + rest);
  };
  const double ns = static_cast<double>(r.simulated) / 1000;
  const double counted_ns = static_cast<double>(counted) / 1000;
  const machine_config& m = r.machine;
  const double per_instruction_nj =
      m.processor_dynamic_peak_w / (m.cores.count * m.cores.clock_ghz * m.cores.issue_width);
  const double caches_nj =
      of("l1.reads") * m.l1.read_energy_nj + of("l1.writes") * m.l1.write_energy_nj +
      of("l2.reads") * m.l2.read_energy_nj + of("l2.writes") * m.l2.write_energy_nj +
      of("l3.reads") * m.l3.read_energy_nj + of("l3.writes") * m.l3.write_energy_nj;
  const double processor_nj = of("run.instructions") * per_instruction_nj + caches_nj;
  r.add("rate.transactions", ns == 0 ? 0 : of("run.transactions") / ns * 1e9, "1/s");
  r.add("rate.operations", ns == 0 ? 0 : of("run.operations") / ns * 1e9, "1/s");
  r.add("rate.instructions", ns == 0 ? 0 : of("run.instructions") / ns, "1/ns");
  r.add("rate.nonvolatile_memory",
        memory == 0 ? 0 : of("nonvolatile_memory.bytes") / (static_cast<double>(memory) / 1000),
        "GB/s");
  r.add("ratio.l1_hits", share(of("l1.hits"), of("l1.misses")));
  r.add("ratio.l2_hits", share(of("l2.hits"), of("l2.misses")));
  r.add("ratio.l3_hits", share(of("l3.hits"), of("l3.misses")));
  r.add("energy.caches", caches_nj, "nJ");
  r.add("energy.processor", processor_nj, "nJ");
  r.add("energy.memory", of("nonvolatile_memory.energy") + of("volatile_memory.energy"), "nJ");
  r.add("power.processor", counted == 0 ? 0 : processor_nj / counted_ns, "W");
  r.add("power.memory", counted == 0 ? 0 : value_of(r.quantities, "energy.memory") / counted_ns,
        "W");
}

// When the nonvolatile memory ended its last write.
struct last_write final : write_observer {
  picoseconds at = 0;
  void persisted(const write_report& report) override { at = report.persisted; }
};

// What came before a part of a run.
struct baseline {
  std::vector<quantity> totals;
  picoseconds at = 0;
  memory_statistics nonvolatile, volatile_memory;
};

baseline baseline_of(simulation& s, picoseconds now) {
  return {totals_of(s), now, s.memories->nonvolatile->statistics(now),
          s.memories->volatile_memory->statistics(now)};
}

void baseline_state(archive& a, baseline& b, simulation& s) {
  bool there = !b.totals.empty();
  a(there, b.at);
  if (!there) return;
  if (a.reads()) b.totals = totals_of(s);
  for (quantity& q : b.totals) a(q.value);
  for (const auto& [before, memory] : {std::pair{&b.nonvolatile, s.memories->nonvolatile.get()},
                                       {&b.volatile_memory, s.memories->volatile_memory.get()}}) {
    before->bank_writes.resize(memory->banks());
    a(*before);
  }
}

// Adds the quantities of the part from `from` until now; memory: see add_derived. Precondition:
// r.machine and r.simulated are set.
void add_part(run_result& r, simulation& s, const baseline& from, picoseconds now,
              picoseconds memory) {
  r.quantities = totals_of(s);
  for (std::size_t i = 0; i < from.totals.size(); ++i)
    r.quantities[i].value -= from.totals[i].value;
  add_memory(r, "nonvolatile_memory", *s.memories->nonvolatile, {from.nonvolatile, from.at, now});
  add_memory(r, "volatile_memory", *s.memories->volatile_memory,
             {from.volatile_memory, from.at, now});
  add_derived(r, memory, now - from.at);
}

void add_kiln_states(run_result& r, const simulation& s) {
  const kiln& k = *s.kiln_design;
  r.add("kiln.pending_at_most",
        static_cast<double>(k.counts.max_pending));  // a maximum, not a sum
  std::array<std::uint64_t, 3> lines{};
  for (cache_array::frame p = 0; p < s.caches->shared().frames(); ++p)
    ++lines[static_cast<std::size_t>(k.state_of(p))];
  r.add("kiln.free_lines", static_cast<double>(lines[0]), "lines");
  r.add("kiln.persistent_lines", static_cast<double>(lines[2]), "lines");
  r.add("kiln.tag_overhead", 100.0 * tag_bits(s.machine) / (64 * 8), "%");  // of a line
}

using command_files = std::vector<std::unique_ptr<command_trace>>;

// A plug-in's part without a visit_state() makes a checkpoint impossible.
result<> refusal_of(const machine_config& m, const archive& a) {
  if (a.refused().empty() && a.sound()) return {};
  std::string part = "a part (" + a.fault() + ")";
  if (!a.refused().empty()) {
    part = "the " + a.refused();
    for (const plugged_part& p : plugged_parts(m))
      if (p.what == a.refused()) part += " \"" + p.name + "\" of the plug-in " + p.plugin;
  }
  return base::fail(errc::unsupported,
                    "there are no checkpoints of this machine: " + part +
                        " has no visit_state(); give it one (sim/archive.h), or run "
                        "without --checkpoint");
}

// None without a path for them.
result<command_files> open_commands(const hybrid_memory& m, const run_options& o) {
  command_files files;
  for (const auto& [name, memory] : {std::pair{".nonvolatile_memory", m.nonvolatile.get()},
                                     {".volatile_memory", m.volatile_memory.get()}}) {
    if (o.commands.empty()) break;
    auto opened = (o.resume.empty() ? command_trace::open : command_trace::reopen)(
        o.commands + name, *memory);
    if (!opened) return std::unexpected(opened.error());
    files.push_back(std::move(*opened));
  }
  return files;
}

// One run of a tape. What changes in it, and in no other part, is in visit_state().
class tape_run {
 public:
  tape_run(const machine_config& machine, const run_options& options);
  result<run_result> run();

 private:
  result<> make();
  result<> resume();
  result<> run_to_end();
  result<> save();
  void plan_checkpoint(picoseconds next);
  void checkpoint_if_due(picoseconds next);
  result<> cancel();
  result<run_result> collect();
  void committed(picoseconds now);
  std::vector<quantity> end_epoch(picoseconds until);
  void visit_state(archive& a);

  const machine_config& machine_;
  const run_options& options_;
  checkpoint_subject subject_;
  std::unique_ptr<simulation> simulation_;
  command_files files_;
  baseline from_, epoch_begin_;
  epochs line_;
  std::uint64_t commits_ = 0;
  picoseconds last_commit_ = 0;
  last_write memory_end_;
  picoseconds next_checkpoint_ = never;
};

tape_run::tape_run(const machine_config& machine, const run_options& options)
    : machine_(machine),
      options_(options),
      line_(options.timeline_interval, [this](picoseconds until) { return end_epoch(until); }) {}

std::vector<quantity> tape_run::end_epoch(picoseconds until) {
  run_result part;
  part.machine = machine_;
  part.simulated = until - epoch_begin_.at;
  add_part(part, *simulation_, epoch_begin_, until, part.simulated);
  epoch_begin_ = baseline_of(*simulation_, until);
  return std::move(part.quantities);
}

void tape_run::committed(picoseconds now) {
  last_commit_ = now;
  if (++commits_ != options_.warm_up_transactions) return;
  from_ = epoch_begin_ = baseline_of(*simulation_, now);
  line_.restart(now);
}

result<> tape_run::make() {
  auto tape = feed::open(options_.tape, machine_.cores.count * machine_.cores.threads_per_core);
  if (!tape) return std::unexpected(tape.error());
  simulation::options how;
  how.seed = options_.seed;
  how.committed = [this](unsigned, picoseconds now) { committed(now); };
  auto made = simulation::make(machine_, std::move(*tape), std::move(how));
  if (!made) return std::unexpected(made.error());
  simulation_ = std::move(*made);
  simulation_->memories->nonvolatile->observe(&memory_end_);
  if (options_.checkpoint.empty() && options_.resume.empty()) return {};
  subject_ = {toml_of(machine_),
              std::filesystem::absolute(options_.tape).string(),
              0,
              0,
              options_.seed,
              options_.warm_up_transactions,
              options_.timeline_interval,
              !options_.commands.empty(),
              0};
  if (auto known = identify_tape(subject_); !known) return known;
  archive trial;  // before a long run, not after it
  simulation_->visit_state(trial);
  return refusal_of(machine_, trial);
}

// --- checkpoints ---

void tape_run::visit_state(archive& a) {
  simulation_->visit_state(a);
  a(commits_, last_commit_, memory_end_.at);
  for (baseline* b : {&from_, &epoch_begin_}) baseline_state(a, *b, *simulation_);
  a(line_);
  for (const auto& file : files_) a(*file);
}

result<> tape_run::resume() {
  const auto stored = read_checkpoint(options_.resume);
  if (!stored) return std::unexpected(stored.error());
  if (auto same = check_same_run(options_.resume, stored->subject, subject_); !same) return same;
  archive a(stored->state);
  visit_state(a);
  a.require(a.left() == 0, "something follows the state");
  a.run_checks();
  if (!a.sound())
    return base::fail(errc::corrupt, "the checkpoint " + options_.resume +
                                         " contradicts itself: " + a.fault() +
                                         "; take an earlier one, or start the run anew");
  for (const auto& file : files_)
    if (auto on = file->go_on(); !on) return on;
  return {};
}

result<> tape_run::save() {
  for (const auto& file : files_)
    if (auto synced = file->sync(); !synced) return synced;
  archive a;
  visit_state(a);
  if (!a.sound())  // after a resume from a crafted file
    return base::fail(errc::corrupt, "the run has no sound state for a checkpoint: " + a.fault() +
                                         "; start it anew");
  subject_.at = simulation_->events.now();
  if (auto written = write_checkpoint(options_.checkpoint, subject_, a.bytes()); !written)
    return written;
  for (const auto& file : files_) file->keep();
  return {};
}

// The next checkpoint, now that the next event comes at `next`.
void tape_run::plan_checkpoint(picoseconds next) {
  const picoseconds every = options_.checkpoint_every, at = options_.checkpoint_at;
  next_checkpoint_ = every != 0   ? std::max((next + every - 1) / every, picoseconds{1}) * every
                     : next <= at ? at
                                  : never;
}

void tape_run::checkpoint_if_due(picoseconds next) {
  if (next <= next_checkpoint_) return;
  const auto written = save();
  if (options_.checkpointed)
    options_.checkpointed(written ? result<picoseconds>(subject_.at)
                                  : std::unexpected(written.error()));
  plan_checkpoint(next);
}

result<> tape_run::cancel() {
  if (!options_.checkpoint.empty())
    if (auto saved = save(); !saved) return saved;
  return base::fail(errc::cancelled, "interrupted");
}

// --- the run ---

result<> tape_run::run_to_end() {
  simulation& s = *simulation_;
  std::error_code none;
  const double size = static_cast<double>(std::filesystem::file_size(options_.tape, none));
  for (;;) {
    if (!s.advance(1 << 16, std::min(line_.end(), next_checkpoint_))) {
      const picoseconds next = s.events.next();
      if (next > latest) break;  // no event is left, or none may be
      checkpoint_if_due(next);
      if (line_.exceeded_at(next)) return std::unexpected(line_.finish(next).error());
      if (next > line_.end()) line_.close();  // else it was restarted meanwhile
    }
    if (options_.cancelled && options_.cancelled()) return cancel();
    if (options_.progress && size > 0)
      options_.progress(static_cast<double>(s.tape.bytes()) / size);
  }
  return s.finish();
}

result<run_result> tape_run::run() {
  if (auto made = make(); !made) return std::unexpected(made.error());
  auto files = open_commands(*simulation_->memories, options_);
  if (!files) return std::unexpected(files.error());
  files_ = std::move(*files);
  if (!options_.resume.empty())
    if (auto resumed = resume(); !resumed) return std::unexpected(resumed.error());
  if (!options_.checkpoint.empty()) plan_checkpoint(simulation_->events.next());
  if (auto ran = run_to_end(); !ran) return std::unexpected(ran.error());
  if (commits_ < options_.warm_up_transactions)
    return base::fail(errc::invalid_argument, "the tape has " + std::to_string(commits_) +
                                                  " transactions, fewer than the " +
                                                  std::to_string(options_.warm_up_transactions) +
                                                  " that are to warm the machine up");
  return collect();
}

result<run_result> tape_run::collect() {
  simulation& s = *simulation_;
  run_result r;
  r.machine = machine_;
  r.tape = std::filesystem::path(options_.tape).filename();
  r.label = machine_.design.name;
  for (const auto& t : s.threads) r.simulated = std::max(r.simulated, t->time());
  // Threads run ahead of the events, and the memory ends its work after them.
  const picoseconds end = std::max(r.simulated, s.events.now());
  const picoseconds memory = std::max(r.simulated, memory_end_.at) - from_.at;
  // Where fences return at once a transaction is durable later than it ends, so such a run lasts
  // until all writes are persistent.
  const bool commits_are_durable =
      machine_.design.barriers_wait ||
      !(*find_scheduler(machine_.nonvolatile_memory.scheduler))->fences_return;
  if (commits_are_durable && value_of(totals_of(s), "run.transactions") != 0)
    r.simulated = last_commit_;
  r.simulated = std::max(r.simulated, from_.at) - from_.at;
  auto epochs_made = line_.finish(end);
  if (!epochs_made) return std::unexpected(epochs_made.error());
  r.line = std::move(*epochs_made);
  add_part(r, s, from_, end, memory);
  for (const auto& [name, m, before] :
       {std::tuple{"nonvolatile_memory", s.memories->nonvolatile.get(), &from_.nonvolatile},
        {"volatile_memory", s.memories->volatile_memory.get(), &from_.volatile_memory}})
    add_histograms(r, name, *m, {*before, from_.at, end});
  add_wear(r, "nonvolatile_memory", *s.memories->nonvolatile, end);
  add_wear(r, "volatile_memory", *s.memories->volatile_memory, end);
  if (s.kiln_design != nullptr) add_kiln_states(r, s);
  for (const auto& file : files_)
    if (auto ended = file->finish(); !ended) return std::unexpected(ended.error());
  return r;
}

}  // namespace

result<run_result> run_machine(const machine_config& machine, const run_options& options) {
  const auto run = [&] { return tape_run(machine, options).run(); };
  if (options.resume.empty()) return with_plugins(machine, run);
  // What a crafted file can still make the machine do, besides a wrong result.
  try {
    return with_plugins(machine, run);
  } catch (const std::exception& e) {
    return base::fail(errc::corrupt, "the run that was resumed from " + options.resume +
                                         " cannot go on (" + e.what() +
                                         "): take an earlier "
                                         "checkpoint, or start the run anew");
  }
}

}  // namespace stele::sim
