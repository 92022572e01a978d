// Traces of requests on a memory: times and counts by hand, epochs, errors, and the trace of the
// commands, which is read back and checked by the rules.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/controller/command_lines.h>
#include <sim/controller/command_rules.h>
#include <sim/controller/memory_fixture.h>
#include <sim/memory_run.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace stele::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class memory_run : public testing::Test {
 protected:
  std::string at(const char* file) const { return dir_.file(file); }
  void trace(const std::string& text) const { std::ofstream(at("trace")) << text; }
  result<run_result> run(const machine_config& m, const char* format, picoseconds epoch = 0) const {
    memory_run_options o;
    o.trace = at("trace"), o.format = format, o.commands = at("commands");
    o.timeline_interval = epoch;
    return run_memory(m, o);
  }
  static double of(const run_result& r, std::string_view path) {
    const quantity* q = find(r, path);
    EXPECT_NE(q, nullptr) << path;
    return q == nullptr ? -1 : q->value;
  }

  const base::scratch_directory dir_;
};

// A clock of 2 ns; precharge 13 ns, activate 14 ns, read 20 ns: 14, 14 and 20 in whole cycles.
machine_config timed() {
  machine_config m;
  m.nonvolatile_memory = plain_memory();
  m.nonvolatile_memory.clock_ns = 2;
  m.nonvolatile_memory.read_latency_ns = 20;
  m.nonvolatile_memory.write_latency_ns = 17;
  m.nonvolatile_memory.timing = {{"bank", "precharge", "activate", 13},
                                 {"bank", "activate", "read", 14},
                                 {"bank", "activate", "write", 14}};
  return m;
}

// Row 0 of bank 0 is the first 1 KiB, its row 1 begins at 4 KiB.
TEST_F(memory_run, times_every_request_from_its_cycle_in_whole_cycles) {
  trace("0x0 READ 0\n0x40 READ 50\n0x1000 READ 100\n0x2000 WRITE 200\n");
  const auto r = run(timed(), "dramsim3");
  ASSERT_TRUE(r) << r.error().message;
  const std::string at = "nonvolatile_memory.";
  EXPECT_EQ(of(*r, "run.requests"), 4);
  EXPECT_EQ(of(*r, at + "row_hits"), 1);
  EXPECT_EQ(of(*r, at + "row_conflicts"), 2);
  EXPECT_DOUBLE_EQ(of(*r, at + "read_latency"), (34 + 20 + 48) / 3.0);
  EXPECT_EQ(of(*r, at + "write_latency"), 14 + 14 + 18);
  EXPECT_EQ(r->simulated, 400'000u + 46'000u);
  EXPECT_DOUBLE_EQ(of(*r, at + "bandwidth"), 4 * 64 / 446.0);
  std::ifstream commands(this->at("commands"));
  std::stringstream text;
  text << commands.rdbuf();
  EXPECT_THAT(
      text.str(),
      HasSubstr("100                precharge              0   0   0   0      0x0      0x0\n"
                "107                activate               0   0   0   0      0x1      0x0\n"
                "114                read                   0   0   0   0      0x1      0x0\n"));
}

TEST_F(memory_run, takes_a_request_a_cycle_from_traces_without_cycles) {
  for (const auto& [format, text] : {std::pair{"ramulator-memory", "0x0 R\n0x40 R\n0x80 W\n"},
                                     {"ramulator2", "LD 0\nLD 0x40\nST 128\n"}}) {
    trace(text);
    const auto r = run(timed(), format);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(of(*r, "nonvolatile_memory.read_latency"), (34 + 32) / 2.0) << format;
    EXPECT_EQ(of(*r, "nonvolatile_memory.writes"), 1) << format;
  }
}

// The queue has room for one read; the second waits outside it until the first is served.
TEST_F(memory_run, a_request_without_room_waits_and_its_latency_begins_when_it_is_admitted) {
  machine_config m = timed();
  m.nonvolatile_memory.read_queue_entries = 1;
  trace("0x0 R\n0x40 R\n");
  const auto r = run(m, "ramulator-memory");
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(of(*r, "run.stalled_cycles"), 6);  // cycles 1 to 6; the first is served in cycle 7
  EXPECT_EQ(of(*r, "nonvolatile_memory.read_latency"), (34 + 20) / 2.0);
  EXPECT_EQ(r->simulated, 34'000u);
}

// The first read completes at 34; the second would come in cycle 1 and waits until then.
TEST_F(memory_run, a_read_waits_while_as_many_as_may_be_are_in_flight) {
  for (const auto& [limit, stalled, ended] :
       {std::tuple{1u, 16u, 54'000u}, {2u, 0u, 34'000u}, {0u, 0u, 34'000u}}) {
    trace("0x0 R\n0x40 R\n");
    memory_run_options o;
    o.trace = at("trace"), o.format = "ramulator-memory", o.reads_in_flight = limit;
    const auto r = run_memory(timed(), o);
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(of(*r, "run.stalled_cycles"), stalled) << limit;
    EXPECT_EQ(r->simulated, ended) << limit;
  }
}

// The published measurements that the preset names: idle latencies, and bandwidths of one DIMM.
TEST_F(memory_run, optane_like_has_the_published_latencies_and_bandwidths) {
  const machine_config m = machine_of("optane-like");
  const std::string at = "nonvolatile_memory.";
  trace("0x0 READ 0\n");
  EXPECT_EQ(of(*run(m, "dramsim3"), at + "read_latency"), 305);
  trace("0x0 READ 0\n0x40 READ 1000\n0x80 READ 2000\n");
  EXPECT_NEAR(of(*run(m, "dramsim3"), at + "read_latency_p50"), 169, 1.69);
  for (const auto& [letter, gb_per_s] : {std::pair{'R', 6.6}, {'W', 2.3}}) {
    std::string text;
    for (unsigned i = 0; i < 20'000; ++i) text += fmt::format("{:#x} {}\n", i * 64, letter);
    trace(text);
    EXPECT_NEAR(of(*run(m, "ramulator-memory"), at + "bandwidth"), gb_per_s, 0.02 * gb_per_s)
        << letter;
  }
}

std::string random_trace(unsigned requests, unsigned lines, unsigned most_idle) {
  std::string text;
  std::uint64_t x = 7, cycle = 0;
  for (unsigned i = 0; i < requests; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    cycle += (x >> 40) % (most_idle + 1);
    text +=
        fmt::format("{:#x} {} {}\n", (x >> 33) % lines * 64, x >> 60 < 5 ? "WRITE" : "READ", cycle);
  }
  return text;
}

TEST_F(memory_run, has_epochs_that_add_up_and_change_nothing) {
  trace(random_trace(3000, 1 << 16, 20));
  const machine_config m = machine_of("ddr5-4800-same-bank");
  const auto alone = run(m, "dramsim3"), r = run(m, "dramsim3", 1'000'000);
  ASSERT_TRUE(alone && r);
  EXPECT_EQ(alone->simulated, r->simulated);
  ASSERT_GT(r->line.samples.size(), 10u);
  for (std::size_t i = 0; i < r->quantities.size(); ++i) {
    const auto& [path, value, unit] = r->quantities[i];
    EXPECT_EQ(alone->quantities[i].value, value);
    double sum = 0, most = 0;
    for (const auto& sample : r->line.samples) {
      sum += sample[i + 1];
      most = std::max(most, sample[i + 1]);
    }
    if (unit.empty()) {
      EXPECT_EQ(sum, value) << path;
    }
    if (unit == "nJ" || unit == "bytes") {
      EXPECT_GT(value, 0) << path;
      EXPECT_NEAR(sum, value, 1e-6 * value) << path;
    }
    if (path.ends_with("_longest")) {
      EXPECT_EQ(most, value) << path;
    }
  }
}

// Three reads of one bank at once, of which two wait when an epoch ends at 60 ns; later a write and
// a read that it serves.
TEST_F(memory_run, has_the_longest_queue_of_each_epoch) {
  trace(
      "0x0 READ 0\n0x1000 READ 1\n0x2000 READ 2\n0x3000 READ 80\n0x4000 WRITE 90\n0x4000 READ "
      "91\n");
  machine_config m = timed();
  m.nonvolatile_memory.timing.push_back({"bank", "read", "precharge", 30});
  const auto r = run(m, "dramsim3", 60'000);
  ASSERT_TRUE(r) << r.error().message;
  const std::string at = "nonvolatile_memory.";
  const auto epochs = [&](const std::string& path) {
    std::vector<double> found;
    const auto column = std::ranges::find(r->line.names, at + path) - r->line.names.begin();
    for (const auto& sample : r->line.samples)
      found.push_back(sample[static_cast<std::size_t>(column)]);
    return found;
  };
  EXPECT_EQ(epochs("read_queue_longest"), (std::vector<double>{3, 2, 1, 1, 0}));
  EXPECT_EQ(epochs("write_queue_longest"), (std::vector<double>{0, 0, 1, 1, 1}));
  EXPECT_EQ(of(*r, at + "read_queue_longest"), 3);
  EXPECT_EQ(of(*r, at + "write_queue_longest"), 1);
}

// --- the trace of the commands ---

TEST_F(memory_run, the_trace_of_its_commands_is_read_back_and_keeps_the_rules) {
  for (const auto& [preset, open_page] :
       {std::pair{"ddr4-3200", true}, {"ddr4-2400", false}, {"ddr5-4800-same-bank", true}}) {
    machine_config m = machine_of(preset);
    m.nonvolatile_memory.open_page = open_page;
    m.nonvolatile_memory.channels = 2;
    m.nonvolatile_memory.refresh_interval_ns = 4 * m.nonvolatile_memory.refresh_time_ns;
    const memory_config c = in_cycles(m.nonvolatile_memory);
    for (const unsigned most_idle : {0, 12}) {  // every cycle, and below saturation
      trace(random_trace(4000, 1 << 16, most_idle));
      const auto r = run(m, "dramsim3");
      ASSERT_TRUE(r) << r.error().message;
      std::vector<command_report> read = commands_of(at("commands"), c);
      EXPECT_THAT(command_rules::broken(c, read), IsEmpty());
      const auto count = [&](command what) {
        return std::ranges::count(read, what, &command_report::what);
      };
      const std::string of_memory = "nonvolatile_memory.";
      EXPECT_EQ(count(command::activate), of(*r, of_memory + "activates"));
      EXPECT_EQ(count(command::precharge), of(*r, of_memory + "precharges"));
      EXPECT_EQ(count(command::read), of(*r, of_memory + "reads"));
      EXPECT_EQ(count(command::write), of(*r, of_memory + "writes"));
      EXPECT_GT(count(command::refresh), 1);
      for (command_report& each : read)
        if (each.what == command::write) each.at -= from_ns(m.nonvolatile_memory.clock_ns);
      EXPECT_FALSE(command_rules::broken(c, read).empty());
    }
  }
}

// D8: two writes in 2.85 us; 10^8 writes of a line take 142.5 s of such a run.
TEST_F(memory_run, has_the_lifetime_of_its_cells) {
  machine_config m = machine_of("pcm");
  trace("0x0 W\n0x0 W\n");
  const auto r = run(m, "ramulator-memory");
  ASSERT_TRUE(r) << r.error().message;
  const std::string at = "nonvolatile_memory.wear.";
  EXPECT_EQ(of(*r, at + "most_writes"), 2);
  EXPECT_NEAR(of(*r, at + "lifetime"), 1e8 / 2 * 2.85e-6 / (365.25 * 24 * 3600), 1e-8);
}

// Cycles once became picoseconds that wrapped: the run ended early, with a time.
TEST_F(memory_run, refuses_cycles_beyond_the_latest_time) {
  const machine_config m = machine_of("pcm");
  ASSERT_EQ(m.nonvolatile_memory.clock_ns, 0);
  const std::uint64_t most = latest / cycle_without_clock;
  for (const std::uint64_t cycle :
       {most + 1, most * 4, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    SCOPED_TRACE(cycle);
    trace("0x1000 READ 0\n0x2000 READ " + std::to_string(cycle) + "\n");
    const auto r = run(m, "dramsim3");
    ASSERT_FALSE(r);
    EXPECT_THAT(r.error().message, HasSubstr("53 days"));
  }
  trace("0x1000 READ 0\n0x2000 READ " + std::to_string(most) + "\n");
  const auto r = run(m, "dramsim3");
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_GE(r->simulated, most * cycle_without_clock);
}

// Reads that take 0.9 s each, one after the other, from the latest time on: 900 s of them are
// served.
TEST_F(memory_run, refuses_waits_beyond_the_latest_time) {
  machine_config m;
  m.nonvolatile_memory = plain_memory();
  m.nonvolatile_memory.read_queue_entries = 4096;
  m.nonvolatile_memory.timing = {{"channel", "read", "read", 9e8}};
  const auto run_of = [&](unsigned reads) {
    std::string text;
    for (unsigned n = 0; n < reads; ++n)
      text += fmt::format("{:#x} READ {}\n", n * 64, latest / cycle_without_clock - 2000 + n);
    trace(text);
    return run(m, "dramsim3");
  };
  EXPECT_TRUE(run_of(1000));
  const auto r = run_of(1200);
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("the run goes beyond 53 days"));
}

// A request a second after the other, and epochs of a nanosecond: a milliard of them.
TEST_F(memory_run, refuses_more_epochs_than_it_could_keep) {
  trace("0x0 READ 0\n0x40 READ 1000000000\n");
  const auto r = run(machine_of("pcm"), "dramsim3", 1000);
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("the time line has more than 1000000 epochs; give"));
}

TEST_F(memory_run, refuses_requests_beyond_the_capacity) {
  machine_config m = timed();
  m.nonvolatile_memory.capacity_bytes = 1 << 20;
  trace("0xfffc0 READ 0\n");
  EXPECT_TRUE(run(m, "dramsim3"));
  trace("0x0 READ 0\n0x100000 WRITE 20\n");
  memory_run_options o;
  o.trace = at("trace"), o.format = "dramsim3", o.commands = at("commands");
  const auto beyond = run_memory(m, o);
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message,
              HasSubstr("0x100000, and the memory's capacity_bytes is 1048576; give"));
  EXPECT_FALSE(std::filesystem::exists(o.commands)) << "half a trace of commands";
}

TEST_F(memory_run, refuses_in_sentences) {
  trace("0x0 READ 0\n0x40 REED 1\n");
  const auto wrong = run(timed(), "dramsim3");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("trace:2: \"0x40 REED 1\": expected \"0xADDRESS"));
  EXPECT_THAT(run(timed(), "lackey").error().message, HasSubstr("there are dramsim3"));
  memory_run_options o;
  o.trace = at("none"), o.format = "dramsim3";
  EXPECT_THAT(run_memory(timed(), o).error().message, HasSubstr("cannot read the trace"));
  o.trace = at("trace"), o.memory = "cache";
  EXPECT_THAT(run_memory(timed(), o).error().message, HasSubstr("choose nonvolatile_memory"));
  o.memory = "volatile_memory", o.commands = at("no/where");
  EXPECT_THAT(run_memory(timed(), o).error().message, HasSubstr("cannot write"));
}

}  // namespace
}  // namespace stele::sim
