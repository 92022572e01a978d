// `stele kv` as a user runs it: items, ranges, named stores, import and export, and what it says of
// bad input.
#include <gmock/gmock.h>
#include <stele/kv.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace stele::testing {
namespace {

using ::testing::HasSubstr;

class kv_command : public ::testing::Test {
 protected:
  kv_command() {
    auto store = kv::open(path_, {.create_size = 1 << 20});
    EXPECT_TRUE(succeeds(store));
    for (const char* key : {"a", "ab", "b"})
      EXPECT_TRUE(succeeds(store->put(key, "of " + std::string(key))));
    EXPECT_TRUE(succeeds(store->close()));
  }
  std::string said(const std::string& arguments) const {
    const auto run = run_command("kv " + arguments);
    EXPECT_EQ(run.status, 0) << run.said;
    return run.said;
  }
  std::string refusal(const std::string& arguments) const {
    const auto run = run_command("kv " + arguments);
    EXPECT_EQ(run.status, 1) << run.said;
    return run.said;
  }
  std::string file_of(const std::string& text) const {
    std::ofstream(dir_.file("lines")) << text;
    return dir_.file("lines");
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("p");
};

TEST_F(kv_command, puts_gets_and_erases) {
  said("put " + path_ + " c 'of c'");
  EXPECT_EQ(said("get " + path_ + " c"), "of c\n");
  said("put --hex " + path_ + " 00ff 0A");
  EXPECT_EQ(said("get --hex " + path_ + " 00FF"), "0a\n");
  said("del " + path_ + " c");
  EXPECT_THAT(refusal("get " + path_ + " c"), HasSubstr("there is no key 'c'"));
  EXPECT_THAT(refusal("del " + path_ + " c"), HasSubstr("there is no key 'c'"));
}

TEST_F(kv_command, scans_ranges_and_prefixes_both_ways) {
  EXPECT_EQ(said("scan --prefix a " + path_), "a\tof a\nab\tof ab\n");
  EXPECT_EQ(said("scan --reverse --keys --limit 2 " + path_), "b\nab\n");
  EXPECT_EQ(said("scan --from ab --to b --keys " + path_), "ab\n");
  EXPECT_EQ(nlohmann::json::parse(said("scan --json - --from b " + path_)).at(0).at("value"),
            "of b");
}

TEST_F(kv_command, named_stores_and_their_statistics) {
  EXPECT_THAT(refusal("get --store more " + path_ + " k"), HasSubstr("has no store 'more'"));
  said("put --store more --create " + path_ + " k v");
  EXPECT_EQ(said("stores " + path_), "more\n");
  EXPECT_EQ(said("get --store more " + path_ + " k"), "v\n");
  const auto all = nlohmann::json::parse(said("stats --json - " + path_)).at("stores");
  EXPECT_EQ(all.at(0).at("items"), 3);
  EXPECT_EQ(all.at(1).at("store"), "more");
  EXPECT_THAT(said("stats " + path_), HasSubstr("store more\n  items      1 "));
  said("drop " + path_ + " more");
  EXPECT_EQ(said("stores " + path_), "");
}

TEST_F(kv_command, imports_what_it_exports) {
  said("put --hex " + path_ + " ff00 fe");
  said("export " + path_ + " " + dir_.file("lines"));
  said("import --store copy --create " + path_ + " " + dir_.file("lines"));
  EXPECT_EQ(said("scan --hex " + path_), said("scan --hex --store copy " + path_));
}

TEST_F(kv_command, imports_when_items_expire) {
  const kv_time when{std::chrono::hours(1'000'000)};
  {
    auto store = kv::open(path_);
    ASSERT_TRUE(succeeds(store));
    ASSERT_TRUE(succeeds(store->put_until("c", "late", when)));
  }
  said("export " + path_ + " " + dir_.file("lines"));
  said("import --store copy --create " + path_ + " " + dir_.file("lines"));
  EXPECT_EQ(said("scan " + path_), said("scan --store copy " + path_));
  said("import " + path_ + " " +
       file_of(R"({"key": "d", "value": "gone", "expires_at_ms": 1})"
               "\n"));
  auto store = kv::open(path_);
  ASSERT_TRUE(succeeds(store));
  auto copy = store->open_store("copy", kv::if_missing::refuse);
  ASSERT_TRUE(succeeds(copy));
  const auto expires = [&](const char* key) {
    return copy->read([&](const kv::view& v) { return v.expiry(key); });
  };
  EXPECT_EQ(expires("c").value(), when);
  EXPECT_EQ(expires("a").value(), std::nullopt);
  EXPECT_FALSE(store->contains("d").value()) << "its time had passed";
}

TEST_F(kv_command, bad_input_is_told_and_changes_nothing) {
  const std::string good = "{\"key\": \"x\", \"value\": \"y\"}\n", before = said("scan " + path_);
  for (const char* bad :
       {"text", "[]", "{\"key\": \"x\"}", "{\"key\": 1, \"value\": \"y\"}",
        "{\"key\": {\"hex\": \"0\"}, \"value\": \"y\"}", "{\"key\": \"\", \"value\": \"y\"}",
        R"({"key": "a", "value": "y", "expires_at_ms": "soon"})",
        R"({"key": "a", "value": "y", "expires_at_ms": -1})",
        R"({"key": "a", "value": "y", "expires_at_ms": 18446744073709551615})"})
    EXPECT_THAT(refusal("import " + path_ + " " + file_of(good + bad + '\n')),
                HasSubstr("line 2: "));
  EXPECT_EQ(said("scan " + path_), before);
  EXPECT_THAT(refusal("import " + path_ + " " + dir_.file("none")), HasSubstr("cannot read"));
  EXPECT_THAT(refusal("get --hex " + path_ + " f"), HasSubstr("not hexadecimal"));
  EXPECT_THAT(refusal("put " + path_ + " '' v"), HasSubstr("1 to 65536"));
  EXPECT_THAT(refusal("put --ttl 1e30 " + path_ + " k v"), HasSubstr("seconds"));
  EXPECT_THAT(refusal("scan --prefix a --to b " + path_), HasSubstr("--prefix, or"));
  const auto held = kv::open(path_);
  EXPECT_THAT(refusal("get " + path_ + " a"), HasSubstr(std::to_string(::getpid())));
}

TEST_F(kv_command, shortens_lifetimes_that_a_wrong_clock_made_long) {
  const auto expires_ms = [&](const char* key) -> std::uint64_t {
    for (std::istringstream lines(said("export " + path_)); !lines.eof();) {
      std::string line;
      std::getline(lines, line);
      if (line.empty()) continue;
      const auto item = nlohmann::json::parse(line);
      if (item.at("key") == key) return item.value("expires_at_ms", std::uint64_t{0});
    }
    return 0;
  };
  said("put --ttl 1600000000 " + path_ + " far 1");
  said("put --ttl 100000000000 " + path_ + " farther 1");
  said("put --ttl 1000 " + path_ + " near 1");
  const std::uint64_t near = expires_ms("near");
  EXPECT_EQ(said("shorten --ttl 3600 " + path_), "2 items expire earlier now\n");
  EXPECT_LT(expires_ms("far"), near + 3'600'000);
  EXPECT_EQ(expires_ms("farther"), expires_ms("far"));
  EXPECT_EQ(expires_ms("near"), near);
  EXPECT_EQ(expires_ms("a"), 0u);
  EXPECT_EQ(said("shorten --ttl 3600 " + path_), "0 items expire earlier now\n");
  EXPECT_THAT(refusal("shorten --ttl 0 " + path_), HasSubstr("a lifetime of 0 ms"));
}

}  // namespace
}  // namespace stele::testing
