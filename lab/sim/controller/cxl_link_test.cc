// A memory behind CXL.mem: times are sums of the link's and the device's.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/config_check.h>
#include <sim/controller/memory_fixture.h>
#include <sim/crash.h>
#include <sim/machine.h>
#include <sim/memory_run.h>

#include <fstream>

namespace stele::sim {
namespace {

using testing::HasSubstr;

// The device: activate 14 ns, read 20 ns, write 18 ns and 7 ns more into the cells. The link: a
// flit takes 4 ns, a slot 1 ns, a way 25 ns.
memory_config linked(bool gpf = false) {
  memory_config c = plain_memory();
  c.technology = "stt-mram";
  c.timing = {{"bank", "activate", "read", 14}, {"bank", "activate", "write", 14}};
  c.read_latency_ns = 20, c.write_latency_ns = 18, c.write_pulse_ns = 7;
  c.cxl_flit_bytes = 68;
  c.cxl_bytes_per_ns = 17;
  c.cxl_latency_ns = 25;
  c.cxl_gpf = gpf;
  return c;
}

// A device that takes no time, and credits for all.
memory_config link_alone() {
  memory_config c = linked();
  c.timing.clear();
  c.read_latency_ns = c.write_latency_ns = c.write_pulse_ns = 0;
  c.cxl_queue_entries = 2000;
  return c;
}

TEST(cxl_link, an_unloaded_read_takes_link_flit_device_flits_and_link) {
  memory_fixture bed(linked());
  const unsigned read = bed.read(0, 1);
  bed.run();
  EXPECT_EQ(bed.completed[read], 25'000u + 4'000u + 34'000u + 2 * 4'000u + 25'000u);
  EXPECT_EQ(bed.statistics().read_latency.sum_ps, 34'000u) << "of the device alone";
  EXPECT_EQ(bed.statistics().link_read_latency.sum_ps, 96'000u);
  memory_config c = linked();
  c.cxl_flit_bytes = 256, c.cxl_bytes_per_ns = 64;  // a flit of 4 ns holds a whole answer
  memory_fixture long_flits(c);
  const unsigned other = long_flits.read(0, 1);
  long_flits.run();
  EXPECT_EQ(long_flits.completed[other], 25'000u + 4'000u + 34'000u + 4'000u + 25'000u);
}

TEST(cxl_link, an_answer_of_data_takes_five_slots_so_reads_are_limited) {
  memory_fixture bed(link_alone());
  std::vector<unsigned> reads;
  for (unsigned i = 0; i < 1000; ++i) reads.push_back(bed.read(i % 4, 1, i % 16));
  bed.run();
  for (unsigned i = 0; i < 1000; ++i)
    ASSERT_EQ(bed.completed[reads[i]], 29'000u + i * 5'000u + 8'000u + 25'000u) << i;
  EXPECT_EQ(bed.statistics().link_to_host_ps, 1000 * 5'000u);
  EXPECT_EQ(bed.statistics().link_to_device_ps, 1000 * 1'000u);
}

TEST(cxl_link, a_write_takes_five_slots_so_writes_are_limited) {
  memory_fixture bed(link_alone());
  std::vector<unsigned> writes;
  for (unsigned i = 0; i < 1000; ++i) writes.push_back(bed.write(i % 4, 1, i % 16));
  bed.run();
  for (unsigned i = 0; i < 1000; ++i)
    ASSERT_EQ(bed.completed[writes[i]], i * 5'000u + 8'000u + 25'000u + 4'000u + 25'000u) << i;
  EXPECT_EQ(bed.statistics().link_to_device_ps, 1000 * 5'000u);
}

// 256 bytes have fifteen slots: a line's five take a third of a flit.
TEST(cxl_link, long_flits_hold_three_lines) {
  memory_config c = link_alone();
  c.cxl_flit_bytes = 256, c.cxl_bytes_per_ns = 256.0 / 15;  // a slot of 1 ns
  memory_fixture bed(c);
  unsigned last = 0;
  for (unsigned i = 0; i < 1000; ++i) last = bed.write(i % 4, 1, i % 16);
  bed.run();
  EXPECT_EQ(bed.completed[last], 999 * 5'000u + 15'000u + 25'000u + 15'000u + 25'000u);
}

TEST(cxl_link, a_request_waits_for_a_credit) {
  memory_config c = linked();
  c.cxl_queue_entries = 1;
  memory_fixture bed(c);
  EXPECT_TRUE(bed.memory->has_room({}));
  const unsigned first = bed.read(0, 1);
  EXPECT_FALSE(bed.memory->has_room({}));
  const unsigned second = bed.read(1, 1), third = bed.write(2, 1);
  bed.run();
  EXPECT_EQ(bed.completed[first], 96'000u);
  EXPECT_EQ(bed.completed[second], 2 * 96'000u) << "its credit comes with the first one's answer";
  EXPECT_EQ(bed.completed[third], 2 * 96'000u + 101'000u);
  EXPECT_EQ(bed.statistics().link_credit_wait.sum_ps, 3 * 96'000u);
  EXPECT_EQ(bed.memory->outstanding(), 0u);
}

TEST(cxl_link, gpf_acknowledges_a_write_that_the_device_has) {
  memory_fixture cells(linked(false)), device(linked(true));
  const unsigned late = cells.write(0, 1), early = device.write(0, 1);
  cells.run(), device.run();
  constexpr picoseconds at_device = 8'000 + 25'000, answer = 4'000 + 25'000;
  EXPECT_EQ(cells.completed[late], at_device + 39'000u + answer);
  EXPECT_EQ(device.completed[early], at_device + answer);
  EXPECT_EQ(device.written[early].persisted, at_device + 39'000u) << "in the cells";
  EXPECT_EQ(device.statistics().link_write_latency.sum_ps, at_device + answer);
}

// The acknowledged write keeps its entry of the device's queue until it is in the cells.
TEST(cxl_link, gpf_gives_a_credit_back_when_the_cells_have_the_write) {
  memory_config c = linked(true);
  c.cxl_queue_entries = 1;
  memory_fixture bed(c);
  bed.write(0, 1);
  const unsigned second = bed.write(1, 1);
  bed.run();
  constexpr picoseconds credited = 33'000 + 39'000 + 25'000;
  EXPECT_EQ(bed.completed[second], credited + 33'000u + 29'000u);
}

TEST(cxl_link, a_crash_keeps_what_gpf_flushes_and_loses_what_is_on_the_link) {
  for (const bool gpf : {false, true}) {
    memory_fixture bed(linked(gpf));
    const std::uint64_t line = bed.address(0, 1);
    bed.write(0, 1);
    const auto place_at = [&](picoseconds when) {
      bed.run_until(when);
      return bed.memory->place_of_write(line);
    };
    EXPECT_EQ(place_at(32'999), write_place::on_link) << gpf;
    // Without GPF the cells may have a part of it.
    const write_place at_device = gpf ? write_place::flushed_by_device : write_place::unknown;
    EXPECT_EQ(place_at(33'000), at_device) << gpf;
    EXPECT_EQ(place_at(61'999), at_device) << gpf;
    EXPECT_EQ(place_at(62'000), write_place::unknown) << gpf;
    EXPECT_EQ(bed.completed.size(), gpf ? 1u : 0u);
    EXPECT_EQ(bed.memory->place_of_write(line + 64), write_place::unknown);
  }
}

// A small machine of Kiln whose nonvolatile memory is behind the link.
machine_config behind_link(machine_config m, bool gpf) {
  m.nonvolatile_memory.cxl_flit_bytes = 68;
  m.nonvolatile_memory.cxl_bytes_per_ns = 16, m.nonvolatile_memory.cxl_latency_ns = 40;
  m.nonvolatile_memory.cxl_queue_entries = 4;
  m.nonvolatile_memory.cxl_gpf = gpf;
  return m;
}

TEST(cxl_link, crashes_leave_whole_transactions) {
  unsigned n = 0;
  for (const machine_config& m : crash_machines()) {
    if (++n % 4 != 1) continue;
    for (const bool gpf : {false, true}) {
      const auto r = crash_machine(behind_link(m, gpf), make_tape({.transactions = 100, .seed = n}),
                                   {.crashes = 100, .seed = n});
      ASSERT_TRUE(r) << r.error().message;
      EXPECT_EQ(r->violations.size(), 0u) << n << ' ' << gpf << ' ' << r->violations.front().what;
      EXPECT_EQ(r->transactions, 100u);
    }
  }
}

// Version 2 of a line is being written over version 1.
TEST(cxl_link, a_crash_settles_a_write_in_progress) {
  using versions = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  for (const bool gpf : {false, true}) {
    memory_fixture bed(linked(gpf));
    const std::uint64_t line = bed.address(0, 1) / line_bytes;
    bed.write(0, 1);
    const auto left_at = [&](picoseconds when) {
      bed.run_until(when);
      nonvolatile_state left;
      left.lines[line] = 1;
      left.torn = {{line, 2}};
      settle(left, *bed.memory);
      return left;
    };
    const nonvolatile_state on_link = left_at(20'000), in_device = left_at(40'000);
    EXPECT_EQ(on_link.torn, versions()) << gpf;
    EXPECT_EQ(on_link.lines.at(line), 1u) << "lost on the link";
    EXPECT_EQ(in_device.torn, gpf ? versions() : versions({{line, 2}})) << gpf;
    EXPECT_EQ(in_device.lines.at(line), gpf ? 2u : 1u) << gpf;
  }
}

// A barrier leaves behind the writes before it: the second write waits until the first persists.
TEST(cxl_link, barriers_keep_their_place_between_writes) {
  memory_config c = linked();
  c.scheduler = "strict";
  memory_fixture bed(c);
  const unsigned first = bed.write(0, 1);
  bed.barrier();
  const unsigned second = bed.write(1, 1);
  bed.run();
  EXPECT_EQ(bed.written[first].persisted, 33'000u + 39'000u);
  EXPECT_EQ(bed.written[second].started, bed.written[first].persisted + 14'000u)
      << "its row is opened then";
}

TEST(cxl_link, the_volatile_memory_of_the_machine_stays_local) {
  machine_config m = machine_of("kiln");
  m.nonvolatile_memory.cxl_flit_bytes = 68, m.nonvolatile_memory.cxl_bytes_per_ns = 17;
  m.nonvolatile_memory.cxl_latency_ns = 25;
  ASSERT_TRUE(check_machine(m)) << check_machine(m).error().message;
  const base::scratch_directory dir;
  const auto tape = make_tape({.transactions = 20, .lines = 64});
  std::ofstream(dir.file("tape"), std::ios::binary)
      .write(reinterpret_cast<const char*>(tape.data()), static_cast<std::streamsize>(tape.size()));
  const auto r =
      run_machine(m, {.tape = dir.file("tape"), .commands = {}, .progress = {}, .cancelled = {}});
  ASSERT_TRUE(r) << r.error().message;
  const quantity* const read = find(*r, "nonvolatile_memory.cxl.read_latency");
  ASSERT_NE(read, nullptr);
  EXPECT_GE(read->value, 25 + 4 + 25 + 8 + 25) << "at least a row hit";
  EXPECT_EQ(find(*r, "volatile_memory.cxl.read_latency"), nullptr);
}

TEST(cxl_link, a_trace_has_the_latencies_of_the_link) {
  machine_config m;
  m.nonvolatile_memory = linked();
  const base::scratch_directory dir;
  std::ofstream(dir.file("trace")) << "0x0 READ 0\n0x4000 WRITE 1000\n";
  memory_run_options o;
  o.trace = dir.file("trace"), o.format = "dramsim3";
  const auto r = run_memory(m, o);
  ASSERT_TRUE(r) << r.error().message;
  const auto of = [&](const char* what) {
    return find(*r, std::string("nonvolatile_memory.cxl.") + what)->value;
  };
  EXPECT_EQ(r->simulated, 1'000'000u + 101'000u);
  EXPECT_DOUBLE_EQ(of("read_latency"), 96);
  EXPECT_DOUBLE_EQ(of("write_latency"), 101);
  EXPECT_DOUBLE_EQ(of("credit_wait"), 0);
  EXPECT_DOUBLE_EQ(of("to_device"), 100 * 6 / 1101.0);
  EXPECT_DOUBLE_EQ(of("to_host"), 100 * 6 / 1101.0);
}

TEST(cxl_link, keys_without_effect_or_sense_are_refused) {
  const auto refusal = [](const std::string& keys) {
    const auto m = parse_machine("[nonvolatile_memory]\n" + keys, "m.toml");
    return m ? std::string("accepted") : m.error().message;
  };
  const std::string link = "technology = 'stt-mram'\ncxl_flit_bytes = 68\ncxl_bytes_per_ns = 32\n";
  EXPECT_EQ(refusal(link + "cxl_latency_ns = 20\ncxl_gpf = true"), "accepted");
  for (const char* key : {"cxl_latency_ns = 9", "cxl_bytes_per_ns = 9", "cxl_queue_entries = 9"})
    EXPECT_THAT(refusal(key),
                HasSubstr("has no effect: nonvolatile_memory.cxl_flit_bytes is 0: a local memory"));
  EXPECT_THAT(refusal("cxl_flit_bytes = 64\ncxl_bytes_per_ns = 32"),
              HasSubstr("m.toml:2: nonvolatile_memory: cxl_flit_bytes is 64; CXL has flits of 68"));
  EXPECT_THAT(refusal("cxl_flit_bytes = 68"), HasSubstr("cxl_bytes_per_ns is not above 0"));
  EXPECT_THAT(refusal("cxl_flit_bytes = 256\ncxl_bytes_per_ns = 32\ncxl_gpf = true"),
              HasSubstr("nonvolatile_memory.cxl_gpf has no effect: the memory loses its lines"));
}

// What the requesters see of a load with waits for credits.
std::map<unsigned, picoseconds> outcome_of(const memory_config& c) {
  memory_fixture bed(c);
  for (unsigned i = 0; i < 400; ++i) {
    i % 3 == 0 ? bed.write(i % 4, i % 7, i % 16) : bed.read(i % 4, i % 5, i % 16);
    if (i % 50 == 49) bed.run_until(bed.events.now() + 300'000);
  }
  bed.run();
  EXPECT_EQ(bed.completed.size(), 400u);
  return bed.completed;
}

TEST(cxl_link, each_key_changes_a_run) {
  const auto before = outcome_of(linked());
  const auto with = [](auto change) {
    memory_config c = linked();
    change(c);
    return c;
  };
  EXPECT_NE(outcome_of(with([](auto& c) { c.cxl_flit_bytes = 256; })), before);
  EXPECT_NE(outcome_of(with([](auto& c) { c.cxl_flit_bytes = 0; })), before);
  EXPECT_NE(outcome_of(with([](auto& c) { c.cxl_bytes_per_ns = 34; })), before);
  EXPECT_NE(outcome_of(with([](auto& c) { c.cxl_latency_ns = 50; })), before);
  EXPECT_NE(outcome_of(with([](auto& c) { c.cxl_queue_entries = 4; })), before);
  EXPECT_NE(outcome_of(with([](auto& c) { c.cxl_gpf = true; })), before);
}

}  // namespace
}  // namespace stele::sim
