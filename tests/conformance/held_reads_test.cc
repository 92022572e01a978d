// Reads that are held over what others do, beside a model: snapshots of the writing process and
// long reads of a reader.
//
// A pool of words on many pages, up to its last one, gets random commits, durable and ordered ones;
// between them a read is taken, compared with what the words were when it began, or ended. In other
// tests the memory to keep pages for a reader runs out, or the writer is killed and another one
// goes on while the read is held: then the read sees its moment or an error.
//
// The first round is always of the same seed. STELE_SEED repeats a run, STELE_HELD_ROUNDS makes
// more of them.
#include <base/rng.h>
#include <media/os.h>
#include <stele/snapshot.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

namespace stele::testing {
namespace held_reads {

constexpr std::size_t words_of_root = 4096, words_of_part = 480, parts = 200;

struct part {
  field<std::uint64_t> value[words_of_part];
};
struct many_pages {
  field<std::uint64_t> value[words_of_root];
  field<part*> parts_of_rest[parts];
};

// What the pool holds: the words of the root and of each part; an absent part has none.
struct words {
  std::vector<std::uint64_t> root = std::vector<std::uint64_t>(words_of_root);
  std::vector<std::vector<std::uint64_t>> rest = std::vector<std::vector<std::uint64_t>>(parts);
  bool operator==(const words&) const = default;
};

words words_of(const many_pages& p) {
  words w;
  for (std::size_t i = 0; i < words_of_root; ++i) w.root[i] = p.value[i];
  for (std::size_t n = 0; n < parts; ++n)
    if (const part* const at = p.parts_of_rest[n])
      for (const auto& v : at->value) w.rest[n].push_back(v);
  return w;
}

// A read that cannot run again, as a `with` of Python is one, in a thread of its own.
class read_elsewhere {
 public:
  explicit read_elsewhere(const std::string& path) : thread_([this, path] { hold(path); }) {
    wait_until_idle();
  }
  ~read_elsewhere() {
    ask(request::end);
    thread_.join();
  }
  bool began() const { return began_; }
  // Null: the read has lost its moment.
  std::optional<words> look() {
    ask(request::look);
    return std::move(seen_);
  }

 private:
  enum class request : std::uint8_t { none, look, end };

  void hold(const std::string& path) {
    {
      const auto pool = stele::pool<many_pages>::open_read_only(path);
      EXPECT_TRUE(succeeds(pool));
      began_ = pool && detail::begin_transaction(pool->core(), false, durability::durable,
                                                 detail::code_between::may_wait) ==
                           detail::begin_status::started;
      while (answer() != request::end) seen_ = look_now(*pool);
      if (began_) detail::roll_back_transaction();
    }
    done();
  }
  static std::optional<words> look_now(const pool<many_pages>& p) {
    try {
      auto seen = p.read(words_of);
      return seen ? std::optional(std::move(*seen)) : std::nullopt;
    } catch (const conflict&) {
    } catch (const std::bad_alloc&) {
    }
    return std::nullopt;
  }
  request answer() {
    std::unique_lock lock(mutex_);
    asked_ = request::none;
    changed_.notify_all();
    changed_.wait(lock, [&] { return asked_ != request::none; });
    return asked_;
  }
  void done() {
    const std::lock_guard lock(mutex_);
    asked_ = request::none;
    changed_.notify_all();
  }
  void ask(request what) {
    {
      const std::lock_guard lock(mutex_);
      asked_ = what;
      changed_.notify_all();
    }
    wait_until_idle();
  }
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ == request::none; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  request asked_ = request::look;  // of the thread that begins
  bool began_ = false;
  std::optional<words> seen_;
  std::thread thread_;
};

class held_reads : public ::testing::Test {
 protected:
  // A snapshot or a read elsewhere, and what it has to show.
  struct held {
    words then;
    std::optional<pool_snapshot> here;
    std::unique_ptr<read_elsewhere> elsewhere;
  };

  void draw_options() {
    static const auto mechanisms =
        known_of({"default", "default", "redo", "redo-async", "undo", "xil", "base"});
    static constexpr const char* media[] = {"adr", "process", "file"};
    options_ = {
        .create_size = 128 << 10,
        .max_size = 4 << 20,
        .engine = {.mechanism = mechanisms[random_.below(std::size(mechanisms))],
                   .media = media[random_.below(std::size(media))],
                   .log_size = 8192,
                   .log_count = 2 + random_.below(3),
                   .block_checksums = random_.below(2) == 0 ? checksums::on : checksums::off,
                   .defer_ordered = random_.below(4) == 0 ? deferral::automatic : deferral::always,
                   .background = random_.below(2) == 0}};
  }
  void open() {
    held_.clear();
    pool_.reset();
    std::filesystem::remove(path_);
    model_ = {}, last_ = 0;
    pool_.emplace(open_pool<many_pages>(path_, options_));
  }
  // Parts in all pages that are left, up to the last one.
  void fill() {
    const part* last = nullptr;
    for (std::size_t n = 0; n < parts; ++n) {
      const auto made = pool_->update([&](many_pages& p) {
        turn(p.parts_of_rest[n]);
        return p.parts_of_rest[n].load();
      });
      if (!made) return;
      model_.rest[n].resize(words_of_part);
      if (*made > last) last = *made, last_ = n;
    }
  }
  durability how() { return random_.below(3) == 0 ? durability::durable : durability::ordered; }

  // Some words of some pages, and now and then a part.
  void commit() {
    words after = model_;
    std::vector<std::pair<std::size_t, std::size_t>> changed;  // part or `parts`, word
    for (std::uint64_t n = 1 + random_.below(6); n != 0; --n) {
      const std::size_t in = random_.below(2) == 0   ? parts
                             : random_.below(4) == 0 ? last_
                                                     : random_.below(parts);
      auto& to = in == parts ? after.root : after.rest[in];
      if (to.empty()) continue;
      for (std::uint64_t run = 1 + random_.below(4), at = random_.below(to.size()); run != 0; --run)
        if (at + run <= to.size())
          to[at + run - 1] = random_(), changed.emplace_back(in, at + run - 1);
    }
    const std::size_t turned = random_.below(parts);
    const bool turns = random_.below(3) == 0;
    if (turns) after.rest[turned].resize(model_.rest[turned].empty() ? words_of_part : 0);
    const auto done = pool_->update(
        [&](many_pages& p) {
          for (const auto& [in, at] : changed)
            (in == parts ? p.value[at] : p.parts_of_rest[in]->value[at]) =
                in != parts && after.rest[in].empty() ? 0
                : in == parts                         ? after.root[at]
                                                      : after.rest[in][at];
          if (turns) turn(p.parts_of_rest[turned]);
        },
        how());
    if (turns && !done && done.error().code == errc::full) return;
    ASSERT_TRUE(succeeds(done));
    model_ = std::move(after);
  }
  static void turn(field<part*>& at) {
    if (part* const there = at)
      destroy(there), at = nullptr;
    else
      at = make<part>();
  }
  void take() {
    if (held_.size() == 4) return;
    held h{model_, {}, {}};
    if (random_.below(2) == 0) {
      auto taken = take_snapshot(*pool_);
      ASSERT_TRUE(succeeds(taken));
      h.here.emplace(std::move(*taken));
    } else {
      h.elsewhere = std::make_unique<read_elsewhere>(path_);
      ASSERT_TRUE(h.elsewhere->began());
    }
    held_.push_back(std::move(h));
  }
  static std::optional<words> look(held& h, const pool<many_pages>& p) {
    if (h.elsewhere) return h.elsewhere->look();
    const auto seen = h.here->read([&] { return p.read(words_of); });
    EXPECT_TRUE(succeeds(seen));
    return seen ? std::optional(*seen) : std::nullopt;
  }
  void compare(held& h) {
    const auto seen = look(h, *pool_);
    ASSERT_TRUE(seen.has_value()) << "a read has lost its moment";
    EXPECT_TRUE(*seen == h.then) << "a " << (h.here ? "snapshot" : "reader") << " sees other words";
  }
  void step() {
    const std::uint64_t which = random_.below(20);
    if (which < 12)
      commit();
    else if (which < 15)
      take();
    else if (which == 15)
      ASSERT_TRUE(succeeds(pool_->sync()));
    else if (held_.empty() && options_.max_size == 0)
      commit();
    else if (held_.empty())
      ASSERT_TRUE(succeeds(pool_->grow(pool_->space().size_bytes + 1)));
    else if (held& h = held_[random_.below(held_.size())]; which < 18)
      compare(h);
    else
      compare(h), held_.erase(held_.begin() + (&h - held_.data()));
  }
  // Calls run() for each round, with random_ of its seed.
  template <class Run>
  void for_each_seed(Run&& run) {
    const std::uint64_t rounds = count_from("STELE_HELD_ROUNDS", budget::sanitized ? 2 : 6);
    const std::uint64_t seed = seed_from("STELE_SEED");
    for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
      const std::uint64_t drawn =
          round == 0 && std::getenv("STELE_SEED") == nullptr ? 1 : seed + round;
      random_ = base::rng(drawn);
      draw_options();
      SCOPED_TRACE("STELE_SEED=" + std::to_string(drawn) + " " + options_.engine.mechanism +
                   " on " + options_.engine.media);
      run();
    }
  }

  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  base::rng random_{0};
  pool_options options_;
  std::optional<pool<many_pages>> pool_;
  words model_;
  std::size_t last_ = 0;  // the part at the end of a full pool
  std::vector<held> held_;
};

TEST_F(held_reads, show_their_moment_whatever_is_committed_after_it) {
  for_each_seed([&] {
    if (random_.below(2) == 0) options_.create_size = 320 << 10, options_.max_size = 0;
    open();
    if (options_.max_size == 0) fill();
    for (int i = 0; i < 300 && !HasFailure(); ++i) step();
    for (held& h : held_) compare(h);
    held_.clear();
    EXPECT_TRUE(pool_->read(words_of) == model_);
    EXPECT_TRUE(succeeds(pool_->close()));
    pool_.emplace(open_pool<many_pages>(path_, options_));
    EXPECT_TRUE(pool_->read(words_of) == model_);
    EXPECT_TRUE(succeeds(pool_->check()));
    pool_.reset();
  });
}

// Lets some more calls reserve memory, then none. The pool's file reserves none while it does not
// grow. Never destroyed: the thread that serves readers may be in a call.
class memory_left final : public media::os::syscall_hook {
 public:
  static memory_left& instance() {
    static memory_left hook;
    return hook;
  }
  void be(std::uint64_t calls) {
    calls_ = calls;
    media::os::install_hook(this);
  }
  int before(const media::os::request& r) noexcept override {
    if (r.what != media::os::call::fallocate) return 0;
    return calls_ == 0 ? ENOSPC : (--calls_, 0);
  }

 private:
  std::atomic<std::uint64_t> calls_{0};
};

// From some page on there is no memory to keep what a commit is about to change.
TEST_F(held_reads, of_a_reader_are_an_error_when_no_memory_is_left_for_them) {
  std::uint64_t lost = 0;
  for_each_seed([&] {
    options_.create_size = 1 << 20, options_.max_size = 0;
    open();
    for (int i = 0; i < 20; ++i) commit();
    held h{model_, {}, std::make_unique<read_elsewhere>(path_)};
    ASSERT_TRUE(h.elsewhere->began());
    memory_left::instance().be(random_.below(12));
    for (int i = 0; i < 30 && !HasFailure(); ++i) commit();
    media::os::install_hook(nullptr);
    const auto seen = look(h, *pool_);
    lost += !seen;
    EXPECT_TRUE(!seen || *seen == h.then) << "a reader sees other words";
    h.elsewhere.reset();
    EXPECT_TRUE(pool_->read(words_of) == model_);
    pool_.reset();
  });
  EXPECT_GT(lost, 0u);
}

// --- over the death of a writer ---

// The sum of the words of the root is what its first word says.
struct summed {
  field<std::uint64_t> sum;
  field<std::uint64_t> value[40 * 512];
};
constexpr std::size_t apart = 64;  // words: several places a page

void add_somewhere(summed& s, base::rng& r) {
  for (std::uint64_t n = 1 + r.below(5); n != 0; --n) {
    const std::uint64_t more = 1 + r.below(9);
    s.value[r.below(40 * 512 / apart) * apart] += more;
    s.sum += more;
  }
}
// Null: the sum is another one.
std::optional<std::uint64_t> sum_of(const summed& s) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 40 * 512; i += apart) sum += s.value[i];
  return sum == s.sum ? std::optional(sum) : std::nullopt;
}

// Opens the pool and commits until it is killed; sends the sums that are acknowledged.
void add_for_ever(const std::string& path, const pool_options& options, std::uint64_t seed,
                  const word_sender& send) {
  auto p = open_pool<summed>(path, options);
  base::rng r(seed);
  for (;;) {
    const auto sum = p.update(
        [&](summed& s) {
          add_somewhere(s, r);
          return s.sum.load();
        },
        r.below(3) == 0 ? durability::durable : durability::ordered);
    send(sum ? *sum : 0);
  }
}

TEST_F(held_reads, of_a_reader_end_or_keep_their_moment_when_another_writer_takes_over) {
  for_each_seed([&] {
    std::filesystem::remove(path_);
    options_.create_size = 2 << 20, options_.max_size = 0;
    {
      auto made = open_pool<summed>(path_, options_);
    }
    std::optional<child> writer;
    const auto start = [&] {
      writer.emplace([&, seed = random_()](const word_sender& send) {
        add_for_ever(path_, options_, seed, send);
      });
      for (std::uint64_t n = 1 + random_.below(30), sum = 0; n != 0; --n)
        ASSERT_TRUE(writer->receive(sum));
    };
    start();
    auto reads = pool<summed>::open_read_only(path_);
    ASSERT_TRUE(succeeds(reads));
    for (int deaths = 0; deaths < 4 && !HasFailure(); ++deaths) {
      ASSERT_TRUE(succeeds(reads->read([](const summed&) {})));
      ASSERT_EQ(detail::begin_transaction(reads->core(), false, durability::durable,
                                          detail::code_between::may_wait),
                detail::begin_status::started);
      const auto look = [&]() -> std::optional<std::optional<std::uint64_t>> {
        try {
          return reads->read(sum_of).value_or(std::nullopt);
        } catch (const conflict&) {
          return std::nullopt;
        }
      };
      std::optional<std::optional<std::uint64_t>> then;
      if (random_.below(2) == 0) then = look();
      writer.reset();
      if (random_.below(4) != 0) std::jthread([&] { start(); });
      const auto now = look();
      if (now) {
        EXPECT_TRUE(now->has_value()) << "a read over the death of a writer is torn";
      }
      if (now && then) {
        EXPECT_EQ(*now, *then) << "a read has left its moment";
      }
      detail::roll_back_transaction();
      writer.reset();
      std::jthread([&] { start(); });
      const auto after = reads->read(sum_of);
      ASSERT_TRUE(succeeds(after));
      EXPECT_TRUE(after->has_value());
    }
    writer.reset();
  });
}

// Readers begin while a writer recovers what another one has left, which both of them then do.
TEST_F(held_reads, that_begin_beside_a_recovery_see_one_state_and_no_error) {
  for_each_seed([&] {
    std::filesystem::remove(path_);
    options_.create_size = 2 << 20, options_.max_size = 0, options_.engine.log_size = 64 << 10;
    {
      auto made = open_pool<summed>(path_, options_);
    }
    const auto read = [&](const word_sender&) {
      for (int i = 0; i < 12; ++i) {
        auto reads = pool<summed>::open_read_only(path_);
        const auto sum = reads ? reads->read(sum_of) : std::unexpected(reads.error());
        EXPECT_TRUE(sum || sum.error().code == errc::in_use) << sum.error().message;
        EXPECT_TRUE(!sum || sum->has_value()) << "a read beside a recovery is torn";
      }
    };
    for (int deaths = 0; deaths < 12 && !HasFailure(); ++deaths) {
      std::vector<std::unique_ptr<child>> readers;
      for (int i = 0; i < 2; ++i) readers.push_back(std::make_unique<child>(read));
      child writer([&, seed = random_()](const word_sender& send) {
        add_for_ever(path_, options_, seed, send);
      });
      std::uint64_t sum = 0;
      for (std::uint64_t n = 1 + random_.below(60); n != 0; --n) ASSERT_TRUE(writer.receive(sum));
      writer.kill_and_drain(0);
      for (auto& reader : readers) EXPECT_EQ(reader->wait(), 0);
    }
  });
}

// Another pool of the same layout and size is copied over the one that a reader has open, and a
// writer opens that.
TEST_F(held_reads, of_a_pool_that_another_was_copied_over_are_an_error) {
  for_each_seed([&] {
    const std::string other = dir_.file("other");
    options_.create_size = 2 << 20, options_.max_size = 0;
    for (const std::string& path : {path_, other}) {
      std::filesystem::remove(path);
      auto p = open_pool<summed>(path, options_);
      for (std::uint64_t n = 1 + random_.below(20); n != 0; --n)
        ASSERT_TRUE(succeeds(p.update([&](summed& s) { add_somewhere(s, random_); })));
    }
    auto reads = pool<summed>::open_read_only(path_);
    ASSERT_TRUE(succeeds(reads->read(sum_of)));
    std::ofstream(path_, std::ios::binary | std::ios::in | std::ios::out)
        << std::ifstream(other, std::ios::binary).rdbuf();
    child writer([&, seed = random_()](const word_sender& send) {
      add_for_ever(path_, options_, seed, send);
    });
    std::uint64_t sum = 0;
    ASSERT_TRUE(writer.receive(sum));
    EXPECT_TRUE(fails_with(reads->read(sum_of), errc::layout));
    const auto again = pool<summed>::open_read_only(path_);
    ASSERT_TRUE(succeeds(again));
    EXPECT_TRUE(again->read(sum_of).value_or(std::nullopt).has_value());
  });
}

}  // namespace held_reads
}  // namespace stele::testing
