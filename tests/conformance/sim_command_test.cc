// The commands `stele tape` and `stele sim` as a user runs them: recording and converting tapes,
// machines, crashes, errors.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tests/conformance/command.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace stele {
namespace {

namespace fs = std::filesystem;
using testing::command_outcome, testing::run_command;
using ::testing::HasSubstr;

class sim_command : public ::testing::Test {
 protected:
  static command_outcome run(const std::string& arguments) { return run_command(arguments); }
  nlohmann::json json(const std::string& file) const {
    return nlohmann::json::parse(std::ifstream(dir_ / file));
  }
  std::string text(const std::string& file) const {
    std::stringstream content;
    content << std::ifstream(dir_ / file).rdbuf();
    return content.str();
  }
  std::string at(const std::string& file) const { return (dir_ / file).string(); }
  void record(const std::string& more) const {
    const auto o =
        run("tape record --kind native --workload hash --threads 4 --elements-bytes 64 --keys 256 "
            "--operations 400 " +
            more + " " + at("tape"));
    ASSERT_EQ(o.status, 0) << o.said;
  }

  // Runs the tape. Every run takes time, reads memory and moves no more than the buses of Kiln's
  // machine can: 64 bytes in 3.75 ns on each of two channels.
  nlohmann::json ran(const std::string& arguments, const std::string& result) const {
    const auto o = run("sim run " + at("tape") + " " + arguments + " --json " + at(result));
    EXPECT_EQ(o.status, 0) << o.said;
    if (o.status != 0) return {};
    auto j = json(result);
    EXPECT_EQ(j["machine"]["name"], "kiln");
    EXPECT_GT(j["simulated_ns"], 0);
    EXPECT_GT(j["quantities"]["nonvolatile_memory.reads"]["value"], 0);
    EXPECT_GT(j["quantities"]["rate.nonvolatile_memory"]["value"], 0);
    EXPECT_LE(j["quantities"]["rate.nonvolatile_memory"]["value"], 2 * 64 / 3.75);
    return j;
  }

  stele::base::scratch_directory scratch_{
      fs::temp_directory_path()};  // a plug-in is loaded from it
  fs::path dir_ = scratch_.path();
};

TEST_F(sim_command, runs_a_native_tape_twice_to_the_same_byte) {
  record("");
  const auto one = ran("--timeline-ns 10000", "a"), other = ran("--timeline-ns 10000", "b");
  EXPECT_EQ(one, other);
  EXPECT_EQ(one["quantities"]["run.transactions"]["value"], 400);
  EXPECT_EQ(one["machine"]["l3"]["ways"], 16);
}

TEST_F(sim_command, writes_tables_that_programs_read) {
  record("");
  const auto o =
      run("sim compare " + at("tape") + " --designs native,kiln --timeline-ns 10000" + " --csv " +
          at("csv") + " --epochs-csv " + at("epochs") + " --histograms-csv " + at("histograms"));
  ASSERT_EQ(o.status, 0) << o.said;
  EXPECT_THAT(text("csv"), HasSubstr("\nkiln,run.transactions,400,\n"));
  EXPECT_THAT(text("epochs"), HasSubstr("\nkiln,10000,"));
  EXPECT_THAT(text("histograms"), HasSubstr("\nkiln,nonvolatile_memory.read_latency,"));
}

TEST_F(sim_command, writes_the_commands_of_one_run_alone) {
  record("");
  ran("--commands " + at("commands"), "a");
  EXPECT_THAT(text("commands.nonvolatile_memory"), HasSubstr("activate"));
  EXPECT_TRUE(fs::exists(dir_ / "commands.volatile_memory"));
  for (const auto& [command, of] :
       {std::pair{"compare", " --designs native,kiln"}, {"sweep", " --over l3.ways=8,16"}}) {
    const auto o =
        run("sim " + std::string(command) + " " + at("tape") + of + " --commands " + at("c"));
    EXPECT_NE(o.status, 0);
    EXPECT_THAT(o.said, HasSubstr("give it to stele sim run"));
  }
}

TEST_F(sim_command, resumes_a_run_with_what_its_checkpoint_says) {
  record("");
  const std::string options = "--seed 3 --warm-up 50 --timeline-ns 10000 --set l3.ways=8 ";
  const auto whole = ran(options + "--checkpoint " + at("c") + " --checkpoint-at 5000", "a");
  const auto resume = [&](const std::string& more) {
    return run("sim run --resume " + at("c") + " --json " + at("b") + more);
  };
  EXPECT_EQ(resume("").status, 0);
  EXPECT_EQ(json("b"), whole);
  fs::rename(dir_ / "tape", dir_ / "moved");
  EXPECT_THAT(resume("").said, HasSubstr("cannot read the tape " + at("tape")));
  EXPECT_EQ(resume(" " + at("moved") + " --seed 3 --set l3.ways=8").status, 0);
  EXPECT_THAT(resume(" " + at("moved") + " --seed 4").said, HasSubstr("its seed is 3"));
  EXPECT_THAT(resume(" " + at("moved") + " --design rlog").said, HasSubstr("[l3] \"ways = 8\""));
  EXPECT_THAT(run("sim run").said, HasSubstr("name a tape, or a checkpoint"));
  const auto late =
      run("sim run " + at("moved") + " --checkpoint " + at("d") + " --checkpoint-at 1e12");
  EXPECT_EQ(late.status, 0);
  EXPECT_THAT(late.said, HasSubstr("ended before --checkpoint-at"));
  EXPECT_FALSE(fs::exists(dir_ / "d"));
}

TEST_F(sim_command, compares_designs_and_sweeps_a_key) {
  record("");
  const auto compared =
      run("sim compare " + at("tape") + " --designs native,kiln,crlog,culog,rlog,ulog");
  EXPECT_EQ(compared.status, 0) << compared.said;
  EXPECT_THAT(compared.said, HasSubstr("culog"));
  const auto swept =
      run("sim sweep " + at("tape") + " --over l3.read_latency_ns=15,30 --show rate.transactions");
  EXPECT_EQ(swept.status, 0) << swept.said;
}

TEST_F(sim_command, replays_a_real_mechanism_on_kilns_machine) {
  const auto o =
      run("tape record --workload hash --mechanism blurred --threads 2 --operations 200 --keys 64 "
          "--filled --dir " +
          dir_.string() + " " + at("tape"));
  ASSERT_EQ(o.status, 0) << o.said;
  const auto j = ran("--design native --set design.isolation=none", "a");
  EXPECT_EQ(j["quantities"]["run.operations"]["value"], 200);
  EXPECT_GT(j["quantities"]["rate.operations"]["value"], 0);
  EXPECT_GT(j["quantities"]["run.loads"]["value"], 200);
  EXPECT_GT(j["quantities"]["nonvolatile_memory.writes"]["value"], 200);
}

TEST_F(sim_command, tells_what_coalescing_does_to_the_lines_of_a_tape) {
  const auto lines_of_home = [&](const std::string& more) -> double {
    const auto o =
        run("tape record --workload kv --value-size 128 --mechanism undo --no-bytes --filled "
            "--operations 300 --keys 256 --dir " +
            dir_.string() + " " + more + " " + at("tape"));
    EXPECT_EQ(o.status, 0) << o.said;
    EXPECT_EQ(run("tape dirtiness " + at("tape") + " --json " + at("a")).status, 0);
    EXPECT_EQ(json("a")["home"]["eighths"].size(), 9u);
    EXPECT_GT(json("a")["all"]["mean"], json("a")["home"]["mean"])
        << "logs are written by whole lines";
    return json("a")["home"]["lines"];
  };
  EXPECT_LT(lines_of_home("--coalesce"), lines_of_home(""));
  const auto refused = run("tape record --workload sps --coalesce " + at("tape"));
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.said, HasSubstr("coalescing memory"));
}

TEST_F(sim_command, crashes_a_tape_with_bytes_and_finds_a_planted_bug) {
  record("--bytes");
  const auto sound = run("sim crash " + at("tape") + " --crashes 500 --json " + at("a"));
  EXPECT_EQ(sound.status, 0) << sound.said;
  EXPECT_GT(json("a")["with_pending"], 10);
  const auto planted = run("sim crash " + at("tape") + " --crashes 500 --fault committed_early");
  EXPECT_EQ(planted.status, 1) << planted.said;
  const auto line = planted.said.find("stele sim crash");
  ASSERT_NE(line, std::string::npos) << planted.said;
  const std::string again = planted.said.substr(line + 6, planted.said.find('\n', line) - line - 6);
  EXPECT_EQ(run(again).status, 1) << again;
}

TEST_F(sim_command, refuses_in_sentences) {
  record("");
  EXPECT_THAT(run("sim run " + at("tape") + " --machine kilm").said,
              HasSubstr("nearest is 'kiln'"));
  EXPECT_THAT(run("sim run " + at("tape") + " --set l3.waiys=8").said, HasSubstr("ways"));
  EXPECT_THAT(run("sim run " + at("none")).said, HasSubstr("cannot read the tape"));
  EXPECT_THAT(run("sim crash " + at("tape")).said, HasSubstr("--bytes"));
  EXPECT_THAT(run("sim run " + at("tape") + " --warm-up 100000").said, HasSubstr("fewer than"));
}

// The commands of docs/guide/lab.md, which are the lines that four spaces indent, beside its
// scheduler's source.
TEST_F(sim_command, runs_every_command_of_the_guide) {
  std::ifstream page(STELE_SOURCE_DIR "/docs/guide/lab.md");
  unsigned commands = 0;
  bool fenced = false;  // code of another language
  std::ofstream source;
  for (std::string line; std::getline(page, line);) {
    if (source.is_open() && !line.starts_with("```")) source << line << '\n';
    if (line == "```cpp") source.open(dir_ / "reads_first.cc");
    if (line == "```") source.close();
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || !line.starts_with("    ")) continue;
    std::string command = line.substr(4);
    const std::string name = "stele-lab ";
    if (command.starts_with(name)) command.replace(0, name.size(), STELE_COMMAND " ");
    EXPECT_EQ(std::system(("cd " + dir_.string() + " && export STELE='" STELE_SOURCE_DIR "' && (" +
                           command + ") > /dev/null")
                              .c_str()),
              0)
        << command;
    ++commands;
  }
  EXPECT_EQ(commands, 14u);
  EXPECT_EQ(text("again.json"), text("run.json")) << "resumed";
  for (const char* file : {"run.csv", "designs.csv", "sweep.csv", "epochs.csv", "histograms.csv",
                           "memory.csv", "commands.trace"})
    EXPECT_GT(fs::file_size(dir_ / file), 50u) << file;
  EXPECT_EQ(json("reads_first.json")["plugins"][0]["file"],
            fs::canonical(dir_ / "reads_first.so").string());
}

TEST_F(sim_command, runs_a_trace_on_a_memory_alone) {
  std::ofstream(dir_ / "trace") << "0x1000 READ 0\n0x2000 WRITE 10\n0x3000 READ 20";
  const auto on_memory = [&](const std::string& more) {
    return run("sim memory --machine ddr4-2400 --trace " + at("trace") + more);
  };
  const auto o = on_memory(" --format dramsim3 --commands " + at("commands") + " --json " +
                           at("a") + " --csv " + at("csv"));
  ASSERT_EQ(o.status, 0) << o.said;
  EXPECT_EQ(json("a")["quantities"]["nonvolatile_memory.reads"]["value"], 2);
  EXPECT_THAT(text("csv"), HasSubstr("\nnonvolatile_memory,run.requests,3,\n"));
  EXPECT_THAT(text("commands"), HasSubstr("activate"));
  const auto refused = on_memory(" --format ramulator2");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.said, HasSubstr("trace:1: \"0x1000 READ 0\": expected \"LD address\""));
}

TEST_F(sim_command, converts_a_trace_and_runs_it) {
  std::ofstream(dir_ / "trace") << "0x1000 READ 0\n0x2000 WRITE 10\n0x3000 READ 20";
  const auto o = run("tape convert --from dramsim3 " + at("trace") + " " + at("tape"));
  ASSERT_EQ(o.status, 0) << o.said;
  const auto j = ran("--design native", "a");
  EXPECT_EQ(j["quantities"]["run.loads"]["value"], 2);
  EXPECT_EQ(j["quantities"]["run.stores"]["value"], 1);
}

TEST_F(sim_command, places_what_is_not_persistent_in_the_dram) {
  std::ofstream(dir_ / "trace") << " S 04a01008,8\n L 1fff000758,8\n L 1fff000800,8\n";
  const std::string convert = "tape convert --from lackey " + at("trace") + " " + at("tape");
  const auto o = run(convert + " --persistent 0x4a00000-0x5000000");
  ASSERT_EQ(o.status, 0) << o.said;
  const auto j = ran("", "a");
  EXPECT_EQ(j["quantities"]["nonvolatile_memory.reads"]["value"], 1);
  EXPECT_EQ(j["quantities"]["volatile_memory.reads"]["value"], 2);
  EXPECT_THAT(run(convert + " --persistent 0x4a00001-0x5000000").said, HasSubstr("of 4096"));
}

TEST_F(sim_command, refuses_what_exceeds_a_memory_before_it_runs) {
  std::ofstream(dir_ / "trace") << "0x40 READ 0\n0x80000000 WRITE 10\n";
  ASSERT_EQ(run("tape convert --from dramsim3 " + at("trace") + " " + at("tape")).status, 0);
  for (const auto& [command, options] : {std::pair{"run ", ""},
                                         {"compare ", " --designs native,kiln"},
                                         {"sweep ", " --over l3.ways=8,16"}}) {
    const auto o =
        run("sim " + std::string(command) + at("tape") + options + " --csv " + at("csv"));
    EXPECT_EQ(o.status, 1) << o.said;
    EXPECT_THAT(o.said, HasSubstr("64 bytes at 0x80000000, and nonvolatile_memory.capacity_bytes "
                                  "is 2147483648; give"));
    EXPECT_FALSE(fs::exists(dir_ / "csv"));
  }
  EXPECT_EQ(
      run("sim run " + at("tape") + " --set nonvolatile_memory.capacity_bytes=4294967296").status,
      0);
  EXPECT_THAT(
      run("sim memory --machine kiln --format dramsim3 --trace " + at("trace")).said,
      HasSubstr("a request to 0x80000000, and the memory's capacity_bytes is 2147483648; give"));
}

// A key of one design has no effect on another: alone it is refused, side by side it is left out.
TEST_F(sim_command, leaves_a_key_out_where_a_design_has_no_use_for_it) {
  record("");
  const std::string relaxed = " --set design.order=relaxed";
  EXPECT_THAT(run("sim run " + at("tape") + " --design native" + relaxed).said,
              HasSubstr("design.order has no effect: only the design kiln has it"));
  EXPECT_THAT(run("sim compare " + at("tape") + " --designs native,rlog" + relaxed).said,
              HasSubstr("design.order has no effect"));
  const auto o =
      run("sim compare " + at("tape") + " --designs native,kiln" + relaxed + " --json " + at("a"));
  ASSERT_EQ(o.status, 0) << o.said;
  EXPECT_EQ(json("a")["runs"][0]["machine"]["design"]["order"], "strong");
  EXPECT_EQ(json("a")["runs"][1]["machine"]["design"]["order"], "relaxed");
}

}  // namespace
}  // namespace stele
