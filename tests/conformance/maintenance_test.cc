// Operations on a whole pool in use: growth, backup, check. Also what opening requires: block
// checksums, durability, versions.
#include <fcntl.h>
#include <format/pool_layout.h>
#include <stele/hash_map.h>
#include <stele/map.h>
#include <stele/string.h>
#include <sys/statfs.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;

struct shop {
  using pool_resident = void;
  hash_map<std::uint64_t, string> names;
  map<std::uint64_t, std::uint64_t> balances;
  field<std::uint64_t> moved;

  result<> check() const {
    if (auto sound = names.check(); !sound) return sound;
    return balances.check();
  }
};

constexpr std::uint64_t accounts = 64, money = 1000;

void open_accounts(pool<shop>& p) {
  ASSERT_TRUE(succeeds(p.update([](shop& s) {
    for (std::uint64_t i = 0; i < accounts; ++i) {
      s.balances.insert(i, money);
      s.names.insert(i, "the holder of account number " + std::to_string(i));
    }
  })));
}
void transfer(pool<shop>& p, base::rng& random, durability d = durability::durable) {
  ASSERT_TRUE(succeeds(p.update(
      [&](shop& s) {
        const std::uint64_t from = random.below(accounts), to = random.below(accounts),
                            amount = random.below(10);
        auto a = s.balances.find(from), b = s.balances.find(to);
        if (from == to || a->second < amount) return;
        a->second -= amount;
        b->second += amount;
        s.moved += amount;
      },
      d)));
}
void expect_no_money_lost(const pool<shop>& p) {
  const auto sum = p.read([](const shop& s) {
    std::uint64_t all = 0;
    s.balances.for_each([&](const auto&, const auto& balance) { all += balance; });
    return all;
  });
  ASSERT_TRUE(succeeds(sum));
  EXPECT_EQ(*sum, accounts * money);
}

class maintenance : public ::testing::TestWithParam<std::string> {
 protected:
  pool_options options(std::size_t size = 1 << 20) const {
    return {.create_size = size,
            .engine = {.media = GetParam(),
                       .log_size = 16384,
                       .log_count = 4,
                       .block_checksums = checksums::on}};
  }
  scratch_directory dir_;
};

TEST_P(maintenance, a_full_pool_that_grows_takes_more_and_keeps_what_it_had) {
  const std::string path = dir_.file("pool");
  {
    auto p = open_pool<shop>(path, options(256 << 10));
    open_accounts(p);
    const auto fill = [&](std::uint64_t from) {
      std::uint64_t next = from;
      for (result<> put; put; ++next)
        put = p.update([&](shop& s) { s.names.insert(next, std::string(500, 'x')); });
      return next;
    };
    std::uint64_t next = 1000;
    for (std::size_t size = 512 << 10; size <= 4 << 20; size *= 2) {
      const std::uint64_t before = next;
      next = fill(next);
      EXPECT_GT(next, before + 50) << "nothing fitted into what it had grown by, to " << size / 2;
      ASSERT_TRUE(succeeds(p.grow(size)));
      EXPECT_GE(p.space().size_bytes, size);
      EXPECT_GE(fs::file_size(path), size);
      ASSERT_TRUE(succeeds(p.check()));
    }
    EXPECT_TRUE(succeeds(p.grow(1)));  // does nothing
    expect_no_money_lost(p);
    ASSERT_TRUE(succeeds(p.close()));
  }
  EXPECT_TRUE(succeeds(detail::check_pool(path)));
  auto again = open_pool<shop>(path, options());
  EXPECT_GE(again.space().size_bytes, std::size_t{4} << 20);
  expect_no_money_lost(again);
  EXPECT_TRUE(succeeds(again.check()));
}

TEST_P(maintenance, a_pool_grows_while_threads_change_it) {
  auto p = open_pool<shop>(dir_.file("pool"), options(512 << 10));
  open_accounts(p);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      base::rng random(t);
      while (!stop.load()) transfer(p, random);
    });
  for (std::size_t size = 1 << 20; size <= 8 << 20; size += 1 << 20)
    ASSERT_TRUE(succeeds(p.grow(size)));
  stop = true;
  threads.clear();
  expect_no_money_lost(p);
  EXPECT_TRUE(succeeds(p.check()));
}

TEST_P(maintenance, what_cannot_be_grown_says_why_and_stays_as_it_was) {
  auto p = open_pool<shop>(dir_.file("pool"), options());
  const std::size_t before = p.space().size_bytes;
  EXPECT_TRUE(fails_with(p.grow(~std::size_t{0}), errc::invalid_argument));
  struct statfs room = {};
  ASSERT_EQ(::statfs(dir_.file("").c_str(), &room), 0);
  const std::size_t too_much = static_cast<std::size_t>(room.f_bsize) * room.f_blocks * 2;
  const auto grown = p.grow(too_much);
  ASSERT_FALSE(grown);
  EXPECT_TRUE(grown.error().code == errc::full || grown.error().code == errc::unsupported)
      << grown.error().message;
  EXPECT_TRUE(fails_with(p.update([&](shop&) { return p.grow(2 << 20); }), errc::nested));
  EXPECT_EQ(p.space().size_bytes, before);
  EXPECT_TRUE(succeeds(p.check()));
}

// Each backup holds one moment: no half transfer.
TEST_P(maintenance, a_backup_is_of_one_moment_and_opens_beside_the_original) {
  auto p = open_pool<shop>(dir_.file("pool"), options());
  open_accounts(p);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      base::rng random(t);
      while (!stop.load()) transfer(p, random);
    });
  for (unsigned i = 0; i < 6; ++i) {
    const std::string copy = dir_.file("copy" + std::to_string(i));
    ASSERT_TRUE(succeeds(p.backup(copy)));
    auto report = detail::check_pool(copy);
    ASSERT_TRUE(succeeds(report));
    EXPECT_FALSE(report->info.left_open);
    EXPECT_NE(report->info.header.id, p.core().state().file.header().id);
    auto second =
        open_pool<shop>(copy, {.engine = {.media = GetParam(), .verify = verification::always}});
    expect_no_money_lost(second);
    EXPECT_TRUE(succeeds(second.check()));
    base::rng random(i);
    transfer(second, random);
    expect_no_money_lost(second);
    if (i == 2) {
      ASSERT_TRUE(succeeds(p.grow(2 << 20)));  // also backs up a pool that has grown
    }
  }
  stop = true;
  threads.clear();
  expect_no_money_lost(p);
}

// Under every mechanism that can back up, with durable and ordered commits meanwhile.
TEST(backups, are_of_one_moment_under_every_mechanism) {
  scratch_directory dir;
  for (const auto& m : detail::mechanisms()) {
    SCOPED_TRACE(m.name);
    const std::string path = dir.file(m.name);
    auto p = open_pool<shop>(path, {.create_size = 2 << 20, .engine = {.mechanism = m.name}});
    open_accounts(p);
    if (m.home == format::home_kind::log) {
      EXPECT_TRUE(fails_with(p.backup(path + ".copy"), errc::unsupported));
      continue;
    }
    std::atomic<bool> stop{false};
    std::jthread writer([&] {
      base::rng random(1);
      while (!stop.load())
        transfer(p, random, random.below(2) == 0 ? durability::ordered : durability::durable);
    });
    for (unsigned i = 0; i < 3; ++i) {
      const std::string copy = path + ".copy" + std::to_string(i);
      ASSERT_TRUE(succeeds(p.backup(copy)));
      auto second =
          open_pool<shop>(copy, {.engine = {.mechanism = m.name, .verify = verification::always}});
      expect_no_money_lost(second);
      EXPECT_TRUE(succeeds(second.check()));
      base::rng random(i);
      for (unsigned n = 0; n < 50; ++n) transfer(second, random);
      expect_no_money_lost(second);
    }
    stop = true;
  }
}

TEST_P(maintenance, a_backup_that_is_stopped_or_has_no_place_leaves_nothing) {
  auto p = open_pool<shop>(dir_.file("pool"), options());
  open_accounts(p);
  EXPECT_TRUE(
      fails_with(p.backup(dir_.file("copy"), [](std::uint64_t, std::uint64_t) { return false; }),
                 errc::cancelled));
  EXPECT_TRUE(fails_with(p.backup(dir_.file("pool")), errc::exists));
  EXPECT_TRUE(fails_with(p.backup(dir_.file("no/such/directory")), errc::not_found));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.file("")), {}), 1);
  EXPECT_TRUE(succeeds(p.backup(dir_.file("copy"))));
}

TEST_P(maintenance, a_killed_pool_is_judged_by_its_sums) {
  const std::string path = dir_.file("pool");
  child writer([&](const word_sender& send) {
    auto p = open_pool<shop>(path, options());
    open_accounts(p);
    base::rng random(1);
    for (std::uint64_t n = 1;; ++n) {
      transfer(p, random);
      send(n);
    }
  });
  std::uint64_t n = 0;
  while (n < 2000 && writer.receive(n)) {
  }
  writer.kill_and_drain(n);
  auto p = open_pool<shop>(path, {.engine = {.media = GetParam(), .verify = verification::always}});
  expect_no_money_lost(p);
  EXPECT_TRUE(succeeds(p.check()));
}

// A line of home changes while the pool is closed.
TEST_P(maintenance, damage_to_a_closed_pool_is_found_at_opening) {
  const std::string path = dir_.file("pool");
  std::uint64_t where = 0;
  {
    auto p = open_pool<shop>(path, options());
    open_accounts(p);
    where = *p.read([&](const shop& s) {
      return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&s.moved) -
                                        p.core().base());
    });
    ASSERT_TRUE(succeeds(p.close()));
  }
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(where))
      .put('\x55');
  const auto opened = pool<shop>::open(path, {.engine = {.media = GetParam()}});
  ASSERT_TRUE(fails_with(opened, errc::corrupt));
  EXPECT_NE(opened.error().message.find("offset " + std::to_string(where / 512 * 512)),
            std::string::npos)
      << opened.error().message;
  EXPECT_TRUE(fails_with(detail::check_pool(path), errc::corrupt));
  auto p = open_pool<shop>(path, {.engine = {.media = GetParam(), .verify = verification::never}});
  EXPECT_EQ(p.read([](const shop& s) { return s.moved.load(); }).value(), 0x55u);
}

INSTANTIATE_TEST_SUITE_P(on, maintenance, ::testing::Values("adr", "process", "file"), plain_name);

// Mechanisms that keep block checksums update them at commits; the others make them at close.
TEST(sums, are_right_after_every_mechanism) {
  scratch_directory dir;
  for (const auto& m : detail::mechanisms()) {
    if (m.home == format::home_kind::log || m.has_parity) continue;
    const std::string path = dir.file(m.name);
    for (const std::string& next : {m.name, std::string("default"), m.name}) {
      auto p = open_pool<shop>(path, {.create_size = 1 << 20,
                                      .engine = {.mechanism = next,
                                                 .block_checksums = checksums::on,
                                                 .verify = verification::always}});
      SCOPED_TRACE(m.name + ", opened by " + next);
      if (!*p.read([](const shop& s) { return s.balances.contains(0); })) open_accounts(p);
      base::rng random(1);
      for (unsigned i = 0; i < 100; ++i) transfer(p, random);
      EXPECT_TRUE(succeeds(p.check()));
      ASSERT_TRUE(succeeds(p.close()));
    }
    EXPECT_TRUE(succeeds(detail::check_pool(path)));
  }
}

TEST(durability_level, is_that_of_its_name) {
  for (const auto level : {durability_level::none, durability_level::process,
                           durability_level::power, durability_level::power_with_cache})
    EXPECT_EQ(durability_level_of(name_of(level)), level);
  for (const char* other : {"", "eternity", "Power", "power "})
    EXPECT_EQ(durability_level_of(other), std::nullopt) << other;
}

TEST(durability_in_force, is_never_less_than_required) {
  scratch_directory memory;
  const std::string path = memory.file("pool");
  for (const char* media : {"auto", "process", "adr", "file"}) {
    SCOPED_TRACE(media);
    EXPECT_TRUE(fails_with(pool<shop>::open(path, {.create_size = 1 << 20,
                                                   .require = durability_level::power,
                                                   .engine = {.media = media}}),
                           errc::unsupported));
    EXPECT_FALSE(fs::exists(path));
    auto p = open_pool<shop>(
        path,
        {.create_size = 1 << 20, .require = durability_level::process, .engine = {.media = media}});
    EXPECT_EQ(p.durability_in_force(), durability_level::process);
    ASSERT_TRUE(succeeds(p.close()));
    fs::remove(path);
  }
  EXPECT_TRUE(fails_with(pool<shop>::open(path, {.create_size = 1 << 20,
                                                 .require = durability_level::process,
                                                 .engine = {.mechanism = "none"}}),
                         errc::unsupported));
  EXPECT_FALSE(fs::exists(path));
}

struct first_layout {
  field<std::uint64_t> cents;
};
struct second_layout {
  field<std::uint64_t> whole, cents;
};

result<> split_cents(migration& m) {
  if (m.version() != 1)
    return std::unexpected(error{errc::layout, "only version 1 can be brought up to date"});
  auto& old = m.root<first_layout>();
  auto* fresh = m.make_root<second_layout>();
  fresh->whole = old.cents / 100;
  fresh->cents = old.cents % 100;
  destroy(&old);
  return {};
}

TEST(layout_versions, are_migrated_in_one_transaction_and_later_ones_refused) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  {
    auto p = open_pool<first_layout>(
        path, {.create_size = 1 << 20, .layout = "purse", .layout_version = 1});
    ASSERT_TRUE(succeeds(p.update([](first_layout& r) { r.cents = 1234; })));
  }
  EXPECT_TRUE(fails_with(pool<second_layout>::open(path, {.layout = "purse", .layout_version = 2}),
                         errc::layout));
  const auto wrong = [](migration&) -> result<> { return {}; };
  EXPECT_TRUE(fails_with(
      pool<second_layout>::open(path, {.layout = "purse", .layout_version = 2, .migrate = wrong}),
      errc::layout));
  const auto refuses = [](migration& m) -> result<> {
    m.root<first_layout>().cents = 0;
    return std::unexpected(error{errc::cancelled, "not today"});
  };
  EXPECT_TRUE(fails_with(
      pool<second_layout>::open(path, {.layout = "purse", .layout_version = 2, .migrate = refuses}),
      errc::cancelled));
  EXPECT_EQ(open_pool<first_layout>(path, {.layout_version = 1})
                .read([](const first_layout& r) { return r.cents.load(); })
                .value(),
            1234u);
  {
    auto p = open_pool<second_layout>(
        path, {.layout = "purse", .layout_version = 2, .migrate = split_cents});
    EXPECT_EQ(p.read([](const second_layout& r) { return r.whole * 1000 + r.cents; }).value(),
              12034u);
    EXPECT_EQ(audit(p).used_blocks, 1u);
  }
  EXPECT_TRUE(succeeds(pool<second_layout>::open(path, {.layout_version = 2})));
  const auto sentence = pool<first_layout>::open(path, {.layout_version = 1});
  ASSERT_TRUE(fails_with(sentence, errc::layout));
  EXPECT_NE(sentence.error().message.find("newer"), std::string::npos);
}

}  // namespace
}  // namespace stele::testing
