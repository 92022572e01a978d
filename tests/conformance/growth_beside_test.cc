// Whatever reads a pool beside automatic growth: long reads, snapshots, readers in other processes,
// backup, check, space. Each sees one state of the pool.
//
// A writer puts items until the pool has grown many times. Each of its transactions adds an item,
// overwrites an older one, and stores what the numbers of all items add up to. A later byte in a
// state shows as a wrong sum.
#include <fcntl.h>
#include <media/os.h>
#include <pool/new_file.h>
#include <pool/pool_file.h>
#include <stele/kv.h>
#include <stele/snapshot.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

namespace stele::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// In pages: of a part of one, of whole ones, of a few.
std::size_t value_size_of(std::uint64_t number) {
  constexpr std::size_t page = 4096;
  return 8 + page * (number % 9) + (number % 4 == 0 ? 0 : 700);
}
std::string value_of(std::uint64_t number) {
  std::string value(value_size_of(number), static_cast<char>('a' + number % 26));
  std::memcpy(value.data(), &number, sizeof number);
  return value;
}
std::string key_of(std::uint64_t i) {
  return "item " + std::to_string(i);
}

// How many items the state has. Errors: corrupt.
result<std::uint64_t> count_of(const kv::view& v) {
  std::uint64_t sum = 0, count = 0;
  bool torn = false;
  v.for_each("item ", "item!", [&](std::string_view, std::string_view value) {
    std::uint64_t number = 0;
    std::memcpy(&number, value.data(), sizeof number);
    torn |= value != value_of(number);
    sum += number, ++count;
    return true;
  });
  const auto stored = v.get("sum");
  if (torn || std::to_string(sum) != stored.value_or("0"))
    return std::unexpected(
        error{errc::corrupt, "the " + std::to_string(count) + " items of a state add up to " +
                                 std::to_string(sum) + ", not " + stored.value_or("0") +
                                 (torn ? ", and one is torn" : "")});
  return count;
}

class growth_beside : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t small = 128 << 10;

  void open() {
    auto opened = kv::open(path_, {.create_size = small,
                                   .max_size = 512 * small,
                                   .engine = {.media = GetParam(),
                                              .log_size = 8192,
                                              .log_count = 6,
                                              .block_checksums = checksums::on,
                                              .verify = verification::always}});
    if (!opened) throw std::runtime_error(opened.error().message);
    store_.emplace(std::move(*opened));
  }
  void put_item(std::uint64_t i) {
    const std::uint64_t again = i * 7919 % (i + 1);
    std::vector<std::uint64_t> after = numbers_;
    after.resize(std::max<std::size_t>(after.size(), i + 1));
    after[i] = after[again] = i;
    std::uint64_t sum = 0;
    for (const std::uint64_t n : after) sum += n;
    ASSERT_TRUE(succeeds(store_->update([&](kv::changes& c) {
      for (const std::uint64_t to : {i, again}) c.put(key_of(to), value_of(i));
      c.put("sum", std::to_string(sum));
    })));
    numbers_ = std::move(after);
  }
  // Runs each of `others` in a thread again and again, beside a writer, with one pool after the
  // other. `before`: runs with each new pool.
  void run_beside(
      const std::vector<std::function<void(kv&)>>& others,
      const std::function<void()>& before = [] {}) {
    const auto end = steady_clock::now() + milliseconds(400 * budget::slowness);
    do {
      numbers_.clear();
      std::filesystem::remove(path_);
      open();
      before();
      std::atomic<bool> stop = false;
      {
        std::vector<std::jthread> threads;
        for (const auto& other : others)
          threads.emplace_back([&] {
            while (!stop.load()) other(*store_);
          });
        for (std::uint64_t i = 0; i < 150 && !HasFailure(); ++i) put_item(i);
        stop = true;
      }
      EXPECT_GT(store_->space().size_bytes, 4 * small) << "it grew several times";
      expect_whole();
    } while (steady_clock::now() < end && !HasFailure());
  }
  void expect_whole() {
    ASSERT_TRUE(succeeds(store_->close()));
    store_.reset();
    open();
    EXPECT_TRUE(succeeds(store_->check()));
    const auto count = store_->read(count_of);
    ASSERT_TRUE(succeeds(count));
    EXPECT_EQ(*count, numbers_.size());
    store_.reset();
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  std::optional<kv> store_;
  std::vector<std::uint64_t> numbers_;
};

// The body lasts long enough for the read to lose its attempts.
void read_long(kv& store) {
  EXPECT_TRUE(succeeds(store.read([](const kv::view& v) {
    auto count = count_of(v);
    std::this_thread::sleep_for(milliseconds(1));
    return v.contains("sum") ? count : result<std::uint64_t>(0);
  })));
}

TEST_P(growth_beside, long_reads) {
  run_beside({read_long, read_long, read_long});
}

TEST_P(growth_beside, snapshots) {
  const auto read_held = [](kv& store) {
    const auto held = take_snapshot(store);
    ASSERT_TRUE(succeeds(held));
    const auto read = [&] { return held->read([&] { return store.read(count_of); }); };
    const auto first = read();
    ASSERT_TRUE(succeeds(first));
    std::this_thread::sleep_for(milliseconds(2));
    const auto second = read();
    ASSERT_TRUE(succeeds(second));
    EXPECT_EQ(*first, *second);
  };
  run_beside({read_held, read_held, read_long});
}

TEST_P(growth_beside, backups_checks_and_space) {
  const std::string copy = dir_.file("copy");
  const auto back_up = [&](kv& store) {
    ASSERT_TRUE(succeeds(store.backup(copy)));
    auto copied = kv::open(copy, {.engine = {.media = "process", .verify = verification::always}});
    ASSERT_TRUE(succeeds(copied));
    EXPECT_TRUE(succeeds(copied->read(count_of)));
    EXPECT_TRUE(succeeds(copied->check()));
    ASSERT_TRUE(succeeds(copied->close()));
    std::filesystem::remove(copy);
  };
  const auto check = [](kv& store) { EXPECT_TRUE(succeeds(store.check())); };
  const auto measure = [](kv& store) {
    const pool_space s = store.space();
    EXPECT_GT(s.used_bytes, 0u);
    EXPECT_LE(s.log_bytes + s.used_bytes + s.free_bytes, s.size_bytes);
    EXPECT_LE(s.largest_free, s.free_bytes);
    EXPECT_GE(s.fragmentation, 0);
  };
  run_beside({back_up, check, measure, read_long});
}

// A reader in another process sees each new pool at another path.
TEST_P(growth_beside, readers_in_other_processes) {
  std::vector<std::unique_ptr<child>> readers;
  const auto start_reader = [&] {
    readers.clear();
    for (int i = 0; i < 2; ++i)
      readers.push_back(std::make_unique<child>([this](const word_sender& send) {
        auto store = kv::open_read_only(path_);
        ASSERT_TRUE(succeeds(store));
        for (std::uint64_t reads = 1;; ++reads) {
          if (const auto read = store->read(count_of); !read && read.error().code != errc::in_use) {
            ADD_FAILURE() << read.error().message;
            return send(0);
          }
          if (reads % 16 == 0) send(reads);
        }
      }));
  };
  const auto listen = [&](kv&) {
    for (const auto& reader : readers) {
      std::uint64_t reads = 0;
      ASSERT_TRUE(reader->receive(reads));
      ASSERT_NE(reads, 0u);
    }
  };
  run_beside({listen}, start_reader);
}

// Another thread grows the pool when a call has looked at the file for the first time.
class growth_after_a_look final : public media::os::syscall_hook {
 public:
  explicit growth_after_a_look(kv& store) : store_(store) { media::os::install_hook(this); }
  ~growth_after_a_look() override { media::os::install_hook(nullptr); }
  void after(const media::os::request& r) noexcept override {
    if (r.what != media::os::call::fstat || has_looked_.exchange(true)) return;
    std::thread([this] {
      has_grown_ = store_.grow(store_.space().size_bytes + 1).has_value();
    }).join();
  }
  bool has_grown() const { return has_grown_; }

 private:
  kv& store_;
  std::atomic<bool> has_looked_ = false, has_grown_ = false;
};

TEST_P(growth_beside, calls_that_look_at_the_file) {
  open();
  const std::function<result<>(kv&)> calls[] = {
      [](kv& s) { return s.check(); },
      [](kv& s) -> result<> {
        if (auto held = take_snapshot(s); !held) return std::unexpected(held.error());
        return {};
      },
      [](kv& s) -> result<> {
        if (auto named = s.open_store("named"); !named) return std::unexpected(named.error());
        return {};
      },
      [](kv& s) { return s.drop_store("named"); },
  };
  for (const auto& call : calls) {
    const growth_after_a_look beside(*store_);
    EXPECT_TRUE(succeeds(call(*store_)));
    EXPECT_TRUE(beside.has_grown());
  }
  expect_whole();
}

// A reader in another process has seen the file's size, and reads the header after a growth.
TEST_P(growth_beside, a_reader_that_maps_the_file) {
  open();
  const storage::descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  {
    const growth_after_a_look beside(*store_);
    EXPECT_TRUE(succeeds(storage::pool_file::map_for_reading(file.fd, path_)));
    EXPECT_TRUE(beside.has_grown());
  }
  expect_whole();
}

// The addresses of a reader cannot become more when a small pool has grown far.
TEST(growth_beside_readers, finds_addresses_for_the_usual_largest_pool) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  ASSERT_TRUE(succeeds(kv::open(path, {.create_size = 128 << 10})));
  const storage::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto mapped = storage::pool_file::map_for_reading(file.fd, path);
  ASSERT_TRUE(succeeds(mapped));
  EXPECT_GE(mapped->reserved_bytes(), std::size_t{1} << 40);
}

INSTANTIATE_TEST_SUITE_P(on, growth_beside, ::testing::Values("process", "adr", "file"),
                         plain_name);

}  // namespace
}  // namespace stele::testing
