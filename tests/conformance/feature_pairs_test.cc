// Every two of the features of a store at once, in processes that are killed: growth, long reads,
// snapshots, readers in other processes, named stores, expiry, compaction, backup.
//
// A process puts and erases items, step by step, with both features in use, and is killed, or ends
// by a clean close. Its successor goes on from the step that recovery has found, which is at least
// the last one acknowledged. After the last life the pool grows twice, uses all that became free,
// and is closed. Each open verifies all checksums and compares all items with a model.
//
// Pools that grow begin with a few free chunks: small ones, or such that have room behind their
// last chunk, filled with ballast.
//
// STELE_SEED repeats a run. STELE_PAIRS_ROUNDS makes more than 4 rounds of each pair.
#include <base/rng.h>
#include <containers/content_copy.h>
#include <stele/kv.h>
#include <stele/snapshot.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

enum class feature : std::uint8_t {
  growth,
  long_reads,
  snapshots,
  readers,
  named_stores,
  expiry,
  compaction,
  backup,
};
constexpr const char* names[] = {"growth",       "long_reads", "snapshots",  "readers",
                                 "named_stores", "expiry",     "compaction", "backup"};
constexpr std::size_t feature_count = std::size(names);
using pair_of_features = std::pair<feature, feature>;

// --- the steps, and what they leave ---

constexpr std::uint64_t keys = 48;

std::string key_of(std::uint64_t k) {
  return "item " + std::to_string(k);
}
// From a few bytes to a few pages.
std::string value_of(std::uint64_t step, std::uint64_t k) {
  const std::uint64_t drawn = base::mix(step * keys + k);
  return std::to_string(step) + std::string(drawn % 3 == 0 ? drawn % 60 : drawn % 24'000,
                                            static_cast<char>('a' + drawn % 26));
}

struct contents {
  using items = std::map<std::string, std::string>;
  items main, other;  // of the store without a name, of a named one
  bool operator==(const contents&) const = default;
};

// Step `n` of a store. `put(store, key, value)` and `erase(store, key)` get what it changes.
template <class Put, class Erase>
void do_step(std::uint64_t n, bool named, Put&& put, Erase&& erase) {
  base::rng random(n + 1);
  for (unsigned i = 0; i < 3; ++i) {
    const std::uint64_t k = random.below(keys);
    put(false, key_of(k), value_of(n, k));
    if (named) put(true, key_of(k / 2), value_of(n, k + 1));
  }
  if (n % 3 == 2) erase(false, key_of(random.below(keys)));
  if (named && n % 5 == 4) erase(true, key_of(random.below(keys / 2)));
  put(false, "steps", std::to_string(n + 1));
}

contents model_after(std::uint64_t steps, bool named) {
  contents c;
  for (std::uint64_t n = 0; n < steps; ++n)
    do_step(
        n, named,
        [&](bool other, const std::string& key, const std::string& value) {
          (other ? c.other : c.main)[key] = value;
        },
        [&](bool other, const std::string& key) { (other ? c.other : c.main).erase(key); });
  return c;
}

bool is_compared(std::string_view key) {
  return key.starts_with("item ") || key == "steps";
}
result<contents::items> items_of(const kv& store) {
  return store.read([](const kv::view& v) {
    contents::items all;
    v.for_each({}, {}, [&](std::string_view key, std::string_view value) {
      if (is_compared(key)) all.emplace(key, value);
      return true;
    });
    return all;
  });
}
std::uint64_t steps_of(const contents::items& items) {
  const auto found = items.find("steps");
  return found == items.end() ? 0 : std::stoull(found->second);
}

// --- one pair ---

class feature_pairs : public ::testing::TestWithParam<pair_of_features> {
 protected:
  static bool has(feature f) { return GetParam().first == f || GetParam().second == f; }

  void draw_options() {
    static constexpr const char* media[] = {"process", "adr", "file"};
    static const auto mechanisms = known_of({"default", "default", "redo", "redo-async", "undo"});
    const bool grows = has(feature::growth);
    constexpr std::size_t page = 4096, small = 96 << 10, with_larger_chunks = 4 << 20;
    options_.create_size = !grows                  ? std::size_t{8} << 20
                           : random_.below(2) == 0 ? small + page * random_.below(8)
                                                   : with_larger_chunks + page * random_.below(8);
    // A compacted pool has little room left.
    options_.max_size = grows || has(feature::compaction) ? std::size_t{64} << 20 : 0;
    options_.engine.mechanism = mechanisms[random_.below(std::size(mechanisms))];
    options_.engine.media = media[random_.below(std::size(media))];
    options_.engine.log_size = 8192, options_.engine.log_count = 5;
    options_.engine.block_checksums = checksums::on;
    options_.engine.verify = verification::always;
  }

  struct stores {
    kv main;
    std::optional<kv> other;
  };
  stores open() {
    auto main = kv::open(path_, options_);
    if (!main) throw std::runtime_error(main.error().message);
    stores s{std::move(*main), {}};
    if (has(feature::named_stores)) {
      auto other = s.main.open_store("other");
      if (!other) throw std::runtime_error(other.error().message);
      s.other.emplace(std::move(*other));
    }
    return s;
  }

  // One transaction. Items have a lifetime that no test reaches.
  result<> step(stores& s, std::uint64_t n) {
    const auto later = std::chrono::system_clock::now() + std::chrono::hours(24);
    return s.main.update([&](kv::changes& c) -> result<> {
      result<> done;
      do_step(
          n, has(feature::named_stores),
          [&](bool other, const std::string& key, const std::string& value) {
            if (!done) return;
            if (other)
              done = s.other->put(key, value);
            else if (has(feature::expiry) && key != "steps")
              c.put_until(key, value, later);
            else
              c.put(key, value);
          },
          [&](bool other, const std::string& key) {
            if (done && other) {
              if (auto erased = s.other->erase(key); !erased)
                done = std::unexpected(erased.error());
            } else if (done) {
              (void)c.erase(key);
            }
          });
      return done;
    });
  }
  // What a feature does beside or between the steps of the process.
  void use_between(stores& s, std::uint64_t n) {
    if (has(feature::growth) && n % 4 == 1) {
      ASSERT_TRUE(succeeds(s.main.grow(s.main.space().size_bytes + 1)));
    }
    if (has(feature::expiry) && n % 4 == 1) {
      ASSERT_TRUE(succeeds(s.main.put_for("brief " + std::to_string(n % 7), std::string(3'000, 'b'),
                                          milliseconds(1))));
    }
    if (has(feature::named_stores) && n % 8 == 3) {
      auto brief = s.main.open_store("brief");
      ASSERT_TRUE(succeeds(brief));
      ASSERT_TRUE(succeeds(brief->put("some", value_of(n, 1))));
    }
    if (has(feature::named_stores) && n % 8 == 6) {
      const auto dropped = s.main.drop_store("brief");  // an earlier life may have done that
      EXPECT_TRUE(dropped || dropped.error().code == errc::not_found);
    }
  }
  void expect_some_step(const contents::items& items) {
    EXPECT_EQ(items, model_after(steps_of(items), has(feature::named_stores)).main)
        << "a reader sees the state after step " << steps_of(items);
  }
  void read_long(kv& store) {
    const auto items = store.read([&](const kv::view& v) {
      contents::items all;
      v.for_each({}, {}, [&](std::string_view key, std::string_view value) {
        if (is_compared(key)) all.emplace(key, value);
        return true;
      });
      std::this_thread::sleep_for(milliseconds(1));
      (void)v.contains("steps");
      return all;
    });
    ASSERT_TRUE(succeeds(items));
    expect_some_step(*items);
  }
  void read_snapshot(kv& store) {
    const auto held = take_snapshot(store);
    ASSERT_TRUE(succeeds(held));
    const auto first = held->read([&] { return items_of(store); });
    ASSERT_TRUE(succeeds(first));
    std::this_thread::sleep_for(milliseconds(1));
    const auto second = held->read([&] { return items_of(store); });
    ASSERT_TRUE(succeeds(second));
    EXPECT_EQ(*first, *second);
    expect_some_step(*second);
  }
  void back_up(kv& store) {
    const std::string to = path_ + ".copy-" + std::to_string(copies_++ % 2);
    fs::remove(to);
    ASSERT_TRUE(succeeds(store.backup(to)));
  }
  // A process that reads the pool until it is killed.
  void read_elsewhere(const word_sender& send) {
    for (;;) {
      auto store = kv::open_read_only(path_);
      if (!store) {  // nobody has made it yet, or it is being opened
        std::this_thread::sleep_for(milliseconds(1));
        continue;
      }
      for (unsigned reads = 0; reads < 20; ++reads)
        if (const auto items = items_of(*store)) expect_some_step(*items);
      send(HasFailure() ? failed : 1);
    }
  }

  // Puts items as long as there is room for another of more than `rest` bytes, or until the pool is
  // full: then no chunk is free.
  static void add_ballast(kv& store, std::size_t rest) {
    for (const std::size_t bytes : {60'000, 9'000, 400}) {
      const std::string ballast(bytes, 'l');
      for (std::uint64_t i = store.committed().commit; store.space().largest_free > rest; ++i)
        if (const auto put = store.put("ballast " + std::to_string(i), ballast); !put) {
          EXPECT_TRUE(fails_with(put, errc::full));
          break;
        }
    }
  }

  // The process: steps from `from` on. Sends the number of each that is acknowledged.
  void live(std::uint64_t from, std::uint64_t count, const word_sender& send) {
    stores s = open();
    if (has(feature::growth) && from == 0) add_ballast(s.main, 130'000);
    std::atomic<bool> stop = false;
    std::vector<std::jthread> beside;
    const auto run = [&](feature f, void (feature_pairs::*use)(kv&)) {
      if (has(f))
        beside.emplace_back([&, use] {
          while (!stop.load() && !HasFailure()) (this->*use)(s.main);
          if (HasFailure()) send(failed);
        });
    };
    run(feature::long_reads, &feature_pairs::read_long);
    run(feature::snapshots, &feature_pairs::read_snapshot);
    run(feature::backup, &feature_pairs::back_up);
    for (std::uint64_t n = from; n < from + count && !HasFailure(); ++n) {
      EXPECT_TRUE(succeeds(step(s, n)));
      use_between(s, n);
      send(HasFailure() ? failed : n + 1);
    }
    stop = true;
    beside.clear();
    s.other.reset();
    EXPECT_TRUE(succeeds(s.main.close()));
    if (HasFailure()) send(failed);
  }

  // Opens the pool and compares it with the model. Returns the number of steps that it holds.
  std::uint64_t expect_whole(const std::string& path, std::uint64_t least, std::uint64_t most) {
    auto main = kv::open(path, options_);
    EXPECT_TRUE(succeeds(main));
    if (!main) return 0;
    EXPECT_TRUE(succeeds(main->check()));
    contents held;
    const auto items = items_of(*main);
    EXPECT_TRUE(succeeds(items));
    if (items) held.main = *items;
    const std::uint64_t steps = steps_of(held.main);
    if (has(feature::named_stores))
      if (auto other = main->open_store("other"); other)
        if (auto of_other = items_of(*other)) held.other = *of_other;
    EXPECT_GE(steps, least);
    EXPECT_LE(steps, most);
    EXPECT_TRUE(held == model_after(steps, has(feature::named_stores)))
        << "not the items of step " << steps;
    EXPECT_TRUE(succeeds(main->close()));
    EXPECT_TRUE(succeeds(detail::check_pool(path)));
    return steps;
  }

  // A life that is killed after some steps, or ends by a close.
  std::uint64_t live_and_die(std::uint64_t from) {
    const std::uint64_t count = 24 + random_.below(24);
    const bool killed = random_.below(4) != 0;
    std::optional<child> reader;
    if (has(feature::readers))
      reader.emplace([&](const word_sender& send) { read_elsewhere(send); });
    child process([&](const word_sender& send) { live(from, count, send); });
    std::uint64_t acknowledged = from;
    const std::uint64_t until = killed ? from + random_.below(count) : ~std::uint64_t{0};
    while (acknowledged < until && process.receive(acknowledged)) {
    }
    if (killed) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(800)));
      acknowledged = process.kill_and_drain(acknowledged);
    } else {
      EXPECT_EQ(process.wait(), 0);
    }
    EXPECT_NE(acknowledged, failed) << "a thread of the process says so above";
    if (reader) {
      EXPECT_NE(reader->kill_and_drain(1), failed) << "the reader says so above";
    }
    for (const auto& copy : {path_ + ".copy-0", path_ + ".copy-1"})
      if (fs::exists(copy)) expect_whole(copy, 0, acknowledged + 1), fs::remove(copy);
    return expect_whole(path_, acknowledged, acknowledged + 1);
  }

  // The pool is copied in a process that may be killed, and the copy goes on.
  void compact(std::uint64_t steps) {
    const std::string to = path_ + ".compact";
    child process([&](const word_sender&) {
      const auto copied = detail::copy_content(path_, to, {});
      EXPECT_TRUE(copied.has_value()) << copied.error().message;
    });
    if (random_.below(2) == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(8'000)));
      process.kill_and_drain(0);
    } else {
      EXPECT_EQ(process.wait(), 0);
    }
    if (!fs::exists(to)) return;
    expect_whole(to, steps, steps);
    fs::rename(to, path_);
  }

  void grow_twice_and_use_again(std::uint64_t steps) {
    options_.max_size = 0;
    {
      auto store = kv::open(path_, options_);
      ASSERT_TRUE(succeeds(store));
      for (unsigned growth = 0; growth < 2; ++growth) {
        add_ballast(*store, 0);
        ASSERT_TRUE(succeeds(store->grow(store->space().size_bytes + 1)));
      }
      add_ballast(*store, 0);
      ASSERT_TRUE(succeeds(store->close()));
    }
    expect_whole(path_, steps, steps);
  }

  static constexpr std::uint64_t failed = ~std::uint64_t{0};
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  base::rng random_{0};
  pool_options options_;
  unsigned copies_ = 0;
};

TEST_P(feature_pairs, lose_nothing_when_killed_and_are_sound_after_a_clean_close) {
  const std::uint64_t seed = seed_from("STELE_SEED");
  const std::uint64_t rounds = count_from("STELE_PAIRS_ROUNDS", budget::sanitized ? 1 : 4);
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    random_ = base::rng(seed + round);
    draw_options();
    SCOPED_TRACE("STELE_SEED=" + std::to_string(seed + round) + " " + options_.engine.mechanism +
                 " on " + options_.engine.media);
    std::uint64_t steps = 0;
    for (unsigned life = 0; life < 3 && !HasFailure(); ++life) {
      steps = live_and_die(steps);
      if (has(feature::compaction) && !HasFailure()) compact(steps);
    }
    if (!HasFailure()) grow_twice_and_use_again(steps);
    fs::remove(path_);
  }
}

std::vector<pair_of_features> all_pairs() {
  std::vector<pair_of_features> all;
  for (std::size_t a = 0; a < feature_count; ++a)
    for (std::size_t b = a + 1; b < feature_count; ++b)
      all.emplace_back(static_cast<feature>(a), static_cast<feature>(b));
  return all;
}

INSTANTIATE_TEST_SUITE_P(each, feature_pairs, ::testing::ValuesIn(all_pairs()),
                         [](const auto& one) {
                           return std::string(names[static_cast<std::size_t>(one.param.first)]) +
                                  "_and_" + names[static_cast<std::size_t>(one.param.second)];
                         });

}  // namespace
}  // namespace stele::testing
