// Pools that other processes read while one writes: each read sees one state,
// and none that is older than what was acknowledged before it; whoever is
// killed, the others go on.
#include <base/rng.h>
#include <stele/kv.h>
#include <sys/mman.h>
#include <tests/budget.h>
#include <tests/conformance/child.h>
#include <tests/conformance/exercise.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace stele::testing {
namespace {

using namespace std::chrono_literals;

// Every update gives all fields the same new value. They are in 40 lines; some
// are in a block that is replaced, so that its memory is used again.
struct part {
  field<std::uint64_t> value[32];
};
struct numbers {
  field<std::uint64_t> value[288];
  field<part*> tail;
};

void set_all(numbers& r, std::uint64_t n) {
  for (int i = 0; i < 288; i += 8) r.value[i] = n;
  part* const old = r.tail;
  r.tail = make<part>();
  for (auto& v : r.tail->value) v = n;
  destroy(old);
}

// The value of all fields; nullopt: they differ.
std::optional<std::uint64_t> value_of(const numbers& r) {
  const std::uint64_t n = r.value[0];
  bool same = true;
  for (int i = 0; i < 288; i += 8) same = same && r.value[i] == n;
  if (const part* const tail = r.tail)
    for (const auto& v : tail->value) same = same && v == n;
  return same ? std::optional(n) : std::nullopt;
}

// In memory that forked processes share.
struct shared_counts {
  std::atomic<std::uint64_t> acknowledged{0};  // the newest value
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> reads{0}, torn{0}, stale{0}, failed{0};
};

class readers : public ::testing::TestWithParam<std::string> {
 protected:
  readers()
      : counts_(*new(::mmap(nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) shared_counts) {}
  ~readers() override { ::munmap(&counts_, sizeof(shared_counts)); }

  pool_options options(concurrency policy = concurrency::stm,
                       const std::string& media = "adr") const {
    return setting{GetParam(), media, policy}.options();
  }
  // Reads until it is told to stop. Counts what is wrong.
  void read_all_the_time(const std::string& path) {
    auto p = pool<numbers>::open_read_only(path);
    if (!p) {
      std::fprintf(stderr, "%s\n", p.error().message.c_str());
      counts_.failed.fetch_add(1);
      return;
    }
    while (!counts_.stop.load()) read_once(*p);
  }
  void read_once(const pool<numbers>& p) {
    const std::uint64_t before = counts_.acknowledged.load();
    const auto seen = p.read([](const numbers& r) { return value_of(r); });
    if (!seen) {
      if (counts_.failed.fetch_add(1) < 3)
        std::fprintf(stderr, "%s\n", seen.error().message.c_str());
      return;
    }
    if (!*seen) counts_.torn.fetch_add(1);
    if (*seen && **seen < before) counts_.stale.fetch_add(1);
    counts_.reads.fetch_add(1);
  }
  // From the value in the pool on.
  void write_for(pool<numbers>& p, std::chrono::milliseconds time) {
    std::uint64_t n = *p.read([](const numbers& r) { return *value_of(r); });
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      ++n;
      ASSERT_TRUE(succeeds(p.update([&](numbers& r) { set_all(r, n); })));
      counts_.acknowledged.store(n);
    }
  }
  void expect_nothing_wrong() {
    EXPECT_EQ(counts_.torn.load(), 0u);
    EXPECT_EQ(counts_.stale.load(), 0u);
    EXPECT_EQ(counts_.failed.load(), 0u);
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  shared_counts& counts_;
};

bool has_home_in_place(const std::string& mechanism) {
  return mechanism != "log_structured";
}

TEST_P(readers, see_one_state_that_is_never_older_than_what_was_acknowledged) {
  const std::pair<concurrency, const char*> settings[] = {{concurrency::stm, "adr"},
                                                          {concurrency::single_writer, "adr"},
                                                          {concurrency::external, "eadr"},
                                                          {concurrency::stm, "file"}};
  for (const auto& [policy, media] : settings) {
    SCOPED_TRACE(std::string(name_of(policy)) + " " + media);
    const std::string path = dir_.file(std::string(name_of(policy)) + media);
    const bool refused =
        !has_home_in_place(GetParam()) || (GetParam() == "none" && policy != concurrency::stm);
    counts_.acknowledged = 0;
    auto p = open_pool<numbers>(path, options(policy, media));
    if (refused) {
      EXPECT_TRUE(fails_with(pool<numbers>::open_read_only(path), errc::unsupported));
      continue;
    }
    {
      child reader([&](const word_sender& send) {
        auto reads = pool<numbers>::open_read_only(path);
        if (!reads) return;
        send(1);
        while (!counts_.stop.load()) read_once(*reads);
      });
      std::uint64_t ready = 0;
      ASSERT_TRUE(reader.receive(ready));
      write_for(p, 60ms);
      counts_.stop = true;
      EXPECT_EQ(reader.wait(), 0);
      counts_.stop = false;
    }
    EXPECT_GT(counts_.reads.exchange(0), 0u);
    EXPECT_GT(counts_.acknowledged.load(), 0u);
    expect_nothing_wrong();
    EXPECT_TRUE(succeeds(p.check()));
  }
}

std::string mechanism_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(all, readers, ::testing::ValuesIn(all_mechanisms()), mechanism_name);

class readers_of_default : public readers {};
INSTANTIATE_TEST_SUITE_P(all, readers_of_default, ::testing::Values("default"), mechanism_name);

TEST_P(readers_of_default, go_on_when_the_pool_is_closed_and_opened_again) {
  {
    auto p = open_pool<numbers>(path_, options());
    write_for(p, 2ms);
  }
  auto closed = pool<numbers>::open_read_only(path_);  // no process has it open
  ASSERT_TRUE(succeeds(closed));
  read_once(*closed);
  for (int session = 0; session < 3; ++session) {
    auto p = open_pool<numbers>(path_, options());
    read_once(*closed);
    std::thread reads([&] {
      while (!counts_.stop.load()) read_once(*closed);
    });
    write_for(p, 10ms);
    ASSERT_TRUE(succeeds(p.close()));
    std::this_thread::sleep_for(2ms);
    counts_.stop = true;
    reads.join();
    counts_.stop = false;
    read_once(*closed);
  }
  EXPECT_GT(counts_.reads.load(), 5u);
  expect_nothing_wrong();
}

// R4: the locks of a closed pool say nothing of a writer that comes in the middle of a read.
TEST_P(readers_of_default, begin_again_when_a_writer_comes_in_the_middle) {
  for (const bool was_killed : {false, true}) {
    SCOPED_TRACE(was_killed);
    child before([&](const word_sender&) {
      auto p = pool<numbers>::open(path_, options());
      if (!p || !p->update([&](numbers& r) { set_all(r, 1); }) || (!was_killed && !p->close()))
        ::_exit(1);
    });
    ASSERT_EQ(before.wait(), 0);
    auto reads = pool<numbers>::open_read_only(path_);
    ASSERT_TRUE(succeeds(reads));
    unsigned attempts = 0;
    const auto seen = reads->read([&](const numbers& r) {
      ++attempts;
      const std::uint64_t first = r.value[0];
      if (attempts == 1)
        std::jthread([&] {  // this thread, and so a child of it, is in a transaction
          child writer([&](const word_sender&) {
            auto p = pool<numbers>::open(path_, options());
            if (!p || !p->update([&](numbers& w) { set_all(w, 2); }) || !p->close()) ::_exit(1);
          });
          EXPECT_EQ(writer.wait(), 0);
        });
      return value_of(r) == first ? first : 0;
    });
    ASSERT_TRUE(succeeds(seen));
    EXPECT_EQ(attempts, 2u);
    EXPECT_EQ(*seen, 2u);
  }
}

TEST_P(readers_of_default, see_what_recovery_will_find_when_the_writer_was_killed) {
  for (int round = 0; round < 8; ++round) {
    child writer([&](const word_sender& send) {
      auto p = open_pool<numbers>(path_, options());
      send(1);
      write_for(p, 10s);
    });
    std::uint64_t ready = 0;
    ASSERT_TRUE(writer.receive(ready));
    auto attached = pool<numbers>::open_read_only(path_);
    ASSERT_TRUE(succeeds(attached));
    for (int i = 0; i < 100; ++i) read_once(*attached);
    writer.kill_and_drain(0);
    for (int i = 0; i < 10; ++i) read_once(*attached);
    auto later = pool<numbers>::open_read_only(path_);  // recovers a private copy
    ASSERT_TRUE(succeeds(later));
    read_once(*later);
    auto p = open_pool<numbers>(path_, options());
    write_for(p, 1ms);
    read_once(*attached);
    read_once(*later);
    expect_nothing_wrong();
    if (HasFailure()) return;
  }
}

// Kills the writer or a reader at random, and starts another.
TEST_P(readers_of_default, and_writers_are_killed_at_random) {
  const auto kills = budget::count_from("STELE_READER_KILLS", 60 / budget::slowness);
  base::rng random(7);
  const auto write = [&](const word_sender&) {
    auto p = pool<numbers>::open(path_, options());
    if (!p) return;
    write_for(*p, 60s);
  };
  const auto read = [&](const word_sender&) { read_all_the_time(path_); };
  open_pool<numbers>(path_, options());
  std::optional<child> writer(std::in_place, write);
  std::array<std::optional<child>, 2> reading;
  for (auto& r : reading) r.emplace(read);
  for (std::uint64_t i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20000)));
    const std::uint64_t which = random.below(3);
    if (which == 2) {
      writer.reset();
      if (random.below(2) == 0) std::this_thread::sleep_for(1ms);
      writer.emplace(write);
    } else {
      reading[which].emplace(read);
    }
  }
  counts_.stop = true;
  for (auto& r : reading) EXPECT_EQ(r->wait(), 0);
  writer.reset();
  EXPECT_GT(counts_.reads.load(), kills);
  expect_nothing_wrong();
  auto p = open_pool<numbers>(path_, options());
  EXPECT_TRUE(succeeds(p.check()));
  EXPECT_GE(*p.read([](const numbers& r) { return *value_of(r); }), counts_.acknowledged.load());
}

TEST_P(readers_of_default, see_one_moment_in_a_long_read_beside_a_flat_out_writer) {
  struct many {
    field<std::uint64_t> value[20000];
  };
  auto p = open_pool<many>(path_, options());
  std::atomic<bool> stop{false};
  auto reads = pool<many>::open_read_only(path_);
  ASSERT_TRUE(succeeds(reads));
  // Fields 8 apart hold the same number, but for those behind the writer's
  // place: they have one more.
  std::thread writes([&] {
    for (std::uint64_t n = 0; !stop.load(); ++n)
      (void)p.update([&](many& r) { r.value[n * 8 % 20000] += 1; });
  });
  for (int i = 0; i < 20; ++i) {
    const auto fine = reads->read([](const many& r) {
      std::uint64_t steps = 0;
      for (int at = 8; at < 20000; at += 8) {
        const std::uint64_t before = r.value[at - 8], here = r.value[at];
        if (before != here && (before != here + 1 || ++steps > 1)) return false;
      }
      return true;
    });
    ASSERT_TRUE(succeeds(fine));
    EXPECT_TRUE(*fine);
  }
  stop = true;
  writes.join();
}

TEST_P(readers_of_default, follow_a_pool_that_grows) {
  auto o = options();
  o.max_size = 64 << 20;
  auto store = kv::open(path_, o);
  ASSERT_TRUE(succeeds(store));
  auto reads = kv::open_read_only(path_);
  ASSERT_TRUE(succeeds(reads));
  for (int i = 0; i < 8000; ++i) {
    const std::string key = std::to_string(i);
    ASSERT_TRUE(succeeds(store->put(key, std::string(2000, static_cast<char>('a' + i % 26)))));
    const auto found = reads->get(key);
    ASSERT_TRUE(succeeds(found));
    ASSERT_TRUE(found->has_value()) << i;
    ASSERT_EQ((*found)->at(1999), 'a' + i % 26);
  }
  EXPECT_GT(store->space().size_bytes, std::size_t{16} << 20);
  EXPECT_EQ(reads->size().value_or(0), 8000u);
}

TEST_P(readers_of_default, do_not_wait_for_a_sync_of_ordered_commits) {
  auto o = options(concurrency::stm, "file");
  o.engine.background = false;
  auto p = open_pool<numbers>(path_, o);
  auto reads = pool<numbers>::open_read_only(path_);
  ASSERT_TRUE(succeeds(reads));
  for (std::uint64_t n = 1; n < 50; ++n) {
    ASSERT_TRUE(succeeds(p.update([&](numbers& r) { set_all(r, n); }, durability::ordered)));
    const auto seen = reads->read([](const numbers& r) { return value_of(r); });
    ASSERT_TRUE(succeeds(seen));
    EXPECT_EQ(*seen, n);
  }
}

TEST_P(readers_of_default, copy_a_pool_that_is_open) {
  auto p = open_pool<numbers>(path_, options());
  write_for(p, 2ms);
  auto reads = pool<numbers>::open_read_only(path_);
  ASSERT_TRUE(succeeds(reads));
  const std::string copy = dir_.file("copy");
  std::uint64_t reports = 0;
  EXPECT_TRUE(
      succeeds(reads->backup(copy, [&](std::uint64_t, std::uint64_t) { return ++reports; })));
  EXPECT_GT(reports, 0u);
  EXPECT_TRUE(fails_with(reads->backup(copy), errc::exists));
  EXPECT_TRUE(fails_with(
      reads->backup(dir_.file("none"), [](std::uint64_t, std::uint64_t) { return false; }),
      errc::cancelled));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("none")));
  auto copied = open_pool<numbers>(copy, {});
  EXPECT_EQ(*copied.read([](const numbers& r) { return value_of(r); }),
            counts_.acknowledged.load());
}

TEST_P(readers_of_default, get_errors_that_say_what_to_do) {
  EXPECT_TRUE(fails_with(pool<numbers>::open_read_only(path_), errc::not_found));
  ASSERT_TRUE(succeeds(storage::pool_file::create(path_, {.size = 1 << 20, .layout = ""})));
  EXPECT_TRUE(fails_with(pool<numbers>::open_read_only(path_),
                         errc::not_found));  // no root
  {
    auto p = open_pool<numbers>(path_, {});
    auto reads = pool<numbers>::open_read_only(path_);
    ASSERT_TRUE(succeeds(reads));
    EXPECT_TRUE(fails_with(reads->update([](numbers& r) { r.value[0] = 1; }), errc::read_only));
    EXPECT_TRUE(
        fails_with(reads->read([](const numbers& r) { const_cast<numbers&>(r).value[0] = 1; }),
                   errc::read_only));
    EXPECT_TRUE(fails_with(reads->grow(2 << 20), errc::read_only));
    EXPECT_TRUE(fails_with(reads->check(), errc::read_only));
    EXPECT_TRUE(succeeds(reads->sync()));
    EXPECT_EQ(reads->space().size_bytes, std::size_t{1} << 20);
    EXPECT_TRUE(fails_with(pool<numbers>::open(path_), errc::in_use));
    EXPECT_TRUE(fails_with(pool<texts_root>::open_read_only(path_), errc::layout));
    EXPECT_TRUE(fails_with(kv::open_read_only(path_), errc::layout));
    EXPECT_TRUE(
        fails_with(pool<numbers>::open_read_only(path_, {.layout_version = 2}), errc::layout));
    EXPECT_TRUE(succeeds(reads->close()));
    EXPECT_TRUE(fails_with(reads->read([](const numbers&) {}), errc::invalid_argument));
  }
  {
    auto p = open_pool<numbers>(path_, {.engine = {.readers = false}});
    EXPECT_TRUE(fails_with(pool<numbers>::open_read_only(path_), errc::in_use));
  }
  std::filesystem::resize_file(path_, 5000);
  EXPECT_TRUE(fails_with(pool<numbers>::open_read_only(path_), errc::corrupt));
  std::filesystem::resize_file(path_, 0);
  EXPECT_TRUE(fails_with(pool<numbers>::open_read_only(path_), errc::not_a_pool));
}

// As a `with` of Python does: between begin and end may be code that cannot run again.
class fixed_read {
 public:
  explicit fixed_read(const pool<numbers>& p)
      : began_(detail::begin_transaction(p.core(), false, durability::durable,
                                         detail::code_between::may_wait) ==
               detail::begin_status::started) {}
  ~fixed_read() {
    if (began_) detail::roll_back_transaction();
  }
  bool began() const noexcept { return began_; }
  bool commit() {
    began_ = false;
    return detail::commit_transaction() == detail::commit_status::committed;
  }

 private:
  bool began_;
};

TEST_P(readers_of_default, that_cannot_run_again_keep_the_moment_of_their_begin) {
  auto p = std::make_unique<pool<numbers>>(open_pool<numbers>(path_, options()));
  write_for(*p, 2ms);
  auto reads = pool<numbers>::open_read_only(path_);
  ASSERT_TRUE(succeeds(reads));
  const auto see = [&] {
    return reads->read([](const numbers& r) { return value_of(r); }).value_or(std::nullopt);
  };
  const auto elsewhere = [](auto&& work) { std::thread(work).join(); };
  const auto then = see();
  {
    fixed_read fixed(*reads);
    ASSERT_TRUE(fixed.began());
    elsewhere([&] { write_for(*p, 5ms); });
    EXPECT_EQ(see(), then);
    elsewhere([&] { p.reset(); });
    EXPECT_EQ(see(), then);
    EXPECT_TRUE(fixed.commit());
  }
  read_once(*reads);
  EXPECT_NE(see(), then);
  {
    const fixed_read fixed(*reads);  // of a pool that no process has open
    ASSERT_TRUE(fixed.began());
    EXPECT_EQ(see().value_or(0), counts_.acknowledged.load());
    elsewhere([&] { p = std::make_unique<pool<numbers>>(open_pool<numbers>(path_, options())); });
    EXPECT_THROW((void)see(), conflict);
  }
  write_for(*p, 1ms);
  read_once(*reads);
  expect_nothing_wrong();
}

TEST_P(readers_of_default, that_cannot_run_again_are_refused_beside_a_transaction_that_waits) {
  auto p = open_pool<numbers>(path_, options());
  write_for(p, 1ms);
  auto reads = pool<numbers>::open_read_only(path_);
  ASSERT_TRUE(succeeds(reads));
  read_once(*reads);
  std::atomic<bool> waits{false}, may_end{false};
  std::thread writer([&] {
    ASSERT_EQ(detail::begin_transaction(p.core(), true, durability::durable,
                                        detail::code_between::may_wait),
              detail::begin_status::started);
    waits = true;
    while (!may_end.load()) std::this_thread::sleep_for(1ms);
    detail::roll_back_transaction();
  });
  while (!waits.load()) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(fixed_read(*reads).began());
  const error why = detail::last_error();
  EXPECT_EQ(why.code, errc::in_use);
  EXPECT_NE(why.message.find("long transaction"), std::string::npos) << why.message;
  may_end = true;
  writer.join();
  fixed_read fixed(*reads);
  EXPECT_TRUE(fixed.began() && fixed.commit());
  read_once(*reads);
  expect_nothing_wrong();
}

TEST_P(readers_of_default, that_stop_hold_up_nobody) {
  auto p = open_pool<numbers>(path_, options());
  child reader([&](const word_sender& send) {
    auto reads = pool<numbers>::open_read_only(path_);
    (void)reads->read([&](const numbers& r) {
      send(value_of(r).value_or(0) + 1);
      ::raise(SIGSTOP);
    });
  });
  std::uint64_t ready = 0;
  ASSERT_TRUE(reader.receive(ready));
  write_for(p, 20ms);
  auto other = pool<numbers>::open_read_only(path_);
  ASSERT_TRUE(succeeds(other));
  read_once(*other);
  expect_nothing_wrong();
  EXPECT_TRUE(succeeds(p.close()));
}

}  // namespace
}  // namespace stele::testing
