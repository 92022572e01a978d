// Every statistic of a memory against one that is computed from the requests and the commands
// alone: counts, waits, latencies, queues, open rows, busy banks, energy.
#include <sim/controller/memory_fixture.h>
#include <sim/memory_result.h>

#include <numeric>

namespace stele::sim {
namespace {

struct asked_request {
  access kind = access::read;
  std::uint64_t address = 0;
  device_address where;
  picoseconds arrived = 0, completed = 0;
  picoseconds started = never;  // of its column command; never: a write has served it
};

// What the requests and commands say of a run until `end`.
class account {
 public:
  account(const memory_fixture& bed, std::vector<asked_request> requests, picoseconds end)
      : config_(bed.memory->config()),
        commands_(bed.commands),
        end_(end),
        requests_(std::move(requests)) {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      requests_[i].completed = bed.completed.at(static_cast<unsigned>(i));
    find_starts();
  }

  std::size_t count(command what) const {
    return static_cast<std::size_t>(std::ranges::count(commands_, what, &command_report::what));
  }
  const std::vector<asked_request>& requests() const { return requests_; }
  std::size_t forwarded() const {
    return static_cast<std::size_t>(std::ranges::count(requests_, never, &asked_request::started));
  }
  picoseconds service(access kind) const {
    return kind == access::read
               ? from_ns(config_.read_latency_ns)
               : from_ns(config_.write_latency_ns) +
                     (config_.write_back_rows ? 0 : from_ns(config_.write_pulse_ns));
  }
  // Sorted.
  std::vector<picoseconds> latencies(access kind) const {
    std::vector<picoseconds> all;
    for (const asked_request& r : requests_)
      if (r.kind == kind) all.push_back(r.completed - r.arrived);
    std::ranges::sort(all);
    return all;
  }
  std::vector<picoseconds> waits(access kind) const {
    std::vector<picoseconds> all;
    for (const asked_request& r : requests_)
      if (r.kind == kind && r.started != never) all.push_back(r.started - r.arrived);
    return all;
  }
  // The most requests of a kind that waited in a channel at once.
  std::size_t longest_queue(access kind) const {
    std::size_t longest = 0;
    for (unsigned channel = 0; channel < channels(); ++channel) {
      std::vector<std::pair<picoseconds, int>> changes;
      for (const asked_request& r : requests_) {
        const picoseconds left = r.started == never ? r.completed : r.started;
        if (r.kind != kind || r.where.channel != channel ||
            (r.started == never && left == r.arrived))
          continue;
        changes.push_back({r.arrived, 1});
        changes.push_back({left, -1});
      }
      std::ranges::sort(changes, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
      });
      std::size_t now = 0;
      for (const auto& [at, change] : changes)
        longest = std::max(longest, now += static_cast<std::size_t>(change));
    }
    return longest;
  }

  struct open_times {
    picoseconds banks = 0, ranks = 0;  // summed
  };
  // A precharge that the device does by itself is reported with the command before it.
  open_times open() const {
    open_times sum;
    std::map<std::pair<unsigned, unsigned>, std::vector<std::pair<picoseconds, int>>> of_rank;
    for (const command_report& c : commands_) {
      if (c.what != command::activate && c.what != command::precharge) continue;
      of_rank[{c.channel, c.rank}].push_back({c.at, c.what == command::activate ? 1 : -1});
    }
    for (auto& [rank, changes] : of_rank) {
      std::ranges::stable_sort(changes, {}, &std::pair<picoseconds, int>::first);
      int rows = 0;
      picoseconds since = 0;
      changes.push_back({end_, 0});
      for (const auto& [at, change] : changes) {
        sum.banks += (at - since) * static_cast<unsigned>(rows);
        sum.ranks += rows != 0 ? at - since : 0;
        rows += change, since = at;
      }
    }
    return sum;
  }
  unsigned channels() const { return config_.controllers * config_.channels; }
  unsigned ranks() const { return channels() * config_.ranks; }
  unsigned banks() const { return ranks() * config_.bank_groups * config_.banks; }

 private:
  // The n-th column command of a line and kind is of the n-th such request that was not served by a
  // write; one that was completes at another time than a column command would have it.
  void find_starts() {
    std::map<std::pair<std::uint64_t, access>, std::vector<picoseconds>> columns;
    for (const command_report& c : commands_)
      if (moves_data(c.what))
        columns[{c.address, c.what == command::read ? access::read : access::write}].push_back(
            c.at);
    std::map<std::pair<std::uint64_t, access>, std::size_t> used;
    for (asked_request& r : requests_) {
      const auto& of_line = columns[{r.address, r.kind}];
      std::size_t& next = used[{r.address, r.kind}];
      if (next < of_line.size() && of_line[next] + service(r.kind) == r.completed)
        r.started = of_line[next++];
    }
    for (const auto& [line, times] : columns)
      EXPECT_EQ(used[line], times.size()) << "a column command of no request";
  }

  const memory_config& config_;
  const std::vector<command_report>& commands_;
  picoseconds end_;
  std::vector<asked_request> requests_;
};

// Bursts of reads and writes with hot rows and lines, and pauses below the interval of refreshes,
// of which all commands are reported then.
std::vector<asked_request> load(memory_fixture& bed, unsigned requests) {
  std::vector<asked_request> asked;
  std::uint64_t x = 11;
  const memory_config& c = bed.memory->config();
  for (unsigned i = 0; i < requests; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t line = (x >> 40) % 1024 * (x >> 60 < 4 ? 65 : 1);
    const access kind = x >> 33 & 1 ? access::read : access::write;
    const picoseconds gap = i % 64 == 63 ? picoseconds{1000} << (x >> 40) % 10 : x >> 54 & 255;
    bed.run_until(bed.events.now() + gap + 1 + i % 7);
    const std::uint64_t address = line * line_bytes % c.capacity_bytes;
    asked.push_back(
        {kind, address, bed.memory->address_map().locate(address), bed.events.now(), 0, never});
    bed.submit(kind, address);
  }
  bed.run();
  return asked;
}

// Unit energies of which none is another or zero; queues that fill.
memory_config accounted() {
  memory_config c = machine_of("ddr4-2400").nonvolatile_memory;
  c.channels = 2, c.ranks = 2;
  c.staggered_refresh = true;
  c.refresh_interval_ns = 2000;
  c.read_queue_entries = 6, c.write_queue_entries = 10, c.bank_queue_entries = 4;
  c.row_buffer_read_pj_per_bit = 0.5, c.row_buffer_write_pj_per_bit = 0.25;
  c.array_read_pj_per_bit = 2, c.array_write_pj_per_bit = 4;
  return c;
}
memory_config closed_pages() {
  memory_config c = accounted();
  c.open_page = false;
  return c;
}
memory_config with_pulses() {
  memory_config c = accounted();
  c.technology = "stt-mram", c.write_pulse_ns = 10;
  c.scheduler = "fcfs";
  c.write_drain_from = memory_config{}.write_drain_from;
  c.write_drain_to = memory_config{}.write_drain_to;
  c.refresh_interval_ns = c.refresh_time_ns = 0, c.staggered_refresh = false;
  // Nothing waits in front of the queues, where it could be overtaken.
  c.read_queue_entries = c.write_queue_entries = 4096, c.bank_queue_entries = 0;
  return c;
}
const std::pair<const char*, memory_config (*)()> memories[] = {
    {"open pages", accounted}, {"closed pages", closed_pages}, {"pulses", with_pulses}};

template <class F>
void for_each_memory(F&& check) {
  for (const auto& [name, config] : memories) {
    SCOPED_TRACE(name);
    memory_fixture bed(config());
    auto asked = load(bed, 4000);
    const picoseconds end = bed.events.now();
    check(bed, account(bed, std::move(asked), end), bed.memory->statistics(end), end);
  }
}

TEST(memory_account, counts_are_those_of_the_commands) {
  for_each_memory([](memory_fixture&, const account& a, const memory_statistics& s, picoseconds) {
    EXPECT_EQ(s.reads, a.count(command::read));
    EXPECT_EQ(s.writes, a.count(command::write));
    EXPECT_EQ(s.activates, a.count(command::activate));
    EXPECT_EQ(s.precharges, a.count(command::precharge));
    EXPECT_EQ(s.refreshes, a.count(command::refresh));
    EXPECT_EQ(s.forwarded_reads, a.forwarded());
    EXPECT_EQ(s.bytes, 64 * (s.reads + s.writes));
    EXPECT_EQ(s.row_hits + s.row_misses + s.row_conflicts, s.reads + s.writes);
    std::vector<std::uint64_t> writes(a.banks());
    for (const asked_request& r : a.requests())
      if (r.kind == access::write)
        ++writes[r.where.channel * (a.banks() / a.channels()) + r.where.bank];
    EXPECT_EQ(s.bank_writes, writes);
    EXPECT_GT(s.forwarded_reads, 20u);
  });
}

// A latency is the wait from the arrival to the column command, and the service from there. A read
// that a write serves only waits.
TEST(memory_account, every_picosecond_of_a_request_is_in_one_part) {
  for_each_memory([](memory_fixture&, const account& a, const memory_statistics& s, picoseconds) {
    for (const access kind : {access::read, access::write}) {
      const bool read = kind == access::read;
      const auto waits = a.waits(kind), all = a.latencies(kind);
      const auto sum = [](const auto& of) {
        return std::accumulate(of.begin(), of.end(), picosecond_sum{0});
      };
      const span_statistics &wait = read ? s.read_wait : s.write_wait,
                            &latency = read ? s.read_latency : s.write_latency;
      EXPECT_EQ(wait.count, waits.size());
      EXPECT_EQ(wait.sum_ps, sum(waits));
      EXPECT_EQ(wait.max_ps, *std::ranges::max_element(waits));
      EXPECT_EQ(latency.count, all.size());
      EXPECT_EQ(latency.sum_ps, sum(all));
      EXPECT_EQ(latency.max_ps, all.back());
      picosecond_sum served_by_writes = 0;
      for (const asked_request& r : a.requests())
        if (r.kind == kind && r.started == never) served_by_writes += r.completed - r.arrived;
      EXPECT_EQ(latency.sum_ps, wait.sum_ps + waits.size() * a.service(kind) + served_by_writes);
      EXPECT_GT(wait.max_ps, 4 * a.service(kind)) << "the queues must fill";
    }
  });
}

TEST(memory_account, rows_are_open_from_their_activate_to_their_precharge) {
  for_each_memory(
      [](memory_fixture& bed, const account& a, const memory_statistics& s, picoseconds end) {
        const account::open_times open = a.open();
        EXPECT_EQ(s.open_bank_ps, open.banks);
        EXPECT_EQ(s.open_ps, open.ranks);
        EXPECT_EQ(s.rank_ps, picosecond_sum{end} * a.ranks());
        EXPECT_EQ(bed.memory->longest_queue(access::read, 0), a.longest_queue(access::read));
        EXPECT_EQ(bed.memory->longest_queue(access::write, 0), a.longest_queue(access::write));
      });
}

// A refresh is due in each interval of each rank, and is issued soon after.
TEST(memory_account, refreshes_are_the_time_over_the_interval) {
  memory_fixture bed(accounted());
  const auto asked = load(bed, 4000);
  bed.run_until(bed.events.now() + 1'000'000'000);
  const picoseconds end = bed.events.now();
  const picoseconds interval = from_ns(bed.memory->config().refresh_interval_ns);
  EXPECT_NEAR(static_cast<double>(bed.memory->statistics(end).refreshes),
              static_cast<double>(end) / static_cast<double>(interval) * 4, 4);
}

// In order of arrival, the commands before a column command tell what its request needed, and from
// when its bank was busy.
TEST(memory_account, hits_conflicts_and_busy_banks_in_order_of_arrival) {
  memory_fixture bed(with_pulses());
  const auto asked = load(bed, 4000);
  std::uint64_t hits = 0, misses = 0, conflicts = 0;
  picoseconds busy = 0;
  const memory_config& given = bed.memory->config();
  const picoseconds read_time = from_ns(given.read_latency_ns),
                    write_time = from_ns(given.write_latency_ns) + from_ns(given.write_pulse_ns);
  struct bank_state {
    bool precharged = false, activated = false;
    picoseconds from = 0, until = 0;
  };
  std::map<std::pair<unsigned, unsigned>, bank_state> banks;
  for (const command_report& c : bed.commands) {
    bank_state& b = banks[{c.channel, c.bank}];
    if (c.what == command::precharge) b.precharged = true;
    if (c.what == command::activate) b.activated = true, b.from = c.at;
    if (!moves_data(c.what)) continue;
    ++(b.precharged ? conflicts : b.activated ? misses : hits);
    const picoseconds from = std::max(b.activated ? b.from : c.at, b.until),
                      end = c.at + (c.what == command::read ? read_time : write_time);
    if (end > from) busy += end - from;
    b = {false, false, 0, std::max(end, b.until)};
  }
  const memory_statistics s = bed.statistics();
  EXPECT_EQ(s.row_hits, hits);
  EXPECT_EQ(s.row_misses, misses);
  EXPECT_EQ(s.row_conflicts, conflicts);
  EXPECT_EQ(s.bank_busy_ps, busy);
}

// Each energy: its count times its unit, which is a line's bits and what the currents add.
TEST(memory_account, energy_is_counts_times_unit_energies) {
  for (const bool all_banks : {false, true}) {
    memory_config given = accounted();
    given.vdd_v = 1.5, given.devices = 4, given.idd3n_all_banks = all_banks;
    given.idd0_ma = 60, given.idd2n_ma = 30, given.idd3n_ma = 46, given.idd4r_ma = 140;
    given.idd4w_ma = 125, given.idd5b_ma = 240;
    memory_fixture bed(given);
    auto asked = load(bed, 4000);
    const picoseconds end = bed.events.now();
    const account a(bed, std::move(asked), end);
    const memory_config& c = bed.memory->config();
    const auto n = [&](command what) { return static_cast<double>(a.count(what)); };
    const double ras = wait_ns(c, "bank", "activate", "precharge"),
                 rc = wait_ns(c, "bank", "activate", "activate"),
                 burst_of_writes = wait_ns(c, "channel", "write", "write"),
                 burst_of_reads = wait_ns(c, "channel", "read", "read");
    ASSERT_GT(rc, ras);
    const double bank_ma = 16.0 / (c.bank_groups * c.banks), open_ma = all_banks ? bank_ma : 16;
    const memory_energy e = bed.memory->energy(end);
    const auto near = [](double found, double expected) {
      EXPECT_NEAR(found, expected, 1e-9 * expected);
    };
    near(e.activate_pj,
         n(command::activate) * (512 * 2 + 6 * (60 * rc - (30 + open_ma) * ras - 30 * (rc - ras))));
    near(e.read_pj, n(command::read) * (512 * 0.5 + 6 * (140 - 46) * burst_of_reads));
    near(e.write_pj, n(command::write) * (512 * 4.25 + 6 * (125 - 46) * burst_of_writes));
    near(e.refresh_pj, n(command::refresh) * 6 * (240 - (all_banks ? 30 : 46)) * c.refresh_time_ns);
    const account::open_times open = a.open();
    near(e.background_pj, 6 *
                              (30 * static_cast<double>(end) * a.ranks() +
                               open_ma * static_cast<double>(all_banks ? open.banks : open.ranks)) /
                              1000);
    near(e.total_pj(), e.activate_pj + e.read_pj + e.write_pj + e.refresh_pj + e.background_pj);
  }
}

double percentile_ns(const std::vector<picoseconds>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<std::size_t>(rank, 1) - 1]) / 1000;
}

// The quantities of a result, from the account alone.
TEST(memory_account, results_have_the_same_numbers) {
  for_each_memory([](memory_fixture& bed, const account& a, const memory_statistics& s,
                     picoseconds end) {
    run_result r;
    add_memory(r, "m", *bed.memory, {{}, 0, end});
    add_histograms(r, "m", *bed.memory, {{}, 0, end});
    const auto of = [&](const std::string& path) {
      const quantity* q = find(r, "m." + path);
      EXPECT_NE(q, nullptr) << path;
      return q == nullptr ? -1 : q->value;
    };
    const double ps = static_cast<double>(end);
    EXPECT_EQ(of("reads"), a.count(command::read));
    EXPECT_EQ(of("writes"), a.count(command::write));
    EXPECT_EQ(of("forwarded_reads"), a.forwarded());
    EXPECT_EQ(of("row_hits"), s.row_hits);
    EXPECT_EQ(of("row_misses"), s.row_misses);
    EXPECT_EQ(of("row_conflicts"), s.row_conflicts);
    EXPECT_EQ(of("activates"), a.count(command::activate));
    EXPECT_EQ(of("precharges"), a.count(command::precharge));
    EXPECT_EQ(of("refreshes"), a.count(command::refresh));
    EXPECT_EQ(of("bytes"), 64 * (a.count(command::read) + a.count(command::write)));
    EXPECT_DOUBLE_EQ(of("bandwidth"), of("bytes") / ps * 1000);
    EXPECT_DOUBLE_EQ(of("busy_banks"), 100 * static_cast<double>(s.bank_busy_ps) / ps / a.banks());
    const memory_energy e = bed.memory->energy(end);
    EXPECT_DOUBLE_EQ(of("energy"), e.total_pj() / 1000);
    EXPECT_DOUBLE_EQ(of("energy_activate"), e.activate_pj / 1000);
    EXPECT_DOUBLE_EQ(of("energy_read"), e.read_pj / 1000);
    EXPECT_DOUBLE_EQ(of("energy_write"), e.write_pj / 1000);
    EXPECT_DOUBLE_EQ(of("energy_refresh"), e.refresh_pj / 1000);
    EXPECT_DOUBLE_EQ(of("energy_background"), e.background_pj / 1000);
    ASSERT_EQ(r.histograms.size(), 2u);
    for (const access kind : {access::read, access::write}) {
      const std::string name = kind == access::read ? "read" : "write";
      const auto all = a.latencies(kind), waits = a.waits(kind);
      const double sum = std::accumulate(all.begin(), all.end(), 0.0),
                   waited = std::accumulate(waits.begin(), waits.end(), 0.0);
      EXPECT_NEAR(of(name + "_latency"), sum / static_cast<double>(all.size()) / 1000, 1e-6);
      for (const auto& [suffix, share] : {std::pair{"_p50", 0.5}, {"_p99", 0.99}})
        EXPECT_NEAR(of(name + "_latency" + suffix), percentile_ns(all, share),
                    percentile_ns(all, share) / 64);
      EXPECT_NEAR(of(name + "_queue"), waited / ps / a.channels(), 1e-9);
      EXPECT_EQ(of(name + "_queue_longest"), a.longest_queue(kind));
      const latency_histogram& h = r.histograms[kind == access::read ? 0 : 1];
      EXPECT_EQ(h.path, "m." + name + "_latency");
      for (const latency_class& c : h.classes)
        EXPECT_EQ(std::ranges::count_if(all,
                                        [&](picoseconds t) {
                                          const double ns = static_cast<double>(t) / 1000;
                                          return ns >= c.from_ns && ns < c.below_ns;
                                        }),
                  static_cast<std::ptrdiff_t>(c.count));
    }
  });
}

// The sums of times do not wrap: eight ranks for nearly 53 days.
TEST(memory_account, sums_of_times_may_exceed_the_times) {
  memory_config c = plain_memory();
  c.ranks = 8;
  c.vdd_v = 1, c.devices = 1, c.idd2n_ma = 10, c.idd3n_ma = 20;
  memory_fixture bed(c);
  for (unsigned rank = 0; rank < 8; ++rank) bed.read(rank * 4, 1);
  bed.run();
  bed.run_until(latest);
  const double expected = 8 * 20 * static_cast<double>(latest) / 1000;
  EXPECT_NEAR(bed.memory->energy(latest).background_pj, expected, 1e-9 * expected);
}

// The place of a line and back; with a hash, lines of any power of two apart are in several banks.
TEST(memory_account, places_are_found_again_and_a_hash_spreads_powers_of_two) {
  memory_config c = accounted();
  for (const bool hash : {false, true}) {
    c.bank_hash = hash;
    const memory_fixture bed(c);
    const mapping& m = bed.memory->address_map();
    for (std::uint64_t n = 0; n < 5000; ++n) {
      const std::uint64_t address = n * 7919 * line_bytes % c.capacity_bytes;
      EXPECT_EQ(m.address_of(m.locate(address), m.column_of(address)), address);
    }
    if (!hash) continue;
    for (std::uint64_t apart = c.row_bytes * 64; apart < c.capacity_bytes / 8; apart *= 2) {
      std::map<std::pair<unsigned, unsigned>, unsigned> used;
      for (std::uint64_t n = 0; n < 8; ++n) {
        const device_address p = m.locate(n * apart);
        ++used[{p.channel, p.bank}];
      }
      EXPECT_EQ(used.size(), 8u) << apart;
    }
  }
}

}  // namespace
}  // namespace stele::sim
