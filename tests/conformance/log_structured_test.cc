// What only a log-structured pool does: no memory behind its home addresses, cleaning under load, a
// home map that is rebuilt or read back.
#include <stele/hash_map.h>
#include <stele/log_structured_options.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <base/rng.h>
#include <fcntl.h>
#include <format/log_chunk.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::size_t count = 512;
struct numbers {
  field<std::uint64_t> at[count];
};

pool_options options_of(std::size_t size = std::size_t{1} << 20,
                        concurrency policy = concurrency::stm) {
  pool_options o;
  o.create_size = size;
  o.engine.mechanism = "log_structured";
  o.engine.media = "process";
  o.policy = policy;
  return o;
}

template <class Root>
std::uint64_t sum_of(const pool<Root>& p) {
  return p
      .read([](const Root& r) {
        std::uint64_t s = 0;
        for (const auto& f : r.at) s += f.load() * 31 + 7;
        return s;
      })
      .value_or(0);
}

// L1
TEST(log_structured, has_nothing_behind_the_addresses_of_home) {
  scratch_directory dir;
  auto p = open_pool<numbers>(dir.file("pool"), options_of());
  const numbers* raw = nullptr;
  ASSERT_TRUE(succeeds(p.update([&](numbers& n) {
    n.at[3] = 7;
    raw = &n;
  })));
  EXPECT_EQ(p.read([](const numbers& n) { return n.at[3].load(); }).value_or(0), 7u);
  EXPECT_DEATH((void)*reinterpret_cast<const volatile std::uint64_t*>(raw), "");
}

TEST(log_structured, is_what_such_a_pool_is_opened_with_and_nothing_else) {
  scratch_directory dir;
  {
    auto p = open_pool<numbers>(dir.file("pool"), options_of());
  }
  auto other = options_of();
  other.engine.mechanism = "redo";
  const auto refused_one = pool<numbers>::open(dir.file("pool"), other);
  EXPECT_TRUE(fails_with(refused_one, errc::invalid_argument));
  EXPECT_NE(refused_one.error().message.find("log_structured"), std::string::npos);
  other.engine.mechanism = "";
  EXPECT_EQ(open_pool<numbers>(dir.file("pool"), other).mechanism(), "log_structured");
  auto in_place = other;
  {
    auto p = open_pool<numbers>(dir.file("in place"), in_place);
  }
  EXPECT_TRUE(
      fails_with(pool<numbers>::open(dir.file("in place"), options_of()), errc::invalid_argument));
}

// Every option of the map and both ways of keeping logs: the same content, before and after
// reopening.
// L4, L6
TEST(log_structured, holds_the_same_with_every_option) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    SCOPED_TRACE(bits);
    scratch_directory dir;
    auto o = options_of();
    auto& ls = o.engine.tuning.of<log_structured_options>();
    ls.two_layers = bits & 1, ls.group_update = bits & 2, ls.node_cache = bits & 4,
    ls.lock_free_readers = bits & 8, ls.separate_logs = bits & 16, ls.fast_cleaning = bits & 32;
    ls.join_when_cleaning = std::popcount(static_cast<unsigned>(bits)) % 2 == 0;
    ls.word_cache = ls.level_wear = bits % 3 != 0;
    std::vector<std::uint64_t> model(count, 0);
    base::rng random(bits);
    for (int round = 0; round < 3; ++round) {
      auto p = open_pool<numbers>(dir.file("pool"), o);
      for (int i = 0; i < 1500; ++i) {
        const std::size_t a = random.below(count), b = random.below(count);
        model[a] = random(), model[b] = random();
        ASSERT_TRUE(succeeds(p.update([&](numbers& n) {
          n.at[a] = model[a];
          n.at[b] = model[b];
        })));
      }
      const auto same = p.read([&](const numbers& n) {
        for (std::size_t i = 0; i < count; ++i)
          if (n.at[i].load() != model[i]) return false;
        return true;
      });
      ASSERT_TRUE(same.value_or(false));
    }
  }
}

struct file_of {
  explicit file_of(std::string p) : path(std::move(p)) {}
  std::uint64_t word(std::uint64_t offset) const {
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(offset));
    std::uint64_t w = 0;
    in.read(reinterpret_cast<char*>(&w), 8);
    return w;
  }
  void set(std::uint64_t offset, std::uint64_t w) const {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(offset));
    out.write(reinterpret_cast<const char*>(&w), 8);
  }
  std::string path;
};

// How often each chunk of a pool has been written after three sessions of stores to few words.
std::vector<std::uint64_t> chunk_writes(bool level_wear) {
  scratch_directory dir;
  auto o = options_of();
  o.engine.log_size = 1024;
  o.engine.background = false;
  o.engine.tuning.of<log_structured_options>().level_wear = level_wear;
  base::rng random(1);
  for (int session = 0; session < 3; ++session) {
    auto p = open_pool<numbers>(dir.file("pool"), o);
    for (int i = 0; i < 40'000; ++i)
      EXPECT_TRUE(succeeds(p.update([&](numbers& n) { n.at[random.below(count)] = random(); })));
  }
  const file_of file(dir.file("pool"));
  const auto header = storage::pool_file::peek(file.path);
  if (!succeeds(header)) return {};
  std::vector<std::uint64_t> writes;
  for (std::uint32_t c = 0; c < header->log_chunks(); ++c)
    writes.push_back(file.word(header->log_offset + c * header->log_size));
  std::ranges::sort(writes);
  return writes;
}

// Short-lived data goes round all chunks, from one session to the next. L13
TEST(log_structured, writes_all_chunks_alike) {
  const auto levelled = chunk_writes(true), last_first = chunk_writes(false);
  ASSERT_FALSE(levelled.empty() || last_first.empty());
  const std::uint64_t usual = levelled[levelled.size() / 2];
  EXPECT_GE(usual, 5u);
  EXPECT_LE(levelled.back(), usual + 2);
  EXPECT_GE(levelled[levelled.size() / 20], usual - 2);
  EXPECT_GT(last_first.back(), 2 * levelled.back());
}

struct item {
  field<item*> next;
  field<std::uint64_t> payload[15];
};
struct list {
  field<item*> head;
  field<std::uint64_t> length;
};

// Adds items until the live share of the file is `share`; false: the pool was full before.
bool fill_to(pool<list>& p, double share) {
  for (;;) {
    const auto space = p.space();
    if (static_cast<double>(space.used_bytes) >= share * static_cast<double>(space.size_bytes))
      return true;
    const auto more = p.update([](list& l) {
      for (int i = 0; i < 16; ++i) {
        auto* const n = make<item>();
        for (auto& f : n->payload) f = l.length.load();
        n->next = l.head;
        l.head = n;
        l.length += 1;
      }
    });
    if (!more) return false;
  }
}

class log_structured_space : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(cleaning, log_structured_space, ::testing::Bool(), [](const auto& i) {
  return i.param ? "in_the_background" : "in_commits";
});

TEST_P(log_structured_space, keeps_going_at_95_percent) {
  scratch_directory dir;
  auto o = options_of(std::size_t{8} << 20);
  o.engine.background = GetParam();
  auto p = open_pool<list>(dir.file("pool"), o);
  ASSERT_TRUE(fill_to(p, 0.95 * 0.98))
      << "95 % of what chunks can hold, those apart that are kept for cleaning and open";
  const auto length = p.read([](const list& l) { return l.length.load(); }).value_or(0);
  base::rng random(1);
  for (int i = 0; i < 20'000; ++i) {
    auto turned = p.update([&](list& l) {  // drops the newest item, adds one, changes an old one
      item* const first = l.head;
      l.head = first->next.load();
      destroy(first);
      auto* const n = make<item>();
      for (auto& f : n->payload) f = std::uint64_t{1};
      n->next = l.head;
      l.head = n;
      item* walk = l.head;
      for (auto steps = random.below(64); steps != 0 && walk->next.load() != nullptr; --steps)
        walk = walk->next;
      walk->payload[random.below(15)] = random();
    });
    ASSERT_TRUE(succeeds(turned)) << "after " << i;
  }
  EXPECT_EQ(p.read([](const list& l) { return l.length.load(); }).value_or(0), length);
  EXPECT_GT(p.counters().of_mechanism["cleaned_chunks"], 100u);
  EXPECT_EQ(audit(p).used_blocks, length + 1);
  ASSERT_TRUE(succeeds(p.close()));
  p = open_pool<list>(dir.file("pool"), o);
  EXPECT_EQ(audit(p).used_blocks, length + 1);
}

TEST_P(log_structured_space, is_full_with_a_sentence_and_frees_then) {
  scratch_directory dir;
  auto o = options_of();
  o.engine.background = GetParam();
  auto p = open_pool<list>(dir.file("pool"), o);
  for (int round = 0; round < 4; ++round) {
    EXPECT_FALSE(fill_to(p, 1.0));
    const auto refused_one =
        p.update([](list& l) { l.head = (destroy(make_array<item>(64)), make_array<item>(64)); });
    EXPECT_TRUE(fails_with(refused_one, errc::full));
    EXPECT_NE(refused_one.error().message.find("no room"), std::string::npos)
        << refused_one.error().message;
    const auto length = p.read([](const list& l) { return l.length.load(); }).value_or(0);
    EXPECT_GT(length * sizeof(item), (std::size_t{1} << 20) * 7 / 10) << "too much is out of reach";
    for (bool more = true; more;) {
      const auto freed = p.update([](list& l) {
        item* const first = l.head;
        if (first == nullptr) return false;
        l.head = first->next.load();
        l.length -= 1;
        destroy(first);
        return true;
      });
      ASSERT_TRUE(succeeds(freed));
      more = *freed;
    }
    EXPECT_EQ(audit(p).used_blocks, 1u);
  }
}

// A transaction larger than a chunk is split over many chunks. A block larger than the heap's
// chunks is made and freed.
// L3
TEST(log_structured, takes_transactions_of_any_size) {
  struct holder {
    field<numbers*> big;
  };
  for (const concurrency policy : all_policies) {
    scratch_directory dir;
    auto p = open_pool<holder>(dir.file("pool"), options_of(std::size_t{8} << 20, policy));
    for (int round = 0; round < 6; ++round) {
      ASSERT_TRUE(succeeds(p.update([&](holder& h) {
        if (h.big.load() != nullptr) destroy(h.big.load());
        h.big = make_array<numbers>(300);  // 1.2 MB, zeroed
        for (std::size_t i = 0; i < 300; ++i) h.big.load()[i].at[i] = i + 1;
      })));
      EXPECT_EQ(audit(p).used_blocks, 2u);
      if (round % 2 == 1) {
        ASSERT_TRUE(succeeds(p.close()));
        p = open_pool<holder>(dir.file("pool"), options_of(std::size_t{8} << 20, policy));
      }
      const auto right = p.read([](const holder& h) {
        for (std::size_t i = 0; i < 300; ++i)
          if (h.big.load()[i].at[i].load() != i + 1 ||
              h.big.load()[i].at[(i + 1) % count].load() != 0)
            return false;
        return true;
      });
      EXPECT_TRUE(right.value_or(false));
    }
  }
}

// Writers, readers and cleaners run at once. Swaps keep the sum, and every reader sees that sum.
// L7
TEST(log_structured, cleans_beside_writers_and_readers) {
  for (const concurrency policy : {concurrency::stm, concurrency::single_writer}) {
    SCOPED_TRACE(name_of(policy));
    scratch_directory dir;
    auto o = options_of(std::size_t{1} << 20, policy);
    o.engine.log_size = 1024;
    o.engine.tuning.of<log_structured_options>().clean_from = 0;
    o.engine.tuning.of<log_structured_options>().victim_live_share = 0.9;
    o.engine.tuning.of<log_structured_options>().cleaners = 2;
    auto p = open_pool<numbers>(dir.file("pool"), o);
    ASSERT_TRUE(succeeds(p.update([](numbers& n) {
      for (std::size_t i = 0; i < count; ++i) n.at[i] = i;
    })));
    const auto sum = sum_of(p);
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> torn{0}, reads{0}, failed{0};
    std::array<std::string, 2> errors;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        base::rng random(t);
        for (int i = 0; i < 30'000; ++i) {
          const auto done = p.update([&](numbers& n) {
            const std::size_t a = random.below(count), b = random.below(count);
            const std::uint64_t x = n.at[a], y = n.at[b];
            n.at[a] = y;
            n.at[b] = x;
          });
          if (!done) ++failed, errors[t] = done.error().message;
        }
      });
    threads.emplace_back([&] {
      while (!stop) {
        if (sum_of(p) != sum) ++torn;
        ++reads;
      }
    });
    threads[0].join();
    threads[1].join();
    stop = true;
    threads.clear();
    EXPECT_EQ(torn.load(), 0u) << "of " << reads.load();
    EXPECT_EQ(failed.load(), 0u) << errors[0] << errors[1];
    EXPECT_EQ(sum_of(p), sum);
    EXPECT_GT(p.counters().of_mechanism["cleaned_chunks"], 50u);
    ASSERT_TRUE(succeeds(p.close()));
    EXPECT_EQ(sum_of(open_pool<numbers>(dir.file("pool"), o)), sum);
  }
}

// A clean close saves the map. A damaged map is not used: the log is read instead, and nothing is
// lost.
// L8
TEST(log_structured, reads_the_map_that_a_close_left_and_the_log_without_it) {
  scratch_directory dir;
  auto p = open_pool<numbers>(dir.file("pool"), options_of());
  ASSERT_TRUE(succeeds(p.update([](numbers& n) {
    for (std::size_t i = 0; i < count; i += 3) n.at[i] = i;
  })));
  const auto sum = sum_of(p);
  ASSERT_TRUE(succeeds(p.close()));
  const file_of file(dir.file("pool"));
  const auto header = storage::pool_file::peek(file.path);
  ASSERT_TRUE(succeeds(header));
  const auto first =
      format::unguard(file.word(format::saved_map_offset), header->id, format::saved_map_offset);
  ASSERT_TRUE(first && *first != 0) << "no mapping was left";
  const std::uint64_t chunk = header->log_offset + (*first - 1) * header->log_size;
  EXPECT_EQ(file.word(chunk + 8) & 0xFF, static_cast<std::uint64_t>(format::log_type::mapping));
  {
    auto again = open_pool<numbers>(dir.file("pool"), options_of());
    EXPECT_EQ(sum_of(again), sum);
    ASSERT_TRUE(succeeds(again.close()));
  }
  const auto second =
      format::unguard(file.word(format::saved_map_offset), header->id, format::saved_map_offset);
  ASSERT_TRUE(second && *second != 0);
  const std::uint64_t pair = header->log_offset + (*second - 1) * header->log_size + 64 + 24 + 8;
  file.set(pair, file.word(pair) ^ 8);
  auto last = open_pool<numbers>(dir.file("pool"), options_of());
  EXPECT_EQ(sum_of(last), sum);
  EXPECT_EQ(audit(last).used_blocks, 1u);
}

// One thread and several threads recover the same from a log with frees, overwrites and moved
// blocks.
// L8
TEST(log_structured, recovers_the_same_with_any_number_of_threads) {
  scratch_directory dir;
  {
    auto o = options_of(std::size_t{8} << 20);
    o.engine.tuning.of<log_structured_options>().clean_from = 0;
    o.engine.background = false;  // no thread moves anything while the file is copied
    auto p = open_pool<list>(dir.file("pool"), o);
    ASSERT_TRUE(fill_to(p, 0.5));
    for (int i = 0; i < 3000; ++i)
      ASSERT_TRUE(succeeds(p.update([&](list& l) {
        item* const first = l.head;
        l.head = first->next.load();
        l.length -= 1;
        destroy(first);
      })));
    // Between commits: the copy has all that was acknowledged.
    std::filesystem::copy_file(dir.file("pool"), dir.file("crashed"));
  }
  std::vector<std::uint64_t> blocks;
  for (const unsigned threads : {1u, 2u, 5u}) {
    std::filesystem::copy_file(dir.file("crashed"), dir.file("copy"),
                               std::filesystem::copy_options::overwrite_existing);
    auto o = options_of();
    o.engine.tuning.of<log_structured_options>().recovery_threads = threads;
    auto p = open_pool<list>(dir.file("copy"), o);
    blocks.push_back(audit(p).used_blocks);
    const auto length = p.read([](const list& l) {
      std::uint64_t n = 0;
      for (item* i = l.head; i != nullptr; i = i->next) ++n;
      return n == l.length.load() ? n : 0;
    });
    EXPECT_EQ(length.value_or(0) + 1, blocks.back());
  }
  EXPECT_EQ(blocks, std::vector(3, blocks.front()));
}

struct summed_list {
  field<item*> head;
  field<std::uint64_t> length, sum;
};

// Adds an item, or drops the newest and changes an older one. All words of an item are equal; `sum`
// counts one word of each item.
result<> turn(pool<summed_list>& p, base::rng& random) {
  return p.update([&](summed_list& l) {
    const std::uint64_t drawn = random();
    if (l.length.load() < 2000 || (l.length.load() < 4000 && drawn % 2 == 0)) {
      auto* const n = make<item>();
      for (auto& f : n->payload) f = drawn;
      n->next = l.head;
      l.head = n;
      l.length += 1;
      l.sum += drawn;
      return;
    }
    item* const first = l.head;
    l.head = first->next.load();
    l.length -= 1;
    l.sum -= first->payload[0].load();
    destroy(first);
    item* other = l.head;
    for (auto steps = drawn % 32; steps != 0 && other->next.load() != nullptr; --steps)
      other = other->next;
    const std::uint64_t more = other->payload[0].load() + 1;
    for (auto& f : other->payload) f = more;
    l.sum += 1;
  });
}

bool is_whole(const pool<summed_list>& p) {
  const auto items = p.read([](const summed_list& l) {
    std::uint64_t n = 0, sum = 0;
    bool same = true;
    for (item* i = l.head; i != nullptr; i = i->next) {
      ++n;
      sum += i->payload[0].load();
      for (const auto& f : i->payload) same = same && f.load() == i->payload[0].load();
    }
    return same && n == l.length.load() && sum == l.sum.load() ? n : ~std::uint64_t{0};
  });
  return items && audit(p).used_blocks == *items + 1;
}

struct toggled {
  using pool_resident = void;
  hash_map<std::uint64_t, blob<64>> items;
};

// Small ranges are joined while four threads overwrite parts of them.
TEST(log_structured, joins_ranges_beside_writers) {
  for (std::uint64_t round = 0; round < count_from("STELE_ROUNDS", 100); ++round) {
    scratch_directory dir;
    pool_options o{.create_size = 20 << 20,
                   .engine = {.mechanism = "log_structured", .log_size = 32768}};
    o.engine.tuning =
        log_structured_options{.node_cache = false, .clean_from = 0, .victim_live_share = 0.5};
    auto p = open_pool<toggled>(dir.file("pool"), o);
    ASSERT_TRUE(succeeds(p.update([](toggled& t) { t.items.reserve(512); })));
    {
      std::vector<std::jthread> threads;
      for (unsigned n = 0; n < 4; ++n)
        threads.emplace_back([&, n] {
          base::rng random(4 * round + n);
          for (unsigned i = 0; i < 3000; ++i) {
            const std::uint64_t key = random.below(512);
            EXPECT_TRUE(p.update([&](toggled& t) {
              if (t.items.erase(key) == 0) t.items.insert_or_assign(key, blob<64>{});
            }));
          }
        });
    }
    ASSERT_TRUE(succeeds(p.read([](const toggled& t) { return t.items.check(); }))) << round;
  }
}

// Kills a process at any moment of commits by two threads and of two cleaners that never rest.
TEST(log_structured, is_whole_after_a_kill_while_it_cleans) {
  for (std::uint64_t round = 0; round < count_from("STELE_KILLS", 20); ++round) {
    SCOPED_TRACE(round);
    scratch_directory dir;
    auto o = options_of(std::size_t{2} << 20,
                        round % 2 == 0 ? concurrency::stm : concurrency::single_writer);
    o.engine.tuning.of<log_structured_options>().clean_from = 0;
    o.engine.tuning.of<log_structured_options>().victim_live_share = 0.6;
    o.engine.tuning.of<log_structured_options>().cleaners = 2;
    child worker([&](const word_sender& send) {
      auto p = open_pool<summed_list>(dir.file("pool"), o);
      auto work = [&](std::uint64_t seed) {
        base::rng random(seed);
        for (std::uint64_t n = 1; turn(p, random); ++n)
          if (n == 2000) send(n);
      };
      std::jthread other(work, 2 * round);
      work(2 * round + 1);
    });
    std::uint64_t word = 0;
    ASSERT_TRUE(worker.receive(word));
    ::usleep(static_cast<useconds_t>(base::mix(round) % 20'000));
    worker.kill_and_drain(0);
    EXPECT_TRUE(is_whole(open_pool<summed_list>(dir.file("pool"), o)));
  }
}

TEST(log_structured, refuses_shapes_that_cannot_be) {
  scratch_directory dir;
  auto o = options_of();
  o.engine.log_size = 3000;
  EXPECT_TRUE(fails_with(pool<numbers>::open(dir.file("a"), o), errc::invalid_argument));
  o.engine.log_size = std::size_t{1} << 20;
  EXPECT_TRUE(fails_with(pool<numbers>::open(dir.file("b"), o), errc::invalid_argument));
}

}  // namespace
}  // namespace stele::testing
