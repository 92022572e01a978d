// The list of a sweep: each field of a point is in its line, and no point is listed that cannot
// run.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <lab_media/tape.h>
#include <sim/config_file.h>
#include <sim/job_list.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace stele::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class job_list_of_sweep : public testing::Test {
 protected:
  // One load of each thread.
  std::string tape(const char* name, unsigned threads, std::uint64_t address = 0) const {
    const auto made = media::tape_writer::to_memory({});
    for (unsigned t = 0; t < threads; ++t) made->event(media::tape_op::load, t, address, 8);
    EXPECT_TRUE(made->finish());
    const auto bytes = made->memory();
    std::ofstream(dir_.file(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return dir_.file(name);
  }
  sweep_axes axes() const {
    return {.machine = "m",
            .base = {},
            .keys = {{"l3.ways", {"8", "16"}}, {"cores.count", {"4"}}},
            .designs = {"native", "rlog"},
            .tapes = {tape("a", 1), tape("b", 2)},
            .seed = 7,
            .warm_up_transactions = 3};
  }
  static std::string error_of(const sweep_axes& a) {
    const auto made = job_list_of(a);
    if (made) return "no error";
    return made.error().message;
  }

  const base::scratch_directory dir_;
};

TEST_F(job_list_of_sweep, has_each_combination_once_with_all_that_tells_it_apart) {
  const sweep_axes a = axes();
  const auto made = job_list_of(a);
  ASSERT_TRUE(made) << made.error().message;
  std::istringstream lines(made->text);
  std::set<std::string> points;
  for (std::string line; std::getline(lines, line); points.insert(line)) {
    const auto job = nlohmann::ordered_json::parse(line);
    ASSERT_EQ(job.size(), 6u);
    EXPECT_EQ(job["machine"], "m");
    EXPECT_EQ(job["settings"]["cores.count"], "4");
    EXPECT_EQ(job["seed"], 7);
    EXPECT_EQ(job["warm_up"], 3);
  }
  EXPECT_EQ(points.size(), 8u);
  EXPECT_EQ(made->points, 8u);
  for (const auto& ways : a.keys[0].values)
    for (const auto& design : a.designs)
      for (const auto& tape : a.tapes)
        EXPECT_EQ(std::ranges::count_if(points,
                                        [&](const std::string& line) {
                                          const auto job = nlohmann::json::parse(line);
                                          return job["settings"]["l3.ways"] == ways &&
                                                 job["design"] == design && job["tape"] == tape;
                                        }),
                  1);
}

// Sweeps that differ in one thing alone have no point in common, so that their results may be in
// one file.
TEST_F(job_list_of_sweep, tells_sweeps_apart_by_machine_seed_and_warm_up) {
  std::vector<sweep_axes> sweeps(4, axes());
  sweeps[1].machine = "other";
  sweeps[2].seed = 8;
  sweeps[3].warm_up_transactions = 4;
  std::set<std::string> points;
  for (const sweep_axes& a : sweeps) {
    const auto made = job_list_of(a);
    ASSERT_TRUE(made);
    std::istringstream lines(made->text);
    for (std::string line; std::getline(lines, line);) points.insert(line);
  }
  EXPECT_EQ(points.size(), 4 * 8u);
}

TEST_F(job_list_of_sweep, has_no_point_that_cannot_run) {
  sweep_axes banks = axes(), threads = axes(), space = axes(), key = axes(), twice = axes();
  banks.keys.push_back({"nonvolatile_memory.banks", {"8", "512"}});
  banks.keys.push_back({"nonvolatile_memory.row_bytes", {"1024"}});
  EXPECT_THAT(error_of(banks), AllOf(HasSubstr("the point native, {\"l3.ways\":\"8\""),
                                     HasSubstr("512 banks in a "
                                               "channel"),
                                     HasSubstr("nothing is written")));
  threads.tapes.push_back(tape("c", 9));
  EXPECT_THAT(error_of(threads), HasSubstr("event 8 of the tape is of thread 8, and the machine "
                                           "has 8 hardware threads"));
  space.tapes.push_back(tape("d", 1, std::uint64_t{1} << 31));
  EXPECT_THAT(error_of(space), HasSubstr("nonvolatile_memory.capacity_bytes is 2147483648"));
  key.keys.push_back({"l3.wais", {"8"}});
  EXPECT_THAT(error_of(key), HasSubstr("'l3.ways'"));
  twice.designs.push_back("rlog");
  EXPECT_THAT(error_of(twice), HasSubstr("--designs: 'rlog' is given twice"));
}

}  // namespace
}  // namespace stele::sim
