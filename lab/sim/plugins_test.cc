// Plug-ins, compiled by a plain g++ outside of this build: a device, a design and a scheduler of
// one run on a machine and are named in its results; each fault is a sentence with the file and
// what to do, and leaves nothing behind.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/checkpoint.h>
#include <sim/config_file.h>
#include <sim/controller/memory_fixture.h>
#include <sim/crash.h>
#include <sim/machine.h>
#include <sim/memory_run.h>
#include <sim/plugin.h>
#include <sim/plugins.h>
#include <sim/result.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace stele::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class plugins : public testing::Test {
 protected:
  std::string compile(const std::string& name, const std::string& code) const {
    const std::string object = dir_.file(name + ".so"), source = dir_.file(name + ".cc");
    std::ofstream(source) << code;
    const std::string command = "g++ -std=c++23 -fPIC -shared -I '" STELE_SOURCE_DIR
                                "/include' -I '" STELE_SOURCE_DIR "/src' -I '" STELE_SOURCE_DIR
                                "/lab' '" +
                                source + "' -o '" + object + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << code;
    return object;
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.file(name)) << text;
    return dir_.file(name);
  }
  // What is said of a machine file that names the plug-in.
  static std::string said_of(const std::string& file, const std::string& more = "") {
    const auto m = parse_machine("plugins = [\"" + file + "\"]\n" + more, "m.toml");
    return m ? "nothing" : m.error().message;
  }

  // Memory may be mounted so that no code of it runs.
  const base::scratch_directory dir_{std::filesystem::temp_directory_path()};
};

// An entry function without this tree's headers, but with their version.
std::string entry_that(const std::string& does, std::uint64_t headers = plugin_headers()) {
  return "#include <stdexcept>\nextern \"C\" unsigned long stele_sim_plugin(void* to) {\n  if "
         "(to) " +
         does + ";\n  return " + std::to_string(headers) + "ul;\n}\n";
}

TEST_F(plugins, that_cannot_be_used_are_refused_with_file_and_remedy) {
  const auto faults = {
      std::tuple{std::string("there/is/none.so"), "m.toml:1: there is no plug-in there/is/none.so",
                 "give the path of a shared object"},
      {dir_.path().string(), "m.toml:1: there is no plug-in /", "give the path of a shared object"},
      {write("text.so", "no code"), "text.so cannot be loaded", "compile it as docs/guide/lab.md"},
      {compile("bare", "int nothing;"), "bare.so has no function stele_sim_plugin",
       "define it with STELE_SIM_PLUGIN"},
      {compile("old", entry_that("{}", plugin_headers() + (std::uint64_t{6} << 32))),
       "old.so was compiled for version 8 of plug-ins, and this laboratory has version 2",
       "compile it again"},
      {compile("other", entry_that("{}", plugin_headers() ^ 1)),
       "other.so was compiled with headers whose classes have other sizes", "compile it again"},
      {compile("throwing", entry_that("throw std::runtime_error(\"no licence\")")),
       "throwing.so throws when it is loaded: no licence", "mend its STELE_SIM_PLUGIN"},
      {compile("strange", entry_that("throw 3")), "strange.so throws what is no std::exception",
       "mend its STELE_SIM_PLUGIN"},
      {compile("empty", entry_that("{}")), "empty.so adds nothing", "add a scheduler, device"}};
  for (const auto& [file, what, remedy] : faults)
    EXPECT_THAT(said_of(file), AllOf(HasSubstr(what), HasSubstr(remedy)));
}

// One that adds these, after a scheduler of its own.
std::string adding(const std::string& more) {
  return "#include <sim/plugin.h>\nSTELE_SIM_PLUGIN(parts) {\n"
         "  parts.schedulers.push_back({\"new\", false, false, "
         "stele::sim::schedulers().find(\"fcfs\")->make});\n" +
         more + "}\n";
}

TEST_F(plugins, are_refused_as_a_whole_for_a_name_that_is_taken) {
  const std::string strict =
      compile("strict", adding("  parts.schedulers.push_back({\"strict\", true, true, "
                               "parts.schedulers[0].make});\n"));
  EXPECT_THAT(said_of(strict), HasSubstr("strict.so adds the scheduler \"strict\", a name that the "
                                         "laboratory has; give it another"));
  const std::string incomplete =
      compile("incomplete", adding("  parts.devices.push_back({\"hollow\", nullptr});\n"));
  EXPECT_THAT(said_of(incomplete), HasSubstr("adds a device without a name or a function"));
  EXPECT_EQ(schedulers().find("new"), nullptr);
  EXPECT_EQ(devices().find("hollow"), nullptr);
}

constexpr const char* mine = R"(#include <sim/controller/fr_fcfs.h>
#include <sim/plugin.h>
#include <stdexcept>
using namespace stele::sim;

// Cells that take 300 ns, and a third of it in logs.
static stele::result<write_pulses> slow(const memory_config& c) {
  return write_pulses{from_ns(c.write_pulse_ns), from_ns(c.write_pulse_ns) / 3};
}
// A store of a line that the transaction will need is made twice as dear: it is read before.
class reading final : public design {
 public:
  explicit reading(hierarchy& caches) : sets_(caches.shared().sets()) {}
  bool intercepts_stores() const noexcept override { return sets_ != 0; }
  bool before_store(unsigned, std::uint64_t first, std::size_t, std::size_t,
                    action_list& p) override {
    p.push_back({action::kind::load, first + 4096});
    ++stores_;
    return stores_ % 5 == 0 && (p.push_back({action::kind::fence, 0}), false);
  }
  void visit_state(archive& a) override { a(stores_); }
 private:
  std::size_t sets_, stores_ = 0;
};
class silent final : public design {};
static stele::result<std::unique_ptr<design>> make_silent(const design_context&) {
  return std::make_unique<silent>();
}
static stele::result<std::unique_ptr<design>> make_reading(const design_context& w) {
  return std::make_unique<reading>(w.caches);
}
static stele::result<std::unique_ptr<design>> make_nothing(const design_context&) {
  return std::unique_ptr<design>();
}
class failing final : public fr_fcfs_scheduler {  // a class of the laboratory's
 public:
  failing(const channel_state& s, const memory_config& c) : fr_fcfs_scheduler(s, c) {}
 protected:
  bool may_start(const entry& e) const override {
    if (e.number >= 3) throw std::runtime_error("request 3 is not to my taste");
    return true;
  }
};
STELE_SIM_PLUGIN(parts) {
  parts.devices.push_back({"slow-cells", slow});
  parts.designs.push_back({"reading", make_reading});
  parts.designs.push_back({"absent", make_nothing});
  parts.designs.push_back({"silent", make_silent});
  const auto make = [](const channel_state& s, const memory_config& c,
                       const epoch_tracker&) -> std::unique_ptr<scheduler> {
    return std::make_unique<failing>(s, c);
  };
  const auto none = [](const channel_state&, const memory_config&,
                       const epoch_tracker&) -> std::unique_ptr<scheduler> { return nullptr; };
  parts.schedulers.push_back({"failing", false, false, make});
  parts.schedulers.push_back({"no-scheduler", false, false, none});
}
)";

class plugin_of_all_parts : public plugins {
 protected:
  void SetUp() override {
    // One file for all tests of this program.
    static const base::scratch_directory where(std::filesystem::temp_directory_path());
    file_ = where.file("mine.so");
    if (!std::filesystem::exists(file_)) std::filesystem::copy_file(compile("mine", mine), file_);
  }
  machine_config machine(const std::string& more) const {
    const auto m = parse_machine("plugins = [\"" + file_ + "\"]\n" + more, "m.toml");
    EXPECT_TRUE(m) << m.error().message;
    return m ? *m : machine_config{};
  }
  result<run_result> run(const machine_config& m) const {
    run_options o;
    o.tape = write_tape();
    return run_machine(m, o);
  }
  std::string write_tape() const {
    const auto bytes = make_tape({.threads = 2, .transactions = 20, .lines = 64});
    const std::string tape = dir_.file("tape");
    std::ofstream(tape, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return tape;
  }

  std::string file_;
};

TEST_F(plugin_of_all_parts, has_a_device_with_times_of_its_own) {
  const machine_config m =
      machine("[nonvolatile_memory]\ntechnology = \"slow-cells\"\nwrite_pulse_ns = 300\n");
  memory_fixture bed(m.nonvolatile_memory);
  ASSERT_TRUE(bed.memory->set_ranges({{0, 4096, 4096, 4160}}));
  const unsigned data = bed.submit(access::write, 1 << 20);
  bed.run();
  EXPECT_EQ(bed.completed[data], 300'000u);
  const unsigned log = bed.submit(access::write, 0);
  bed.run();
  EXPECT_EQ(bed.completed[log] - bed.completed[data], 100'000u);
}

TEST_F(plugin_of_all_parts, has_a_design_and_results_name_its_file) {
  const auto plain = run(machine("")), read = run(machine("[design]\nname = \"reading\"\n"));
  ASSERT_TRUE(plain && read) << read.error().message;
  EXPECT_GT(find(*read, "run.loads")->value, find(*plain, "run.loads")->value);
  EXPECT_THAT(table_of(*read), HasSubstr("\nplug-in  design reading of " + file_ + "\n"));
  const auto json = json_of(*read);
  ASSERT_EQ(json["plugins"].size(), 1u);
  EXPECT_EQ(json["plugins"][0]["part"], "design");
  EXPECT_EQ(json["plugins"][0]["name"], "reading");
  EXPECT_EQ(json["plugins"][0]["file"], file_);
  EXPECT_EQ(json["machine"]["plugins"][0], file_);
  EXPECT_FALSE(json_of(*plain).contains("plugins"));
  const auto again = parse_machine(toml_of(read->machine), "m.toml");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(toml_of(*again), toml_of(read->machine));
}

TEST_F(plugin_of_all_parts, ends_a_run_with_a_sentence_when_it_throws_or_makes_nothing) {
  const auto said = [&](const std::string& more) {
    const auto r = run(machine(more));
    return r ? "nothing" : r.error().message;
  };
  EXPECT_THAT(said("[design]\nname = \"rlog\"\n[nonvolatile_memory]\nscheduler = \"failing\"\n"),
              AllOf(HasSubstr(file_), HasSubstr("threw: request 3 is not to my taste"),
                    HasSubstr("mend the plug-in or leave it out")));
  EXPECT_THAT(
      said("[nonvolatile_memory]\nscheduler = \"no-scheduler\"\n"),
      AllOf(HasSubstr(file_ + " makes no scheduler"), HasSubstr("let its make return one")));
  EXPECT_THAT(said("[design]\nname = \"absent\"\n"),
              AllOf(HasSubstr(file_ + " makes no design"), HasSubstr("let its make return one")));
}

// Those who do not say what their state is are refused before the run, not hours into it.
TEST_F(plugin_of_all_parts, has_checkpoints_when_it_says_what_its_state_is) {
  run_options o;
  o.tape = write_tape();
  o.checkpoint = dir_.file("checkpoint");
  const auto said = [&](const std::string& more) {
    const auto r = run_machine(machine(more), o);
    return r ? "nothing" : r.error().message;
  };
  EXPECT_THAT(said("[design]\nname = \"silent\"\n"),
              AllOf(HasSubstr("the design \"silent\" of the plug-in " + file_),
                    HasSubstr("has no visit_state(); give it one")));
  EXPECT_THAT(said("[nonvolatile_memory]\nscheduler = \"failing\"\n"),
              AllOf(HasSubstr("the scheduler \"failing\" of the plug-in " + file_),
                    HasSubstr("or run without --checkpoint")));
  const machine_config m = machine("[design]\nname = \"reading\"\n");
  o.checkpoint_at = 2'000'000;
  const auto whole = run_machine(m, o);
  ASSERT_TRUE(whole) << whole.error().message;
  o.resume = o.checkpoint;
  const auto resumed = run_machine(m, o);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(json_of(*resumed), json_of(*whole));
  const auto of_file = machine_of(o.resume, read_checkpoint(o.resume)->subject);
  ASSERT_FALSE(of_file);
  EXPECT_THAT(of_file.error().message, HasSubstr("no code is run because of this file"));
}

TEST_F(plugin_of_all_parts, is_loaded_once_and_by_its_machine_only) {
  machine("");
  EXPECT_THAT(said_of(file_), "nothing") << "again";
  const auto other = parse_machine("[design]\nname = \"reading\"\n", "other.toml");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              HasSubstr("other.toml:2: design.name is reading, which the plug-in " + file_ +
                        " has, and the machine does not name it; add it to plugins"));
  const std::string copy = dir_.file("copy.so");
  std::filesystem::copy_file(file_, copy);
  EXPECT_THAT(said_of(copy), HasSubstr("copy.so adds the scheduler \"failing\", a name that " +
                                       file_ + " has; give it another"));
}

TEST_F(plugin_of_all_parts, is_named_relative_to_the_machine_file_and_in_a_set_key) {
  std::filesystem::create_directory(dir_.file("lib"));
  std::filesystem::create_symlink(file_, dir_.file("lib/mine.so"));
  const auto m = load_machine(write("m.toml", "plugins = [\"lib/mine.so\"]\n"));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->plugins, std::vector<std::string>{file_});
  machine_config set;
  EXPECT_TRUE(set_key(set, "plugins", "[\"" + file_ + "\"]"));
  EXPECT_TRUE(set_key(set, "design.name", "reading"));
  EXPECT_TRUE(check_machine(set));
  const auto wrong = set_key(set, "plugins", "[\"none.so\"]");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("there is no plug-in none.so"));
  EXPECT_THAT(parse_machine("plugins = \"mine.so\"", "m.toml").error().message,
              HasSubstr("m.toml:1: plugins is a string; give an array of strings"));
}

}  // namespace
}  // namespace stele::sim
