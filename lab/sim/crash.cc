// Tracks contents, compares recovered states with the oracle, and crashes runs.
#include <base/check.h>
#include <base/rng.h>
#include <sim/crash.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace stele::sim {

namespace {

using content = std::array<std::byte, 64>;

std::uint64_t digest(const content& c) noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < c.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, c.data() + i, 8);
    sum = base::mix(sum ^ word);
  }
  return sum;
}

// The versions of each line, and a digest of the state after each transaction.
class content_oracle final : public store_observer {
 public:
  explicit content_oracle(unsigned threads) : open_(threads) { versions_.emplace_back(); }

  void attach(hierarchy& caches) noexcept { caches_ = &caches; }

  void image(std::uint64_t offset, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 64) {
      content c{};
      std::memcpy(c.data(), bytes.data() + at, std::min<std::size_t>(64, bytes.size() - at));
      versions_.push_back(c);
      initial_[(offset + at) / 64] = versions_.size() - 1;
      caches_->set_memory_value((offset + at) / 64, versions_.size() - 1);
    }
  }

  void stored(unsigned thread, unsigned core, const tape_item& what, std::uint64_t line) override {
    if (is_volatile_line(line)) return;
    const std::uint64_t old = caches_->value_seen(core, line);
    content c = versions_[old];
    const std::uint64_t begin = std::max(what.record.address, line * 64),
                        end = std::min(what.record.address + what.record.length, line * 64 + 64);
    if (what.bytes == nullptr)
      without_bytes_ = true;
    else
      std::memcpy(c.data() + begin % 64, what.bytes + (begin - what.record.address), end - begin);
    versions_.push_back(c);
    caches_->value_stored(core, line, versions_.size() - 1);
    auto& mine = open_[thread];
    const auto known = std::ranges::find(mine, line, &change::line);
    if (known == mine.end())
      mine.push_back({line, old, versions_.size() - 1});
    else
      known->now = versions_.size() - 1;
  }
  void aborted(unsigned thread, unsigned core) override {
    for (const change& c : open_[thread]) caches_->roll_back_store(core, c.line, c.before, false);
    open_[thread].clear();
  }
  void ended(unsigned thread, const line_set&) override {
    std::uint64_t sum = digests_.back();
    for (const change& c : open_[thread]) {
      std::uint64_t& now = current_[c.line];
      sum += line_digest(c.line, c.now) - line_digest(c.line, now != 0 ? now : initial(c.line));
      now = c.now;
    }
    open_[thread].clear();
    digests_.push_back(sum);
  }

  bool without_bytes() const noexcept { return without_bytes_; }
  std::uint64_t transactions() const noexcept { return digests_.size() - 1; }

  // The number of transactions after which the recovered state is the right one; -1 when no number
  // from `from` to `to` fits.
  std::int64_t recovered_prefix(const nonvolatile_state& s, std::uint64_t from, std::uint64_t to,
                                base::rng& random) {
    const std::uint64_t sum = digest_of(s, random);
    for (std::uint64_t n = to + 1; n-- > from;)
      if (digests_[n] == sum) return static_cast<std::int64_t>(n);
    return -1;
  }

 private:
  struct change {
    std::uint64_t line, before, now;
  };

  std::uint64_t initial(std::uint64_t line) const {
    const auto found = initial_.find(line);
    return found == initial_.end() ? 0 : found->second;
  }
  std::uint64_t line_digest(std::uint64_t line, const content& c) const noexcept {
    return base::mix(line * 3 + 1) * (digest(c) | 1);
  }
  std::uint64_t line_digest(std::uint64_t line, std::uint64_t version) const noexcept {
    return line_digest(line, versions_[version]);
  }

  std::uint64_t digest_of(const nonvolatile_state& s, base::rng& random) const {
    std::uint64_t sum = 0;
    for (const auto& [line, version] : s.lines)
      if (line < logs_end &&
          std::ranges::find(s.torn, line, &std::pair<std::uint64_t, std::uint64_t>::first) ==
              s.torn.end())
        sum += line_digest(line, version) - line_digest(line, initial(line));
    for (const auto& [line, version] : s.torn) {
      const auto old = s.lines.find(line);
      content mixed = versions_[old == s.lines.end() ? initial(line) : old->second];
      for (std::size_t word = 0; word < 8; ++word)
        if (random() % 2 == 0)
          std::memcpy(mixed.data() + 8 * word, versions_[version].data() + 8 * word, 8);
      sum += line_digest(line, mixed) - line_digest(line, initial(line));
    }
    return sum;
  }

  static constexpr std::uint64_t logs_end = std::uint64_t{1}
                                            << 30;  // data lines are below, copies and tables above
  hierarchy* caches_ = nullptr;
  std::vector<content> versions_;  // 0: zeroes
  std::unordered_map<std::uint64_t, std::uint64_t> initial_, current_;
  std::vector<std::vector<change>> open_;
  std::vector<std::uint64_t> digests_{0};
  bool without_bytes_ = false;
};

class crash_run {
 public:
  crash_run(const crash_options& o, unsigned threads)
      : options_(o), random_(o.seed), oracle_(threads) {}

  result<crash_report> run(const machine_config& machine, feed tape) {
    simulation::options how;
    how.seed = options_.seed;
    how.mutant = options_.mutant;
    how.observer = &oracle_;
    how.track_values = true;
    auto made = simulation::make(machine, std::move(tape), std::move(how));
    if (!made) return std::unexpected(made.error());
    simulation& s = **made;
    if (s.kiln_design == nullptr || machine.design.isolation == "none")
      return base::fail(
          errc::invalid_argument,
          "crashes are of design kiln with isolation htm or mutex; this machine has " +
              machine.design.name + " and " + machine.design.isolation);
    oracle_.attach(*s.caches);
    s.tape.on_image = [this](std::uint64_t offset, std::span<const std::byte> bytes) {
      oracle_.image(offset, bytes);
    };
    s.kiln_design->committed = [this](std::uint64_t n, picoseconds) {
      acknowledged_ = std::max(acknowledged_, n + 1);
    };
    const auto ran = options_.at != never ? run_to(s, options_.at) : run_through(s);
    if (!ran) return std::unexpected(ran.error());
    report_.transactions = oracle_.transactions();
    report_.done = s.kiln_design->counts;
    return report_;
  }

 private:
  result<> run_to(simulation& s, picoseconds at) {
    if (s.advance(~std::size_t{0}, at)) return {};
    if (!s.tape.status()) return std::unexpected(s.tape.status().error());
    return crash(s, at);
  }

  // Crashes about `crashes` times over the run. The length of the run is not known in advance, so
  // the gap between crashes grows with each crash.
  result<> run_through(simulation& s) {
    picoseconds gap = 1'000, now = 0;
    bool finished = false;
    while (report_.crashes < options_.crashes &&
           report_.violations.size() < options_.most_violations) {
      if (options_.cancelled()) return base::fail(errc::cancelled, "interrupted");
      now = std::max(now, std::min(s.events.next(), never - gap)) + random_() % gap;
      while (s.advance(1 << 16, now)) {
      }
      if (!s.tape.status()) return std::unexpected(s.tape.status().error());
      if (auto crashed = crash(s, now); !crashed) return crashed;
      if (s.events.empty() && !finished) s.persistence->finish(now), finished = true;
      if (s.events.empty()) return s.finish();
      gap = std::min<picoseconds>(gap + gap / 64 + 1, 400'000);
    }
    if (report_.violations.size() >= options_.most_violations) return {};
    // The crashes are used up, and the run is not over: it must reach its end.
    while (s.advance(1 << 16))
      if (options_.cancelled()) return base::fail(errc::cancelled, "interrupted");
    return s.finish();
  }

  result<> crash(simulation& s, picoseconds at) {
    if (oracle_.without_bytes())
      return base::fail(errc::invalid_argument,
                        "the tape's stores do not carry their bytes; record it with --bytes");
    nonvolatile_state left = s.kiln_design->recovered();
    settle(left, *s.memories->nonvolatile);
    ++report_.crashes;
    report_.with_pending += left.pending != 0, report_.with_versions += left.superseded != 0,
        report_.with_copies += left.copies != 0;
    report_.torn_lines += left.torn.size();
    if (oracle_.recovered_prefix(left, acknowledged_, oracle_.transactions(), random_) >= 0)
      return {};
    const std::int64_t other = oracle_.recovered_prefix(left, 0, oracle_.transactions(), random_);
    report_.violations.push_back(
        {at, other < 0
                 ? "recovery left a state that no number of whole transactions leads to"
                 : "recovery left the state after " + std::to_string(other) + " transactions; " +
                       std::to_string(acknowledged_) + " were acknowledged"});
    return {};
  }

  const crash_options& options_;
  base::rng random_;
  content_oracle oracle_;
  crash_report report_;
  std::uint64_t acknowledged_ = 0;
};

result<crash_report> crash_feed(const machine_config& machine, result<feed> tape,
                                const crash_options& o) {
  if (!tape) return std::unexpected(tape.error());
  return crash_run(o, tape->threads()).run(machine, std::move(*tape));
}

unsigned threads_of(const machine_config& m) noexcept {
  return m.cores.count * m.cores.threads_per_core;
}

}  // namespace

void settle(nonvolatile_state& left, const memory_system& memory) {
  std::erase_if(left.torn, [&](const std::pair<std::uint64_t, std::uint64_t>& torn) {
    const write_place where = memory.place_of_write(torn.first * line_bytes);
    if (where == write_place::flushed_by_device) left.lines[torn.first] = torn.second;
    return where != write_place::unknown;
  });
}

result<crash_report> crash_machine(const machine_config& machine, std::span<const std::byte> tape,
                                   const crash_options& o) {
  return crash_feed(machine, feed::over(tape, threads_of(machine)), o);
}
result<crash_report> crash_machine(const machine_config& machine, const std::string& tape,
                                   const crash_options& o) {
  return crash_feed(machine, feed::open(tape, threads_of(machine)), o);
}

std::vector<std::byte> make_tape(const crash_workload& l) {
  using media::tape_op;
  const auto tape = media::tape_writer::to_memory({.pool_size = l.lines * 64});
  base::rng random(l.seed);
  std::array<std::byte, 64> bytes;
  const auto fill = [&] {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  };
  for (std::uint64_t line = 0; line < l.lines; ++line) {
    fill();
    tape->event(tape_op::image, 0, line * 64, 64, bytes.data());
  }
  const auto store = [&](unsigned thread) {
    const std::uint64_t line =
        random() % (random() % 4 == 0 ? l.lines : l.lines / 4);  // a quarter of the lines is hot
    const auto length = static_cast<std::uint32_t>(8 << random() % 4);
    fill();
    if (random() % 2 == 0) tape->event(tape_op::load, thread, random() % l.lines * 64, 8);
    tape->event(tape_op::store, thread, line * 64 + random() % (64 / length) * length, length,
                bytes.data());
    if (random() % 4 == 0) tape->event(tape_op::compute, thread, random() % 400, 0);
  };
  for (std::uint64_t n = 0; n < l.transactions; ++n) {
    const auto thread = static_cast<unsigned>(n % l.threads);
    if (l.plain_stores != 0)
      for (std::uint64_t i = random() % (l.plain_stores + 1); i != 0; --i) {
        store(thread);
        if (i % 2 == 0) tape->event(tape_op::flush, thread, random() % (l.lines / 4) * 64, 64);
      }
    tape->event(tape_op::tx_begin, thread, n,
                n % l.in_order_every == 0 ? media::tape_ordered_flag : 0);
    for (std::uint64_t i = 1 + random() % l.max_stores; i != 0; --i) store(thread);
    tape->event(tape_op::tx_commit, thread, n, 0);
  }
  (void)tape->finish();
  const auto made = tape->memory();
  return {made.begin(), made.end()};
}

std::vector<machine_config> crash_machines() {
  std::vector<machine_config> machines;
  struct shape {
    const char* name;
    std::uint64_t l1, l2, l3;
    unsigned ways, queues;
  };
  constexpr shape shapes[] = {
      {"few ways", 256, 512, 4096, 4, 2},    {"few lines", 128, 256, 2048, 16, 1},
      {"overflowing", 128, 256, 1024, 4, 1}, {"two ways", 128, 256, 512, 2, 1},
      {"one set", 256, 512, 512, 8, 4},      {"room", 1024, 4096, 65536, 8, 16}};
  for (const shape& s : shapes)
    for (const char* isolation : {"htm", "mutex"})
      for (const char* order : {"strong", "relaxed"}) {
        machine_config m;
        m.name = std::string(s.name) + ", " + isolation + ", " + order;
        m.cores.count = 2;
        m.cores.threads_per_core = 2;
        m.l1 = {.size_bytes = s.l1,
                .ways = 2,
                .read_latency_ns = 1.6,
                .write_latency_ns = 1.6,
                .persistence_queue_entries = s.queues};
        m.l2 = {.size_bytes = s.l2,
                .ways = 2,
                .read_latency_ns = 4.4,
                .write_latency_ns = 4.4,
                .request_queue_entries = 4,
                .persistence_queue_entries = s.queues};
        m.l3 = {.size_bytes = s.l3,
                .ways = s.ways,
                .read_latency_ns = 15,
                .write_latency_ns = 19,
                .banks = 4,
                .persistence_queue_entries = 4 * s.queues,
                .nonvolatile = true};
        memory_config& cells = m.nonvolatile_memory;
        cells.technology = "stt-mram";
        cells.read_latency_ns = cells.write_latency_ns = 25, cells.write_pulse_ns = 11;
        cells.write_back_rows = true;
        cells.write_back_rows = true;
        cells.timing = {{"bank", "activate", "read", 20},
                        {"bank", "activate", "write", 20},
                        {"bank", "precharge", "activate", 20}};
        m.volatile_memory = cells;
        m.design.name = "kiln", m.design.isolation = isolation, m.design.order = order;
        m.design.transaction_ids = 12;
        m.design.overflow_interrupt_ns = 200;
        machines.push_back(std::move(m));
      }
  return machines;
}

std::vector<mutant_verdict> kill_mutants(std::uint64_t seed,
                                         const std::function<bool()>& cancelled) {
  constexpr unsigned rounds = 8;
  std::vector<mutant_verdict> verdicts;
  for (const kiln_mutant mutant : kiln_mutants) {
    mutant_verdict v{mutant, false, {}, 0};
    for (unsigned round = 0; round < rounds && !v.killed && !cancelled(); ++round)
      for (const machine_config& m : crash_machines()) {
        const auto tape = make_tape({.seed = seed + round});
        const auto r = crash_machine(
            m, tape,
            {.crashes = 4000, .mutant = mutant, .seed = seed + round, .cancelled = cancelled});
        if (!r) continue;
        v.crashes += r->crashes;
        if (r->violations.empty()) continue;
        v.killed = true;
        v.by = m.name + ", load of seed " + std::to_string(seed + round) + ", at " +
               std::to_string(r->violations.front().at) + " ps: " + r->violations.front().what;
        break;
      }
    verdicts.push_back(std::move(v));
  }
  return verdicts;
}

}  // namespace stele::sim
