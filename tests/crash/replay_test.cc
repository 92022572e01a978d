// The lines of all engines: parsing gives the same line, and an error names the word. Replaying the
// line of a violation shows the same violation.
#include <explore/cache_crashes.h>
#include <explore/controller_crashes.h>
#include <explore/mutant_table.h>
#include <explore/schedule/schedules.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace stele::explore {
namespace {

// Half of the fields have a random value.
template <class Line>
Line random_line(base::rng& random) {
  Line line;
  line.run_plan.mechanism = random.below(2) == 0 ? "undo" : "default";
  line.run_plan.workload = random.below(2) == 0 ? "churn" : "sps";
  for (const line_field& f : fields_of(line)) {
    if (random.below(2) == 0) continue;
    const std::uint64_t most =
        std::min<std::uint64_t>(f.range.most, f.range.least + (1u << random.below(31)));
    std::string text = fmt::format("{}", f.range.least + random.below(most - f.range.least + 1));
    if (std::holds_alternative<bool*>(f.value)) text = "1";
    if (!f.range.words.empty()) text = f.range.words.substr(f.range.words.rfind('|') + 1);
    if (f.name == "mutant") text = name_of(mutants[random.below(std::size(mutants))].what);
    if (f.name == "at" || f.name == "decisions")
      text = fmt::format("{}:{},{}:{}", random(), random.below(32), random(), random.below(32));
    EXPECT_TRUE(read_value(text, f)) << f.name << '=' << text;
  }
  return line;
}

template <class Line>
class ReplayLines : public ::testing::Test {};
using lines = ::testing::Types<run_crash, cache_crash, controller_crash, schedule_line>;
TYPED_TEST_SUITE(ReplayLines, lines);

TYPED_TEST(ReplayLines, survive_parsing) {
  base::rng random(1);
  std::set<std::string> different;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = format_line(random_line<TypeParam>(random));
    const auto parsed = parse_line<TypeParam>(text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(format_line(*parsed), text);
    EXPECT_EQ(*engine_of(text), TypeParam::engine);
    different.insert(text);
  }
  EXPECT_GT(different.size(), 1900u);
}

TYPED_TEST(ReplayLines, give_each_field_its_member) {
  TypeParam line;
  std::set<void*> members;
  std::set<std::string_view> names;
  for (const line_field& f : fields_of(line))
    members.insert(std::visit([](auto* v) -> void* { return v; }, f.value)), names.insert(f.name);
  EXPECT_EQ(members.size(), fields_of(line).size());
  EXPECT_EQ(names.size(), fields_of(line).size());
}

TEST(ReplayLine, has_the_fields_that_the_page_shows) {
  run_crash run;
  run.run_plan.mechanism = "redo";
  run.run_plan.threads = 2;
  run.run_plan.mutant = *mutant_named("redo_no_data_fence");
  run.run_plan.coalesce = true;
  run.crashes = {{37, {0, 3, 255}}, {4, {}}, {7, {1}}};
  run.recovery_operations = 3;
  EXPECT_EQ(format_line(run),
            "run redo/sps threads=2 mutant=redo_no_data_fence coalesce=1 at=37:0.3.255,4:,7:1 "
            "recovery-ops=3");
  cache_crash cache;
  cache.cache = {"plru", 8, 2};
  cache.moments = {{17, 812}, {90125, 33}};
  EXPECT_EQ(format_line(cache),
            "cache redo-async/sps policy=plru cache-lines=8 ways=2 at=17:812,90125:33");
  controller_crash controller;
  controller.expired = true;
  controller.moments = {{17, 5}};
  EXPECT_EQ(format_line(controller), "controller redo-async/sps expired=1 at=17:5");
  schedule_line schedule;
  schedule.concurrent.points = schedule::granularity::stores;
  schedule.decided = {{12, 1}, {40, 0}};
  schedule.crashes = {{9, {1, 0}}};
  EXPECT_EQ(format_line(schedule),
            "schedules redo-async/sps points=stores decisions=12:1,40:0 at=9:1.0");
}

// Words may be separated by any white space, as when a line was copied from a page.
TEST(ReplayLine, may_be_wrapped) {
  const auto parsed = parse_line<run_crash>(" run redo/sps\n   ops=3\tseed=4 ");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(format_line(*parsed), "run redo/sps ops=3 seed=4");
}

struct refusal {
  const char *line, *sentence;
};

TEST(ReplayLine, refusals_name_the_word_and_what_belongs_there) {
  for (const auto& [line, sentence] : {
           refusal{"",
                   "the replay line ends before word 1: the first word is the engine, here run"},
           {"redo/sps ops=3",
            "word 1 of the replay line, 'redo/sps': the first word is the engine"},
           {"cache redo/sps", "word 1 of the replay line, 'cache': the first word is the engine"},
           {"run", "ends before word 2: the second word is MECHANISM/WORKLOAD, as in redo/sps"},
           {"run redo ops=3", "word 2 of the replay line, 'redo': the second word is MECHANISM/"},
           {"run redo/ ops=3", "word 2 of the replay line, 'redo/': the second word is MECHANISM/"},
           {"run redo/sps colour=red", "'colour=red': run has no field 'colour'; it has ops, keys"},
           {"run redo/sps +2", "word 3 of the replay line, '+2': run has no field '+2'"},
           {"run redo/sps ops", "'ops': the value is missing; write ops=, then a number"},
           {"run redo/sps threads=",
            "'threads=': the value is missing; write threads=, then a "
            "number from 1 to 64"},
           {"run redo/sps ops=1 seed=2 ops=3",
            "word 5 of the replay line, 'ops=3': 'ops' stands in "
            "the line before; leave one out"},
           {"run redo/sps ops=x", "'ops=x': the value must be a number"},
           {"run redo/sps ops=3x", "'ops=3x': the value must be a number"},
           {"run redo/sps ops=99999999999999999999", "the value must be a number"},
           {"run redo/sps threads=65", "'threads=65': the value must be a number from 1 to 64"},
           {"run redo/sps keys=0", "'keys=0': the value must be a number, not 0"},
           {"run redo/sps further=4294967296", "must be a number from 0 to 4294967295"},
           {"run redo/sps sums=2", "'sums=2': the value must be 0 or 1"},
           {"run redo/sps media=disk", "'media=disk': the value must be memory or file"},
           {"run redo/sps fault=all", "refused, write_back, short_write or interrupted"},
           {"run redo/sps mutant=nonesuch", "the value must be the name of a mutant; `stele crash"},
           {"run redo/sps at=1", "'at=1': the value must be POINT:CHOICE.CHOICE"},
           {"run redo/sps at=1:2.x", "'at=1:2.x': the value must be POINT:CHOICE.CHOICE"},
       }) {
    const auto parsed = parse_line<run_crash>(line);
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().code, errc::invalid_argument);
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr(sentence)) << line;
  }
  EXPECT_THAT(engine_of("redo/sps").error().message,
              ::testing::HasSubstr("the engine, here run, cache, controller or schedules"));
  EXPECT_THAT(parse_line<cache_crash>("cache redo/sps policy=fifo").error().message,
              ::testing::HasSubstr("the value must be lru, plru, bip or random"));
  for (const char* line :
       {"cache redo/sps at=1", "cache redo/sps at=1:x", "cache redo/sps media=file"})
    EXPECT_FALSE(parse_line<cache_crash>(line)) << line;
  for (const char* line : {"controller base/sps at=1:2.3", "controller base/sps expired"})
    EXPECT_FALSE(parse_line<controller_crash>(line)) << line;
}

TEST(Replay, refuses_a_choice_that_the_tape_does_not_have) {
  run_crash l;
  l.run_plan.operations = 3;
  l.crashes = {{1'000'000, {}}};
  EXPECT_FALSE(replay(l));
  l.crashes = {{0, {1, 2, 3, 4, 5}}};
  EXPECT_FALSE(replay(l));
}

// Violations in the run, in recovery, and in the operations after a recovery.
TEST(Replay, shows_the_violation_that_was_found) {
  for (const std::string_view mutant :
       {"redo_no_data_fence", "recover_no_mark_fence", "recover_no_scrub"}) {
    plan p;
    p.mechanism = mutant == "redo_no_data_fence" ? "redo" : "redo-async";
    p.mutant = *mutant_named(mutant);
    p.threads = 2;
    settings s;
    s.bound = 128;
    const auto found = explore(p, s);
    ASSERT_TRUE(found);
    ASSERT_FALSE(found->violations.empty()) << mutant;
    for (const violation& v : found->violations) {
      const auto line = parse_line<run_crash>(v.line);
      ASSERT_TRUE(line);
      const auto seen = replay(*line);
      ASSERT_TRUE(seen) << seen.error().message;
      EXPECT_FALSE(seen->problem.empty()) << v.line;
      EXPECT_NE(seen->explanation.find("crash before event"), std::string::npos);
      auto sound = *line;
      sound.run_plan.mutant = base::mutant::none;
      const auto healthy = replay(sound);
      EXPECT_TRUE(!healthy || healthy->problem.empty()) << v.line;
    }
  }
}

}  // namespace
}  // namespace stele::explore
