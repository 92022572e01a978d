// The examples of docs/guide/lab.md: its scheduler is compiled by its own command, loaded and run;
// its machine files are read and checked; and what its pages say of both holds.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <sim/controller/memory_fixture.h>
#include <sim/plugins.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace stele::sim {
namespace {

std::string guide_text() {
  std::stringstream text;
  text << std::ifstream(STELE_SOURCE_DIR "/docs/guide/lab.md").rdbuf();
  return text.str();
}

// The fenced blocks of a language on the page.
std::vector<std::string> blocks_of(const std::string& language) {
  const std::string text = guide_text(), begin = "```" + language + "\n";
  std::vector<std::string> blocks;
  for (std::size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
    at += begin.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

// The page's scheduler, compiled by the page's command in an empty folder, outside of this build.
class guide_scheduler : public testing::Test {
 protected:
  void SetUp() override {
    const auto code = blocks_of("cpp");
    ASSERT_EQ(code.size(), 1u);
    std::ofstream(dir_.file("reads_first.cc")) << code[0];
    const std::string text = guide_text();
    const std::size_t begin = text.find("    g++ ");
    ASSERT_NE(begin, text.npos);
    const std::string command = "cd '" + dir_.path().string() +
                                "' && STELE='" STELE_SOURCE_DIR "' && " +
                                text.substr(begin, text.find('\n', begin) - begin);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    const auto loaded = load_plugin(dir_.file("reads_first.so"));
    ASSERT_TRUE(loaded) << loaded.error().message;
    file_ = *loaded;
  }

  const base::scratch_directory dir_{std::filesystem::temp_directory_path()};  // may have code
  std::string file_;
};

struct record final : event_handler {
  void handle(picoseconds, std::uint64_t token) override { order.push_back(token); }
  std::vector<std::uint64_t> order;
};

// One bank, and a row each: in order of arrival they would be served 0, 1, 2, 3.
TEST_F(guide_scheduler, of_the_page_serves_reads_first_in_a_machine_that_names_it) {
  const auto m = parse_machine(
      "plugins = [\"" + file_ + "\"]\n[nonvolatile_memory]\nscheduler = \"reads-first\"\n",
      "m.toml");
  ASSERT_TRUE(m) << m.error().message;
  event_queue events;
  auto memory = make_memory(events, m->nonvolatile_memory);
  ASSERT_TRUE(memory) << memory.error().message;
  record replies;
  std::uint64_t token = 0;
  for (const access what : {access::write, access::read, access::write, access::read}) {
    (*memory)->submit(0,
                      {.address = token << 20, .kind = what, .reply_to = &replies, .token = token});
    ++token;
  }
  while (!events.empty()) events.step();
  EXPECT_THAT(replies.order, testing::ElementsAre(1, 3, 0, 2));
}

TEST(lab_guide, its_machines_are_read_and_make_memories) {
  const auto blocks = blocks_of("toml");
  ASSERT_EQ(blocks.size(), 1u);
  const auto m = parse_machine(blocks[0], STELE_SOURCE_DIR "/lab/configs/guide.toml");
  ASSERT_TRUE(m) << m.error().message;
  memory_fixture bed(m->nonvolatile_memory);
  bed.write(1, 1);
  bed.run();
  const picoseconds written = bed.events.now();
  const unsigned other_row = bed.write(1, 2);
  bed.run();
  EXPECT_EQ(bed.completed[other_row] - written, 100'000u + 65'000u);
}

}  // namespace
}  // namespace stele::sim
