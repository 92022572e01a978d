// The laboratory's media by name. Names that are no medium: tests/conformance/bad_input_test.cc.
#include <gtest/gtest.h>
#include <lab_media/lab_medium.h>

namespace stele::detail {
namespace {

TEST(lab_media_names, carry_the_delay_of_slower_memory) {
  const auto latency = parse_media("delayed:300"), both = parse_media("delayed:300:2.5");
  ASSERT_TRUE(latency && both);
  EXPECT_EQ(latency->lab->what, media::lab_medium::kind::delayed);
  EXPECT_EQ(latency->lab->latency_model.latency_ns, 300u);
  EXPECT_EQ(both->lab->latency_model.bytes_per_ns, 2.5);
  EXPECT_FALSE(both->emulates_whole_cache);
  // B5
  for (const char* name : {"delayed:300:cache=8", "delayed:300:2.5:cache=8"}) {
    const auto whole = parse_media(name);
    ASSERT_TRUE(whole) << name;
    EXPECT_TRUE(whole->emulates_whole_cache) << name;
    EXPECT_EQ(whole->lab->latency_model.cache_bytes_per_ns, 8) << name;
  }
  for (const char* name : {"delayed:300:cache=", "delayed:300:cache=0", "delayed:300:cache=nan",
                           "delayed:cache=8", "delayed:300:cache=8:2"})
    EXPECT_FALSE(parse_media(name)) << name;
}

// B10, L11
TEST(lab_media_names, carry_the_charging_rule) {
  using media::charging;
  struct row {
    const char* name;
    charging rule;
    double bytes_per_ns, cache;
  };
  for (const row& r : {row{"delayed:150", charging::usual, 0, 0},
                       {"delayed:150:stream=once", charging::streams_once, 0, 0},
                       {"delayed:150:stream=once:cache=8", charging::streams_once, 0, 8},
                       {"delayed:150:cache=8:stream=once", charging::streams_once, 0, 8},
                       {"delayed:500:standalone", charging::each_run, 0, 0},
                       {"delayed:500:1:standalone", charging::each_run, 1, 0},
                       {"delayed:500:1:cache=2:standalone", charging::each_run, 1, 2}}) {
    const auto c = parse_media(r.name);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->lab->latency_model.rule, r.rule) << r.name;
    EXPECT_EQ(c->lab->latency_model.bytes_per_ns, r.bytes_per_ns) << r.name;
    EXPECT_EQ(c->lab->latency_model.cache_bytes_per_ns, r.cache) << r.name;
    EXPECT_EQ(c->emulates_whole_cache, r.cache != 0) << r.name;
  }
}

TEST(lab_media_names, say_which_rules_exclude_each_other) {
  for (const auto& [name, reason] :
       {std::pair{"delayed:500:stream=once:standalone", "two rules for the latencies of a fence"},
        {"delayed:500:1:standalone:stream=once", "two rules for the latencies of a fence"},
        {"delayed:500:1:stream=once", "all lines of a fence share one latency"}}) {
    const auto c = parse_media(name);
    ASSERT_FALSE(c) << name;
    EXPECT_EQ(c.error().code, errc::invalid_argument);
    EXPECT_NE(c.error().message.find(reason), std::string::npos) << c.error().message;
    EXPECT_NE(c.error().message.find(name), std::string::npos) << c.error().message;
  }
}

TEST(lab_media_names, carry_what_banks_of_phase_change_memory_may_do) {
  struct row {
    const char* name;
    bool rules;
    double log_speedup;
    bool waits;
    double slower = 1;
  };
  for (const row& r : {row{"pcm:strict", false, 1, false},
                       {"pcm:rules", true, 1, false},
                       {"pcm:strict:waits", false, 1, true},
                       {"pcm:rules:1.7", true, 1.7, false},
                       {"pcm:strict:100:waits", false, 100, true},
                       {"pcm:strict:slower=2", false, 1, false, 2},
                       {"pcm:rules:1.7:waits:slower=2.5", true, 1.7, true, 2.5}}) {
    const auto c = parse_media(r.name);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->lab->what, media::lab_medium::kind::pcm) << r.name;
    EXPECT_EQ(c->lab->pcm.rules, r.rules) << r.name;
    EXPECT_EQ(c->lab->pcm.log_speedup, r.log_speedup) << r.name;
    EXPECT_EQ(c->lab->pcm.waits, r.waits) << r.name;
    EXPECT_EQ(c->lab->pcm.slower, r.slower) << r.name;
  }
}

// D2
TEST(pcm_layouts, have_commit_lines_or_none_and_no_logs_that_hold_the_data) {
  format::pool_header h{};
  h.log_offset = 8192, h.log_size = 4096, h.home_offset = 65536;
  const media::pcm_layout ordered = media::pcm_layout_of(h, log_kind::ordered_writes);
  EXPECT_EQ(ordered.log_offset, 8192u);
  EXPECT_EQ(ordered.log_size, 4096u);
  EXPECT_EQ(ordered.home_offset, 65536u);
  EXPECT_GT(ordered.commit_size, 0u);
  EXPECT_EQ(media::pcm_layout_of(h, log_kind::torn_bit).log_size, 4096u);
  EXPECT_EQ(media::pcm_layout_of(h, log_kind::torn_bit).commit_size, 0u);
  EXPECT_EQ(media::pcm_layout_of(h, log_kind::chunks).log_size, 0u);
}

}  // namespace
}  // namespace stele::detail
