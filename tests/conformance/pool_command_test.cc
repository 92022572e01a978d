// `stele pool` as a user runs it: its output for sound, damaged and unclosed pools; what it
// repairs, copies and grows.
#include <format/pool_layout.h>
#include <gmock/gmock.h>
#include <stele/document.h>
#include <stele/kv.h>
#include <tests/conformance/child.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr, ::testing::Not;

class pool_command : public ::testing::Test {
 protected:
  std::string at(const std::string& file) const { return dir_.file(file); }
  nlohmann::json json(const std::string& file) const {
    return nlohmann::json::parse(std::ifstream(at(file)));
  }
  std::string make_store() const {
    auto store = kv::open(at("store"), {.create_size = 1 << 20});
    EXPECT_TRUE(succeeds(store));
    EXPECT_TRUE(succeeds(store->put("pear", "green")));
    EXPECT_TRUE(succeeds(store->put("apple", std::string("\xff\x00\x01", 3))));
    EXPECT_TRUE(succeeds(store->close()));
    return at("store");
  }
  static void flip(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }
  scratch_directory dir_;
};

TEST_F(pool_command, leaks_of_a_store_are_counted_and_fail_the_check) {
  const std::string path = make_store();
  const auto clean = run_command("pool check --leaks " + path);
  EXPECT_EQ(clean.status, 0) << clean.said;
  EXPECT_THAT(clean.said, HasSubstr("leaked     nothing"));
  {
    auto p = open_pool<string>(at("forgets"), {.create_size = 1 << 20});
    ASSERT_TRUE(succeeds(p.close()));
    const auto other = run_command("pool check --leaks " + at("forgets"));
    EXPECT_EQ(other.status, 1);
    EXPECT_THAT(other.said, HasSubstr("stele::find_leaks"));
  }
  {
    auto store = kv::open(path);
    ASSERT_TRUE(succeeds(store));
    ASSERT_TRUE(succeeds(detail::run_transaction(store->core(), true, durability::durable, [] {
      for (int i = 0; i < 3; ++i) (void)detail::allocate(64, 8);
    })));
  }
  EXPECT_EQ(run_command("pool check " + path).status, 0);
  const auto leaks = run_command("pool check --leaks --json " + at("report") + " " + path);
  EXPECT_EQ(leaks.status, 1);
  EXPECT_THAT(leaks.said, HasSubstr("3 blocks of 64 bytes"));
  EXPECT_EQ(json("report")["leaked"].size(), 3u);
}

TEST_F(pool_command, a_damaged_header_is_repaired_from_its_copy) {
  const std::string path = make_store();
  EXPECT_EQ(run_command("pool check " + path).status, 0);
  flip(path, 100);
  const auto damaged = run_command("pool check " + path);
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.said, HasSubstr("--repair"));
  EXPECT_FALSE(kv::open(path));
  const auto repaired = run_command("pool check --repair --json " + at("report") + " " + path);
  EXPECT_EQ(repaired.status, 0) << repaired.said;
  EXPECT_EQ(json("report")["repaired"].size(), 1u);
  EXPECT_TRUE(json("report")["sound"]);
  EXPECT_EQ(kv::open(path)->get("pear").value(), "green");
  EXPECT_TRUE(fs::exists(json("report")["repaired"][0]["page_before"]["file"].get<std::string>()));
  flip(path, 100);
  flip(path, format::header_copy_offset + 100);
  EXPECT_EQ(run_command("pool check --repair " + path).status, 1);
}

TEST_F(pool_command, a_pool_that_was_not_closed_is_recovered_by_repair_alone) {
  child writer([&](const word_sender& send) {
    auto store = kv::open(at("store"), {.create_size = 1 << 20});
    for (std::uint64_t n = 1;; ++n) {
      (void)store->put(std::to_string(n), "x");
      send(n);
    }
  });
  std::uint64_t n = 0;
  while (n < 50 && writer.receive(n)) {
  }
  const std::uint64_t last = writer.kill_and_drain(n);
  const auto looked = run_command("pool check " + at("store"));
  EXPECT_EQ(looked.status, 0) << looked.said;
  EXPECT_THAT(looked.said, HasSubstr("not closed"));
  const auto repaired = run_command("pool check --repair " + at("store"));
  EXPECT_EQ(repaired.status, 0) << repaired.said;
  EXPECT_THAT(repaired.said, HasSubstr("repaired: it had not been closed"));
  EXPECT_THAT(run_command("pool info " + at("store")).said, HasSubstr("closed"));
  EXPECT_TRUE(*kv::open(at("store"))->contains(std::to_string(last)));
}

// A copy of a pool that is open is one that was not closed.
TEST_F(pool_command, info_says_what_the_sums_of_a_pool_do_not_see) {
  const std::map<std::string, std::string> of_open = {
      {"default", "of home's blocks: damage is found"},
      {"archapt-redo", "the pool was not closed: 6 % of flipped bits"},
      {"log_structured", "the pool was not closed: 0.15 % of flipped bits"}};
  for (const auto& [mechanism, said] : of_open) {
    SCOPED_TRACE(mechanism);
    const std::string pool = dir_.file(mechanism), copy = pool + ".open";
    const auto sums = mechanism == "log_structured" ? checksums::automatic : checksums::on;
    {
      auto store = kv::open(pool, {.create_size = 4 << 20,
                                   .engine = {.mechanism = mechanism, .block_checksums = sums}});
      ASSERT_TRUE(succeeds(store));
      ASSERT_TRUE(succeeds(store->put("a", "1")));
      std::filesystem::copy_file(pool, copy);
      ASSERT_TRUE(succeeds(store->close()));
    }
    EXPECT_THAT(run_command("pool info " + copy).said, HasSubstr(said));
    const auto closed = run_command("pool info " + pool);
    EXPECT_THAT(closed.said, HasSubstr("damage is found at opening"));
    EXPECT_THAT(closed.said, Not(HasSubstr("not noticed")));
  }
}

TEST_F(pool_command, damage_to_content_is_found_and_left_alone) {
  const std::string path = make_store();
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  flip(path, bytes.rfind("green"));  // in home, not in a log that was truncated
  const auto found = run_command("pool check --repair --json " + at("report") + " " + path);
  EXPECT_EQ(found.status, 1);
  EXPECT_THAT(found.said, HasSubstr("what their sums say"));
}

TEST_F(pool_command, what_is_left_of_a_damaged_store_is_saved_in_a_new_one) {
  const std::string path = make_store();
  {
    auto store = kv::open(path);
    ASSERT_TRUE(succeeds(store));
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(succeeds(store->put("key " + std::to_string(i), std::string(600, 'v'))));
  }
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  flip(path, bytes.rfind("key 50") + 300);
  const auto saved = run_command("pool check --repair --salvage " + at("saved") + " --json " +
                                 at("report") + " " + path);
  EXPECT_EQ(saved.status, 1);
  EXPECT_THAT(saved.said, HasSubstr("LOST"));
  EXPECT_FALSE(json("report")["salvaged"]["lost"].empty());
  const std::size_t lost = json("report")["salvaged"]["lost"].size();
  EXPECT_LE(lost, 3u) << "those in one block";
  const auto left = kv::open(at("saved"));
  ASSERT_TRUE(succeeds(left));
  EXPECT_TRUE(succeeds(left->check()));
  EXPECT_EQ(*left->size(), 102 - lost);
  EXPECT_EQ(left->get("pear").value(), "green");
  // A file that is there is not overwritten, and a damaged pool is not compacted.
  EXPECT_EQ(run_command("pool check --salvage " + at("report") + " " + path).status, 1);
  const auto refused = run_command("pool compact " + path + " " + at("small"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.said, HasSubstr("--salvage"));
  EXPECT_FALSE(fs::exists(at("small")));
}

TEST_F(pool_command, of_a_sound_store_salvage_loses_nothing) {
  const std::string path = make_store();
  const auto saved = run_command("pool check --salvage " + at("saved") + " " + path);
  EXPECT_EQ(saved.status, 0) << saved.said;
  EXPECT_EQ(*kv::open(at("saved"))->size(), 2u);
}

TEST_F(pool_command, a_store_is_compacted_with_others_beside_it_and_with_times) {
  using namespace std::chrono_literals;
  const std::string path = make_store();
  const kv_time later = kv_time(7'258'118'400'000ms);
  {
    auto store = kv::open(path);
    ASSERT_TRUE(succeeds(store));
    ASSERT_TRUE(succeeds(store->put_until("plum", "ripe", later)));
    ASSERT_TRUE(succeeds(store->put_for("gone", "soon", 1ms)));
    ASSERT_TRUE(succeeds(store->open_store("empty")));
    auto users = store->open_store("users"), dropped = store->open_store("dropped");
    ASSERT_TRUE(succeeds(users->put("7", "ann")));
    ASSERT_TRUE(succeeds(users->put_until("8", "bob", later)));
    ASSERT_TRUE(succeeds(dropped->put("1", "x")));
  }
  ASSERT_TRUE(succeeds(kv::open(path)->drop_store("dropped")));
  const auto done = run_command("pool compact " + path + " " + at("small"));
  ASSERT_EQ(done.status, 0) << done.said;
  EXPECT_THAT(done.said, HasSubstr("5 items"));
  EXPECT_EQ(run_command("pool check " + at("small")).status, 0);
  auto copy = kv::open(at("small"));
  ASSERT_TRUE(succeeds(copy));
  EXPECT_EQ(copy->stores().value(), (std::vector<std::string>{"empty", "users"}));
  EXPECT_EQ(copy->size().value(), 3u);
  const auto expiry = [](const kv& s, std::string_view key) {
    return s.read([&](const kv::view& v) { return v.expiry(key); }).value();
  };
  EXPECT_EQ(expiry(*copy, "plum"), later);
  EXPECT_EQ(expiry(*copy, "pear"), std::nullopt);
  auto users = copy->open_store("users");
  EXPECT_EQ(users->get("7").value(), "ann");
  EXPECT_EQ(expiry(*users, "8"), later);
}

// Copies notice what the pool that they are of would notice.
TEST_F(pool_command, a_copy_has_sums_as_its_source_has) {
  for (const bool has : {true, false}) {
    SCOPED_TRACE(has);
    const std::string source = at(has ? "with" : "without"), copy = at("copy");
    {
      auto store =
          kv::open(source, {.create_size = 1 << 20,
                            .engine = {.block_checksums = has ? checksums::on : checksums::off}});
      ASSERT_TRUE(succeeds(store));
      ASSERT_TRUE(succeeds(store->put("a", "1")));
    }
    for (const std::string& command :
         {"pool backup " + source + " " + copy, "pool compact " + source + " " + copy,
          "pool check --salvage " + copy + " " + source}) {
      SCOPED_TRACE(command);
      ASSERT_EQ(run_command(command).status, 0);
      ASSERT_EQ(run_command("pool info " + copy + " --json " + at("info")).status, 0);
      EXPECT_EQ(json("info").at("sums"), has);
      EXPECT_EQ(json("info").at("layout"), "stele.kv");
      fs::remove(copy);
    }
  }
}

TEST_F(pool_command, a_damaged_store_with_others_beside_it_is_not_compacted) {
  const std::string path = at("damaged");
  {
    auto store =
        kv::open(path, {.create_size = 1 << 20, .engine = {.block_checksums = checksums::on}});
    ASSERT_TRUE(succeeds(store));
    auto users = store->open_store("users");
    for (int i = 0; i < 300; ++i)
      ASSERT_TRUE(succeeds(users->put(std::to_string(i), std::string(900, 'v'))));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  flip(path, bytes.rfind(std::string(100, 'v')) + 10);  // in a value
  const auto refused = run_command("pool compact " + path + " " + at("small"));
  EXPECT_EQ(refused.status, 1) << refused.said;
  EXPECT_FALSE(std::filesystem::exists(at("small")));
}

TEST_F(pool_command, a_compacted_store_has_the_items_and_little_else) {
  std::uint64_t item_bytes = 0;
  {
    auto store = kv::open(at("store"), {.create_size = 48 << 20});
    ASSERT_TRUE(succeeds(store));
    for (int i = 0; i < 24000; ++i)
      ASSERT_TRUE(succeeds(
          store->put("key " + std::to_string(i), std::string(1000, 'a'), durability::ordered)));
    for (int i = 0; i < 24000; ++i) {
      if (i % 6 == 0)
        item_bytes += 1000 + ("key " + std::to_string(i)).size();
      else
        ASSERT_TRUE(succeeds(store->erase("key " + std::to_string(i), durability::ordered)));
    }
  }
  const auto done =
      run_command("pool compact --json " + at("report") + " " + at("store") + " " + at("small"));
  EXPECT_EQ(done.status, 0) << done.said;
  const std::uint64_t size = json("report")["size_bytes"], logs = json("report")["log_bytes"];
  EXPECT_EQ(size, fs::file_size(at("small")));
  EXPECT_LT(static_cast<double>(size - logs), 1.3 * static_cast<double>(item_bytes));
  EXPECT_EQ(run_command("pool check " + at("small")).status, 0);
  {
    auto one = kv::open(at("store")), two = kv::open(at("small"));
    ASSERT_TRUE(succeeds(one));
    ASSERT_TRUE(succeeds(two));
    EXPECT_EQ(*one->range({}, {}, 100000), *two->range({}, {}, 100000));
    EXPECT_TRUE(succeeds(two->put("one", "more")));
    EXPECT_TRUE(succeeds(two->grow(8 << 20)));
  }
  EXPECT_EQ(run_command("pool check " + at("small")).status, 0);
  const auto sized = run_command("pool compact --size 12M --log-size 16K --log-count 2 --json " +
                                 at("report") + " " + at("small") + " " + at("sized"));
  EXPECT_EQ(sized.status, 0) << sized.said;
  EXPECT_EQ(json("report")["size_bytes"], 12u << 20);
  const auto too_small = run_command("pool compact --size 512K " + at("small") + " " + at("no"));
  EXPECT_EQ(too_small.status, 1);
  EXPECT_THAT(too_small.said, HasSubstr("no room"));
  EXPECT_FALSE(fs::exists(at("no")));
}

TEST_F(pool_command, another_pool_is_compacted_to_its_last_chunk_in_use) {
  struct words {
    field<std::uint64_t> sum;
  };
  for (const bool grown : {false, true}) {
    {
      auto p = open_pool<words>(at("words"), {.create_size = 2 << 20, .layout = "words"});
      if (grown) {
        ASSERT_TRUE(succeeds(p.grow(3 << 20)));
        ASSERT_TRUE(succeeds(p.grow(16 << 20)));
      }
      ASSERT_TRUE(succeeds(p.update([](words& w) { w.sum = 42; })));
    }
    const auto done =
        run_command("pool compact --json " + at("report") + " " + at("words") + " " + at("small"));
    EXPECT_EQ(done.status, 0) << done.said;
    EXPECT_THAT(done.said, HasSubstr("cannot be moved"));
    EXPECT_LT(fs::file_size(at("small")), fs::file_size(at("words")) / 2);
    EXPECT_EQ(run_command("pool check " + at("small")).status, 0);
    {
      auto p = open_pool<words>(at("small"),
                                {.layout = "words", .engine = {.verify = verification::always}});
      EXPECT_EQ(*p.read([](const words& w) { return w.sum.load(); }), 42u);
      ASSERT_TRUE(succeeds(p.grow(4 << 20)));
      ASSERT_TRUE(succeeds(p.update([](words& w) { w.sum = 43; })));
      EXPECT_TRUE(succeeds(p.check()));
    }
    EXPECT_EQ(run_command("pool check " + at("small")).status, 0);
    fs::remove(at("small"));
    fs::remove(at("words"));
  }
}

TEST_F(pool_command, a_compacted_document_is_the_same) {
  {
    auto p = open_pool<document_dict>(
        at("document"), {.create_size = 4 << 20, .layout = std::string(document_layout)});
    ASSERT_TRUE(succeeds(p.update([](document_dict& d) {
      for (int i = 0; i < 100; ++i) d[i] = std::string(static_cast<std::size_t>(i), 't');
      d["list"].make_list().append("one");
      d["list"].list().append({}).make_dict()["deep"] = 1.5;
    })));
  }
  const auto done = run_command("pool compact " + at("document") + " " + at("small"));
  EXPECT_EQ(done.status, 0) << done.said;
  EXPECT_LT(fs::file_size(at("small")), 256u << 10);
  for (const char* name : {"document", "small"})
    EXPECT_EQ(
        run_command("pool dump --json " + at(std::string(name) + ".json") + " " + at(name)).status,
        0);
  EXPECT_EQ(json("document.json")["content"], json("small.json")["content"]);
}

TEST_F(pool_command, dumps_a_store_and_a_document) {
  EXPECT_EQ(run_command("pool dump --json " + at("dump") + " " + make_store()).status, 0);
  const auto items = json("dump")["content"];
  EXPECT_EQ(items[0], (nlohmann::json{{"key", "apple"}, {"value", {{"hex", "ff0001"}}}}));
  EXPECT_EQ(items[1], (nlohmann::json{{"key", "pear"}, {"value", "green"}}));
  {
    auto p = open_pool<document_dict>(
        at("document"), {.create_size = 1 << 20, .layout = std::string(document_layout)});
    ASSERT_TRUE(succeeds(p.update([](document_dict& d) {
      d["answer"] = 42;
      d["list"].make_list().append("one");
    })));
  }
  EXPECT_EQ(run_command("pool check " + at("document")).status, 0);
  EXPECT_EQ(run_command("pool dump --json " + at("dump") + " " + at("document")).status, 0);
  EXPECT_EQ(json("dump")["content"]["dict"][0], (nlohmann::json{{"key", "answer"}, {"value", 42}}));
  EXPECT_EQ(json("dump")["content"]["dict"][1]["value"], nlohmann::json::array({"one"}));
}

TEST_F(pool_command, dumps_all_stores_and_when_items_expire) {
  const std::string path = make_store();
  EXPECT_EQ(run_command("pool dump --json " + at("dump") + " " + path).status, 0);
  EXPECT_FALSE(json("dump").contains("stores"));
  {
    auto store = kv::open(path);
    ASSERT_TRUE(succeeds(store));
    auto users = store->open_store("users"), empty = store->open_store("empty"),
         odd = store->open_store("\xFF");
    ASSERT_TRUE(users && empty && odd);
    ASSERT_TRUE(succeeds(users->put("ann", "1")));
    const kv_time when{std::chrono::hours(1'000'000)};
    ASSERT_TRUE(succeeds(users->put_until("bob", "2", when)));
    ASSERT_TRUE(succeeds(odd->put("carl", "3")));
  }
  EXPECT_EQ(run_command("pool dump --json " + at("dump") + " " + path).status, 0);
  const auto all = json("dump");
  EXPECT_EQ(all["content"].size(), 2u);
  EXPECT_EQ(all["stores"].dump(),
            R"([{"items":[],"store":"empty"},)"
            R"({"items":[{"key":"ann","value":"1"},)"
            R"({"expires_at_ms":3600000000000,"key":"bob","value":"2"}],"store":"users"},)"
            R"({"items":[{"key":"carl","value":"3"}],"store":{"hex":"ff"}}])");
}

TEST_F(pool_command, copies_and_lengthens) {
  const std::string path = make_store();
  EXPECT_EQ(run_command("pool backup " + path + " " + at("copy")).status, 0);
  EXPECT_EQ(run_command("pool backup " + path + " " + at("copy")).status, 1)
      << "it would overwrite";
  EXPECT_EQ(run_command("pool resize --size 3M --json " + at("info") + " " + at("copy")).status, 0);
  EXPECT_GE(json("info")["size_bytes"], 3u << 20);
  EXPECT_EQ(run_command("pool check " + at("copy")).status, 0);
  const auto one = kv::open(path), two = kv::open(at("copy"));
  ASSERT_TRUE(succeeds(one));
  ASSERT_TRUE(succeeds(two));
  EXPECT_EQ(two->get("pear").value(), "green");
}

TEST_F(pool_command, copies_checks_and_dumps_a_pool_that_is_in_use) {
  const std::string path = make_store();
  {
    auto open = kv::open(path);
    ASSERT_TRUE(succeeds(open));
    ASSERT_TRUE(succeeds(open->put("fig", "blue")));
    EXPECT_EQ(run_command("pool backup " + path + " " + at("copy")).status, 0);
    EXPECT_EQ(run_command("pool backup " + path + " " + at("copy")).status, 1)
        << "it would overwrite";
    EXPECT_EQ(run_command("pool check --json " + at("report") + " " + path).status, 0);
    EXPECT_EQ(json("report")["recovered"], false);
    const auto dumped = run_command("pool dump " + path);
    EXPECT_EQ(dumped.status, 0);
    EXPECT_THAT(dumped.said, HasSubstr("blue"));
    ASSERT_TRUE(succeeds(open->put("fig", "black"))) << "the process that has it open goes on";
  }
  EXPECT_EQ(kv::open(at("copy"))->get("fig").value(), "blue");
  const auto alone = kv::open(path, {.engine = {.readers = false}});
  ASSERT_TRUE(succeeds(alone));
  for (const std::string& what : {"backup " + path + " " + at("another"), "dump " + path}) {
    const auto in_use = run_command("pool " + what);
    EXPECT_EQ(in_use.status, 1);
    EXPECT_THAT(in_use.said, HasSubstr("open in process " + std::to_string(::getpid())));
  }
}

}  // namespace
}  // namespace stele::testing
