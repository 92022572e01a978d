// What the features of a pool do together: threads of the writing process read and change it with
// few logs, durably and not, while snapshots are held, other processes read, and the pool grows.
//
// Each round draws one product of them. The words of the pool add up to what one of them says, in
// every state: each read, of whatever kind, adds them up, and what is left after the last commit
// does too. A read of the writing process rests in its middle until others have committed, so that
// it meets their stores whatever the processors are.
//
// The first rounds are always of the same seeds. STELE_SEED repeats a run, STELE_SHARED_ROUNDS
// makes more of them.
#include <base/rng.h>
#include <stele/snapshot.h>
#include <sys/mman.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

namespace stele::testing {
namespace shared_pool {

constexpr std::size_t words = 24 * 512, apart = 48, places = words / apart, rest = 40;

struct block {
  field<std::uint64_t> value[700];
};
struct summed {
  field<std::uint64_t> sum;
  field<std::uint64_t> value[words];
  field<block*> blocks[rest];
};

std::uint64_t first_half(const summed& s) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < places / 2; ++i) sum += s.value[i * apart];
  return sum;
}
std::uint64_t second_half(const summed& s) {
  std::uint64_t sum = 0;
  for (std::size_t i = places / 2; i < places; ++i) sum += s.value[i * apart];
  for (const auto& at : s.blocks)
    if (const block* const b = at)
      for (std::size_t i = 0; i < 700; i += 100) sum += b->value[i];
  return sum;
}
bool adds_up(const summed& s) {
  return first_half(s) + second_half(s) == s.sum;
}

// Moves between words of different pages, adds to some, and now and then turns a block.
void change(summed& s, base::rng& r) {
  for (std::uint64_t n = 1 + r.below(8); n != 0; --n) {
    const std::uint64_t by = 1 + r.below(100);
    s.value[r.below(places / 2) * apart] -= by;
    s.value[(places / 2 + r.below(places / 2)) * apart] += by;
  }
  s.value[r.below(places) * apart] += 1;
  s.sum += 1;
  if (r.below(4) != 0) return;
  field<block*>& at = s.blocks[r.below(rest)];
  if (block* const there = at) {
    for (std::size_t i = 0; i < 700; i += 100) s.sum -= there->value[i];
    destroy(there);
    at = nullptr;
    return;
  }
  block* const made = make<block>();
  for (std::size_t i = 0; i < 700; i += 100) made->value[i] = i + 1, s.sum += i + 1;
  at = made;
}

struct product {
  pool_options options;
  unsigned readers = 0;  // other processes
  bool snapshots = false, grows = false;
  unsigned ordered = 0;  // of 4 commits

  static product drawn(base::rng& r) {
    static const auto mechanisms =
        known_of({"default", "default", "default", "redo", "undo", "redo-async"});
    static constexpr const char* media[] = {"adr", "process", "file"};
    product p;
    p.options = {.create_size = std::size_t{256} << 10,
                 .policy = r.below(4) == 0 ? concurrency::single_writer : concurrency::stm,
                 .engine = {.mechanism = mechanisms[r.below(std::size(mechanisms))],
                            .media = media[r.below(std::size(media))],
                            .log_size = 8192,
                            .log_count = 1 + r.below(4),
                            .block_checksums = r.below(2) == 0 ? checksums::on : checksums::off,
                            .defer_ordered = deferral::always,
                            .background = r.below(2) == 0}};
    p.readers = static_cast<unsigned>(r.below(3));
    p.snapshots = p.options.policy == concurrency::stm && r.below(2) == 0;
    p.grows = r.below(2) == 0;
    p.ordered = static_cast<unsigned>(r.below(4));
    if (p.grows)
      p.options.max_size = std::size_t{8} << 20;
    else
      p.options.create_size = std::size_t{1} << 20;
    return p;
  }
  std::string text() const {
    return options.engine.mechanism + " on " + options.engine.media + ", policy " +
           name_of(options.policy) + ", logs " + std::to_string(options.engine.log_count) +
           ", sums " + std::to_string(options.engine.block_checksums == checksums::on) +
           ", background " + std::to_string(options.engine.background) + ", readers " +
           std::to_string(readers) + ", snapshots " + std::to_string(snapshots) + ", growth " +
           std::to_string(grows) + ", ordered " + std::to_string(ordered) + " of 4";
  }
};

// In memory that forked processes share.
struct seen_elsewhere {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> reads{0}, torn{0}, failed{0};
};

class shared_pool : public ::testing::Test {
 protected:
  static constexpr int steps = 150;

  shared_pool()
      : elsewhere_(*new(::mmap(nullptr, sizeof(seen_elsewhere), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0)) seen_elsewhere) {}
  ~shared_pool() override { ::munmap(&elsewhere_, sizeof(seen_elsewhere)); }

  void read_in_child(const word_sender& send) {
    auto reads = pool<summed>::open_read_only(path_);
    if (!reads) elsewhere_.failed += 1;
    send(1);
    while (reads && !elsewhere_.stop) {
      const auto whole = reads->read(adds_up);
      elsewhere_.reads += 1;
      if (!whole && whole.error().code != errc::in_use && elsewhere_.failed.fetch_add(1) < 3)
        std::fprintf(stderr, "a reader: %s\n", whole.error().message.c_str());
      elsewhere_.torn += whole && !*whole;
    }
  }
  // Rests after the first half until others have committed, at most for a while.
  void read_here(const pool<summed>& p, bool rests) {
    bool rests_now = rests;  // not when it runs again
    const auto whole = p.read([&](const summed& s) {
      const std::uint64_t half = first_half(s), until = commits_ + 2;
      if (std::exchange(rests_now, false))
        for (int i = 0; i < 20 && commits_ < until; ++i)
          std::this_thread::sleep_for(std::chrono::microseconds(20));
      return half + second_half(s) == s.sum;
    });
    EXPECT_TRUE(succeeds(whole));
    EXPECT_TRUE(!whole || *whole) << "a read of the writing process is torn";
  }
  void read_snapshot(pool<summed>& p) {
    const auto held = take_snapshot(p);
    ASSERT_TRUE(succeeds(held));
    for (int i = 0; i < 2; ++i) {
      const auto whole = held->read([&] { return p.read(adds_up); });
      EXPECT_TRUE(succeeds(whole));
      EXPECT_TRUE(!whole || *whole) << "a snapshot is torn";
      std::this_thread::yield();
    }
  }
  void work(pool<summed>& p, const product& of, std::uint64_t seed) {
    base::rng r(seed);
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      const std::uint64_t which = r.below(12);
      if (which < 7) {
        const auto how = r.below(4) < of.ordered ? durability::ordered : durability::durable;
        const std::uint64_t drawn = r();
        EXPECT_TRUE(succeeds(p.update(
            [&](summed& s) {
              base::rng again(drawn);
              change(s, again);
            },
            how)));
        commits_ += 1;
      } else if (which < 10) {
        read_here(p, r.below(2) == 0);
      } else if (which == 10 && of.snapshots) {
        read_snapshot(p);
      } else if (which == 11 && r.below(4) == 0) {
        EXPECT_TRUE(succeeds(p.sync()));
      }
    }
  }
  void expect_whole(pool<summed>& p) {
    const auto whole = p.read(adds_up);
    EXPECT_TRUE(succeeds(whole));
    EXPECT_TRUE(!whole || *whole) << "what is left does not add up";
    EXPECT_TRUE(succeeds(p.check()));
  }
  void run(const product& of, base::rng& r) {
    std::filesystem::remove(path_);
    elsewhere_.stop = false;
    auto p = std::make_optional(open_pool<summed>(path_, of.options));
    {
      std::vector<std::unique_ptr<child>> readers;
      for (unsigned i = 0; i < of.readers; ++i) {
        readers.push_back(
            std::make_unique<child>([this](const word_sender& send) { read_in_child(send); }));
        std::uint64_t ready = 0;
        ASSERT_TRUE(readers.back()->receive(ready));
      }
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t) threads.emplace_back([&, seed = r()] { work(*p, of, seed); });
      threads.clear();
      elsewhere_.stop = true;
      for (auto& reader : readers) EXPECT_EQ(reader->wait(), 0);
    }
    EXPECT_EQ(elsewhere_.torn, 0u);
    EXPECT_EQ(elsewhere_.failed, 0u);
    expect_whole(*p);
    EXPECT_TRUE(succeeds(p->close()));
    p.emplace(open_pool<summed>(path_, of.options));
    expect_whole(*p);
  }

  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  std::atomic<std::uint64_t> commits_{0};
  seen_elsewhere& elsewhere_;
};

TEST_F(shared_pool, adds_up_in_each_product_of_its_features) {
  const std::uint64_t rounds = count_from("STELE_SHARED_ROUNDS", budget::sanitized ? 4 : 12);
  const std::uint64_t seed = seed_from("STELE_SEED");
  const bool repeats = std::getenv("STELE_SEED") != nullptr;
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    const std::uint64_t drawn = round < rounds / 2 && !repeats ? round + 1 : seed + round;
    base::rng r(drawn);
    const product of = product::drawn(r);
    SCOPED_TRACE("STELE_SEED=" + std::to_string(drawn) + ": " + of.text());
    run(of, r);
  }
}

}  // namespace shared_pool
}  // namespace stele::testing
