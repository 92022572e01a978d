// Whole runs through files: a run that was interrupted, or that wrote checkpoints, and was resumed
// has the result of one that was not, with its time line, histograms, wear and commands.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/checkpoint.h>
#include <sim/checkpoint_fixture.h>
#include <sim/machine.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace stele::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class checkpoint_run : public testing::Test {
 protected:
  void write_tape(std::span<const std::byte> tape) {
    std::ofstream(tape_, std::ios::binary)
        .write(reinterpret_cast<const char*>(tape.data()),
               static_cast<std::streamsize>(tape.size()));
  }
  run_options options(std::uint64_t warm_up = 0, picoseconds epoch = 0) const {
    run_options o;
    o.tape = tape_;
    o.seed = 5;
    o.warm_up_transactions = warm_up;
    o.timeline_interval = epoch;
    return o;
  }
  static std::string json(const machine_config& m, const run_options& o) {
    const auto r = run_machine(m, o);
    return r ? json_of(*r).dump(1) : r.error().message;
  }
  static std::string said(const machine_config& m, const run_options& o) {
    const auto r = run_machine(m, o);
    return r ? "nothing" : r.error().message;
  }
  // A run that writes its state to file_ at `at`.
  run_options saving(run_options o, picoseconds at) const {
    o.checkpoint = file_;
    o.checkpoint_at = at;
    return o;
  }
  run_options resuming(run_options o) const {
    o.resume = file_;
    return o;
  }

  const base::scratch_directory dir_;
  const std::string tape_ = dir_.file("tape"), file_ = dir_.file("checkpoint");
};

TEST_F(checkpoint_run, has_the_result_of_one_that_was_never_interrupted) {
  for (const char* preset : {"kiln", "dp2", "pcm"})
    for (const std::uint64_t warm_up : {0, 30})
      for (const picoseconds epoch : {0, 400'000}) {
        machine_config m = small_caches("kiln", std::string(preset) == "kiln" ? "kiln" : "rlog",
                                        std::string(preset) == "dp2" ? "mutex" : "htm");
        if (std::string(preset) != "kiln") {
          m.l3.nonvolatile = false;
          m.nonvolatile_memory = machine_of(preset).nonvolatile_memory;
          m.nonvolatile_memory.endurance_writes = 1e8;
        }
        write_tape(make_tape({.transactions = 100, .seed = 6}));
        const run_options o = options(warm_up, epoch);
        const std::string whole = json(m, o);
        EXPECT_THAT(whole, HasSubstr("quantities"));
        const auto end = run_machine(m, o)->simulated;
        for (const unsigned part : {2, 5}) {
          SCOPED_TRACE(std::string(preset) + ", " + std::to_string(part));
          EXPECT_EQ(json(m, saving(o, end * part / 7)), whole) << "saving changes nothing";
          EXPECT_EQ(json(m, resuming(o)), whole);
        }
      }
}

// The nonvolatile memory has ended its work, the slower volatile one has not.
TEST_F(checkpoint_run, knows_the_last_write_of_a_memory_that_has_ended) {
  machine_config m = small_caches("kiln-sram-l3", "native", "none");
  m.volatile_memory.write_pulse_ns = 50'000;
  m.volatile_memory.write_back_rows = false;
  const auto tape = media::tape_writer::to_memory({});
  // All lines are of one set of the last cache: the last 16 evict the first, volatile ones first.
  for (unsigned i = 0; i < 32; ++i)
    tape->event(media::tape_op::store, 0, (i < 8 ? volatile_memory_at : 0) + i * 512, 64);
  ASSERT_TRUE(tape->finish());
  write_tape(tape->memory());
  const run_options o = options();
  const std::string whole = json(m, o);
  EXPECT_EQ(json(m, saving(o, 10'000'000)), whole) << "one volatile line is still to be written";
  EXPECT_EQ(json(m, resuming(o)), whole);
}

// Each run is interrupted after some events and goes on from the file of the one before.
TEST_F(checkpoint_run, may_be_interrupted_again_and_again) {
  machine_config m = small_caches("kiln", "rlog", "htm");
  write_tape(make_tape({.transactions = 20'000, .seed = 6}));
  const run_options o = options(50, 10'000'000);
  const std::string whole = json(m, o);
  run_options part = o;
  part.checkpoint = file_;
  unsigned runs = 0;
  for (std::string got; got != whole; ++runs) {
    ASSERT_LT(runs, 100u);
    unsigned asked = 0;
    part.cancelled = [&] { return ++asked == 60; };
    const auto r = run_machine(m, part);
    if (r) {
      got = json_of(*r).dump(1);
      ASSERT_EQ(got, whole);
    } else {
      ASSERT_EQ(r.error().code, errc::cancelled) << r.error().message;
    }
    part.resume = file_;
  }
  EXPECT_GT(runs, 2u);
}

TEST_F(checkpoint_run, writes_one_at_each_multiple_and_goes_on_to_the_next) {
  machine_config m = small_caches("kiln", "kiln", "htm");
  write_tape(make_tape({.transactions = 200, .seed = 6}));
  const run_options o = options();
  const auto end = run_machine(m, o)->simulated;
  std::vector<picoseconds> at;
  run_options every = o;
  every.checkpoint = file_;
  every.checkpoint_every = end / 5;
  every.checkpointed = [&](const result<picoseconds>& when) { at.push_back(when ? *when : never); };
  const std::string whole = json(m, every);
  EXPECT_EQ(whole, json(m, o));
  ASSERT_GE(at.size(), 4u);
  for (std::size_t i = 0; i < at.size(); ++i) {
    EXPECT_LE(at[i], (i + 1) * (end / 5));
    EXPECT_GT(at[i], i * (end / 5));
  }
  const picoseconds last = at.back();
  EXPECT_EQ(read_checkpoint(file_)->subject.at, last);
  at.clear();
  every.resume = file_;
  EXPECT_EQ(json(m, every), whole);
  for (const picoseconds when : at) EXPECT_GT(when, last);
}

// The files go on where the checkpoint was, whatever was written after it.
TEST_F(checkpoint_run, goes_on_with_the_files_of_its_commands) {
  for (const char* preset : {"kiln", "ddr4-2400", "ddr5-4800-same-bank"}) {
    machine_config m = small_caches("kiln-sram-l3", "native", "htm");
    m.nonvolatile_memory = m.volatile_memory = machine_of(preset).nonvolatile_memory;
    m.nonvolatile_memory.open_page = m.volatile_memory.open_page = false;
    write_tape(mixed_tape(2000));
    const std::string commands = dir_.file("commands");
    run_options o = options();
    o.commands = commands;
    const std::string whole = json(m, o);
    const auto both = [&] {
      return text_of(commands + ".nonvolatile_memory") + text_of(commands + ".volatile_memory");
    };
    const std::string expected = both();
    ASSERT_GT(expected.size(), 10'000u);
    const auto end = run_machine(m, o)->simulated;
    for (const unsigned part : {1, 2, 3, 4}) {
      EXPECT_EQ(json(m, saving(o, end * part / 5)), whole);
      EXPECT_EQ(both(), expected);
      std::ofstream(commands + ".volatile_memory", std::ios::app) << "half a li";
      EXPECT_EQ(json(m, resuming(o)), whole);
      EXPECT_EQ(both(), expected) << preset;
    }
    EXPECT_THAT(said(m, resuming(options())), HasSubstr("give --commands with the same name"));
    std::filesystem::resize_file(commands + ".nonvolatile_memory", 10);
    EXPECT_THAT(said(m, resuming(o)), HasSubstr("is shorter than"));
    EXPECT_EQ(text_of(commands + ".nonvolatile_memory").size(), 10u) << "nothing was changed";
    o.commands = dir_.file("others");
    EXPECT_THAT(said(m, resuming(o)), HasSubstr("cannot go on with the commands in"));
  }
}

TEST_F(checkpoint_run, is_refused_when_it_is_another) {
  const machine_config m = small_caches("kiln", "kiln", "htm");
  write_tape(make_tape({.transactions = 100, .seed = 6}));
  const run_options o = options(10, 1'000'000);
  ASSERT_EQ(json(m, saving(o, 2'000'000)), json(m, o));
  const auto refused = [&](machine_config with, run_options how, const char* why) {
    EXPECT_THAT(said(with, resuming(how)), AllOf(HasSubstr(file_), HasSubstr(why)));
  };
  machine_config other = m;
  other.l3.ways = 16;
  refused(other, o, "its machine has [l3] \"ways = 8\", and this one \"ways = 16\"");
  other = m;
  other.design.isolation = "mutex";
  refused(other, o, "isolation");
  run_options how = o;
  how.seed = 6;
  refused(m, how, "its seed is 5, and this one's 6; give the same");
  how = o, how.warm_up_transactions = 11;
  refused(m, how, "its warm-up in transactions is 10");
  how = o, how.timeline_interval = 2'000'000;
  refused(m, how, "its epoch in ps is 1000000");
  how = o, how.commands = dir_.file("commands");
  for (const char* of : {".nonvolatile_memory", ".volatile_memory"})
    std::ofstream(how.commands + of);
  refused(m, how, "it writes no commands");
  // The same bytes elsewhere are the same tape; one other byte is not.
  std::filesystem::copy_file(tape_, dir_.file("copy"));
  how = o, how.tape = dir_.file("copy");
  EXPECT_THAT(json(m, resuming(how)), HasSubstr("quantities"));
  {
    std::fstream changed(how.tape, std::ios::in | std::ios::out | std::ios::binary);
    changed.seekp(-3, std::ios::end);
    changed.put('\x7f');
  }
  EXPECT_THAT(said(m, resuming(how)), AllOf(HasSubstr("its tape has"), HasSubstr(tape_)));
}

// A full disk at each write, and at the sync: the file before is as it was, and the run goes on.
TEST_F(checkpoint_run, keeps_the_last_good_file_when_a_write_fails) {
  class no_room final : public media::os::syscall_hook {
   public:
    int before(const media::os::request& r) noexcept override {
      return r.what == media::os::call::write ? ENOSPC : 0;
    }
  };
  const machine_config m = small_caches("kiln", "kiln", "htm");
  write_tape(make_tape({.transactions = 100, .seed = 6}));
  const run_options o = options(0, 500'000);
  const std::string whole = json(m, saving(o, 2'000'000)), before = text_of(file_);
  run_options again = saving(o, 10'000'000);
  std::string failure;
  again.checkpointed = [&](const result<picoseconds>& at) {
    if (!at) failure = at.error().message;
  };
  no_room full;
  media::os::install_hook(&full);
  const std::string got = json(m, again);
  unsigned asked = 0;
  again.checkpoint_at = never;
  again.cancelled = [&] { return ++asked == 1; };
  const std::string interrupted = said(m, again);
  media::os::install_hook(nullptr);
  EXPECT_EQ(got, whole);
  EXPECT_THAT(failure, AllOf(HasSubstr("cannot write the checkpoint " + file_),
                             HasSubstr("No space left"), HasSubstr("free space")));
  EXPECT_EQ(interrupted, failure);
  EXPECT_EQ(text_of(file_), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 2) << "no rest";
  EXPECT_EQ(json(m, resuming(o)), whole);
}

// Reading a checkpoint runs no code.
TEST_F(checkpoint_run, gives_its_machine_without_plug_ins) {
  checkpoint_subject of;
  of.machine = toml_of(machine_of("kiln"));
  ASSERT_TRUE(machine_of(file_, of));
  EXPECT_EQ(toml_of(*machine_of(file_, of)), of.machine);
  for (const char* line :
       {"\"plug\\u0069ns\" = [\"/no/where.so\"]\n", "base = \"/etc/passwd\"\n"}) {
    of.machine = line;
    const auto m = machine_of(file_, of);
    ASSERT_FALSE(m);
    EXPECT_THAT(m.error().message, HasSubstr("name the machine yourself"));
  }
}

}  // namespace
}  // namespace stele::sim
