// The examples of docs/guide/lab.md: its scheduler is the class below, to the letter; its machine
// files are read and checked; and what its pages say of both holds.
#include <gmock/gmock.h>
#include <sim/controller/memory_fixture.h>

#include <fstream>
#include <sstream>

namespace stele::sim {
namespace {

// --- on the page ---
// Reads before writes; of each kind, the oldest first.
class reads_first final : public scheduler {
 public:
  explicit reads_first(const channel_state& channel) : channel_(channel) {}

  decision next(picoseconds now) override {
    for (const access kind : {access::read, access::write}) {
      const entry_index oldest = channel_.queue.of(kind).head;
      if (oldest == no_entry) continue;
      const entry& e = channel_.queue[oldest];
      if (channel_.is_blocked_by_refresh(e.bank)) continue;
      const command what = channel_.next_command(e);
      return {std::max(now, channel_.timing.earliest(what, e.bank)), oldest, what};
    }
    return {};
  }
  bool enqueued(const entry&) override { return true; }  // a new request: decide again
  void bank_changed(unsigned) override {}                // nothing is remembered of banks
  void order_changed() override {}
  void about_to_issue(const entry&) override {}

 private:
  const channel_state& channel_;
};
// --- end ---

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(STELE_SOURCE_DIR "/" + path).rdbuf();
  return text.str();
}

// The fenced blocks of a language on the page.
std::vector<std::string> blocks_of(const std::string& language) {
  const std::string page = text_of("docs/guide/lab.md"), begin = "```" + language + "\n";
  std::vector<std::string> blocks;
  for (std::size_t at = 0; (at = page.find(begin, at)) != page.npos;) {
    at += begin.size();
    blocks.push_back(page.substr(at, page.find("```", at) - at));
  }
  return blocks;
}

TEST(lab_guide, shows_the_scheduler_that_is_tested_here) {
  const std::string code = text_of("lab/sim/controller/guide_scheduler_test.cc"),
                    from = "// --- on the page ---\n";
  const std::size_t begin = code.find(from) + from.size();
  const auto blocks = blocks_of("cpp");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0], code.substr(begin, code.find("// --- end ---", begin) - begin));
}

struct ignored final : channel_observer {
  void persisted(const write_report&) override {}
  void order_changed(picoseconds) override {}
};
struct record final : event_handler {
  void handle(picoseconds, std::uint64_t token) override { order.push_back(token); }
  std::vector<std::uint64_t> order;
};

TEST(lab_guide, the_scheduler_serves_reads_first) {
  const memory_config c = plain_memory();
  const scheduler_kind kind{"reads-first", false, false,
                            [](const channel_state& s, const memory_config&,
                               const epoch_tracker&) -> std::unique_ptr<scheduler> {
                              return std::make_unique<reads_first>(s);
                            }};
  event_queue events;
  const timing_table timing = *timing_table::compile(c);
  const write_pulses pulses;
  epoch_tracker stream;
  ignored observer;
  record replies;
  channel one({events, c, timing, kind, pulses, stream, observer, 0});
  std::uint64_t token = 0;
  for (const access what : {access::write, access::read, access::write, access::read}) {
    request r{token * 64, what, media::tape_tag::data, 0, &replies, token};
    one.submit(0, r, {0, 0, static_cast<std::uint32_t>(token++)});
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
