// Reads by other processes beside a writer: what they cost it, how long opening takes, and whether
// any read is torn or stale, also when processes are killed. `stele bench readers`.
//
// The store holds pairs of keys. A change gives both keys of a pair the same new number, so a read
// of a pair shows whether it saw one state, and whether it missed a change acknowledged before.
#include <base/rng.h>
#include <bench/targets_parts.h>
#include <fmt/format.h>
#include <stele/kv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace stele::bench {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint64_t pair_count = 1024, operations_judged = 1'000'000, kills = 2'000;

double since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// In memory that all processes share.
struct board {
  std::atomic<std::uint64_t> acknowledged[pair_count] = {};  // the newest number of each pair
  std::atomic<bool> stop{false};
  std::atomic<unsigned> ready{0};
  std::atomic<std::uint64_t> reads{0}, torn{0}, stale{0}, failed{0};
};

class shared_board {
 public:
  shared_board()
      : at_(new(::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)) board) {}
  shared_board(const shared_board&) = delete;
  shared_board& operator=(const shared_board&) = delete;
  ~shared_board() { ::munmap(at_, sizeof(board)); }
  board* operator->() const noexcept { return at_; }
  board& operator*() const noexcept { return *at_; }

 private:
  board* at_;
};

// A forked process; killed, if it still runs, with this object.
class process {
 public:
  explicit process(const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    ::_exit(0);
  }
  process(process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  process& operator=(process&&) = delete;
  ~process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

std::array<std::string, 2> keys_of(std::uint64_t pair) {
  return {fmt::format("{:08}/a", pair), fmt::format("{:08}/b", pair)};
}

result<std::uint64_t> number_of(const kv_store& s, std::uint64_t pair) {
  std::array<std::uint64_t, 2> numbers{};
  std::string value;
  for (unsigned i = 0; i < 2; ++i)
    if (s.get(keys_of(pair)[i], value)) numbers[i] = std::strtoull(value.c_str(), nullptr, 10);
  if (numbers[0] != numbers[1])
    return std::unexpected(error{errc::corrupt, "the keys of a pair differ"});
  return numbers[0];
}

void read_pair(const kv& store, std::uint64_t pair, board& b) {
  const std::uint64_t before = b.acknowledged[pair].load();
  const auto seen = store.read([&](const kv_store& s) { return number_of(s, pair); });
  if (!seen && seen.error().code == errc::corrupt)
    b.torn.fetch_add(1);
  else if (!seen)
    b.failed.fetch_add(1);
  else if (*seen < before)
    b.stale.fetch_add(1);
  b.reads.fetch_add(1);
}

void read_until_stopped(const kv& store, std::uint64_t seed, bool idle, board& b) {
  base::rng random(seed);
  b.ready.fetch_add(1);
  while (!b.stop.load(std::memory_order_relaxed)) {
    if (idle) std::this_thread::sleep_for(10ms);
    read_pair(store, random.below(pair_count), b);
  }
}
void open_and_read(const std::string& path, std::uint64_t seed, bool idle, board& b) {
  const auto store = kv::open_read_only(path);
  if (store)
    read_until_stopped(*store, seed, idle, b);
  else
    b.failed.fetch_add(1);
}

// Puts the next number in a pair's keys. The numbers grow, so the board's is the newest one.
result<> change_pair(kv& store, std::uint64_t pair, std::uint64_t number, board& b) {
  const auto keys = keys_of(pair);
  const std::string value = std::to_string(number);
  const std::array<kv_pair, 2> both = {kv_pair{keys[0], value}, kv_pair{keys[1], value}};
  auto done = store.put_many(both);
  if (done) b.acknowledged[pair].store(number);
  return done;
}

struct place {
  explicit place(const target_options& o)
      : path(fmt::format("{}/readers-{}.stele", o.dir, ::getpid())) {
    std::filesystem::remove(path);
  }
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  ~place() { std::filesystem::remove(path); }
  result<kv> open(bool readers = true) const {
    return kv::open(path, {.create_size = std::size_t{64} << 20,
                           .engine = {.media = "adr", .readers = readers}});
  }
  const std::string path;
};

enum class beside : std::uint8_t { refused, nobody, idle, busy, busy_thread };
constexpr unsigned beside_count = 5;

// Changes a second of one writer, or of two.
result<double> write_beside(const target_options& o, beside what, unsigned writers) {
  const place at(o);
  shared_board b;
  auto store = at.open(what != beside::refused);
  if (!store) return std::unexpected(store.error());
  for (std::uint64_t pair = 0; pair < pair_count; ++pair)
    if (auto done = change_pair(*store, pair, 1, *b); !done) return std::unexpected(done.error());
  std::optional<process> reader;
  std::jthread own_reader;
  if (what == beside::busy_thread)
    own_reader = std::jthread([&] { read_until_stopped(*store, 1, false, *b); });
  else if (what >= beside::idle)
    reader.emplace([&] { open_and_read(at.path, 1, what == beside::idle, *b); });
  while (what >= beside::idle && b->ready.load() == 0 && b->failed.load() == 0)
    std::this_thread::sleep_for(1ms);
  std::atomic<std::uint64_t> changes{0};
  std::atomic<bool> failed{false};
  const auto begin = clock::now();
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < writers; ++t)
      threads.emplace_back([&, t] {
        base::rng random(t + 1);
        std::uint64_t n = 1;
        for (; since(begin) < o.seconds && !failed; ++n)
          if (!change_pair(*store, random.below(pair_count / writers) * writers + t, n + 1, *b))
            failed = true;
        changes.fetch_add(n);
      });
  }
  const double rate = static_cast<double>(changes.load()) / since(begin);
  b->stop = true;
  if (failed || b->failed.load() != 0)
    return std::unexpected(error{errc::io, "a change or a read failed"});
  if (b->torn.load() + b->stale.load() != 0)
    return std::unexpected(error{errc::corrupt, "a reader saw what it may not see"});
  return rate;
}

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return of.empty() ? 0 : of[of.size() / 2];
}

result<> writers_cost(const target_options& o, std::vector<performance_target>& targets) {
  struct row {
    beside what, over;
    const char* name;
  };
  const row rows[] = {
      {beside::nobody, beside::refused, "a pool that others may read, over one that they may not"},
      {beside::idle, beside::refused, "beside a process that reads 100 times a second, over alone"},
      {beside::busy, beside::refused, "beside a process that never rests, over alone"},
      {beside::busy, beside::busy_thread, "the same, over beside a thread that reads as much"},
  };
  for (const unsigned writers : {1u, 2u}) {
    std::array<std::vector<double>, beside_count> rates;
    for (unsigned run = 0; run < o.runs; ++run)
      for (unsigned what = 0; what < beside_count; ++what) {
        if (o.cancelled()) return std::unexpected(error{errc::cancelled, "stopped"});
        o.progress(fmt::format("{} writing threads, run {} of {}", writers, run + 1, o.runs));
        const auto rate = write_beside(o, static_cast<beside>(what), writers);
        if (!rate) return std::unexpected(rate.error());
        rates[what].push_back(*rate);
      }
    for (const row& r : rows) {
      const double rate = median(rates[static_cast<unsigned>(r.what)]),
                   over = median(rates[static_cast<unsigned>(r.over)]);
      targets.push_back(
          {fmt::format("{} writing: {}", writers == 1 ? "one thread" : "two threads", r.name), "x",
           0.97, rate / over, false,
           fmt::format("{:.0f} and {:.0f} k changes/s of two keys; {} cores", rate / 1e3,
                       over / 1e3, std::thread::hardware_concurrency())});
    }
  }
  return {};
}

// Milliseconds until a store of 50,000 items is open for reading.
result<double> time_to_open(const target_options& o, const std::string& path) {
  std::vector<double> ms;
  for (unsigned run = 0; run < std::max(5u, o.runs); ++run) {
    const auto begin = clock::now();
    const auto opened = kv::open_read_only(path);
    ms.push_back(1e3 * since(begin));
    if (!opened) return std::unexpected(opened.error());
  }
  return median(ms);
}

result<> opening(const target_options& o, std::vector<performance_target>& targets) {
  const place at(o);
  shared_board b;
  o.progress("opening for reading");
  const auto fill = [&](kv& store) -> result<> {
    for (std::uint64_t pair = 0; pair < 50'000; ++pair)
      if (auto done = store.put(keys_of(pair)[0], "1"); !done) return done;
    return {};
  };
  const auto report = [&](const char* what, const result<double>& ms) -> result<> {
    if (!ms) return std::unexpected(ms.error());
    targets.push_back({fmt::format("open_read_only of a store {}", what), "ms", 5, *ms, true,
                       "50,000 items in 64 MiB"});
    return {};
  };
  {
    // Forked: what it leaves open at its end is left as by a crash.
    const process writer([&] {
      auto store = at.open();
      if (!store || !fill(*store)) b->failed = 1;
      b->ready = 1;
      for (;;) ::pause();
    });
    while (b->ready.load() == 0) std::this_thread::sleep_for(1ms);
    if (b->failed.load() != 0) return std::unexpected(error{errc::io, "the store is not filled"});
    if (auto done = report("that a process writes", time_to_open(o, at.path)); !done) return done;
  }
  if (auto done = report("whose writer was killed", time_to_open(o, at.path)); !done) return done;
  {
    auto store = at.open();
    if (!store) return std::unexpected(store.error());
    if (auto closed = store->close(); !closed) return closed;
  }
  return report("that is closed", time_to_open(o, at.path));
}

void report_wrong(const board& b, const std::string& what, std::vector<performance_target>& t) {
  const auto wrong = b.torn.load() + b.stale.load() + b.failed.load();
  t.push_back({fmt::format("wrong reads {}", what), "", 0, static_cast<double>(wrong), true,
               fmt::format("{} reads: {} torn, {} stale, {} refused", b.reads.load(), b.torn.load(),
                           b.stale.load(), b.failed.load())});
}

result<> four_readers(const target_options& o, std::vector<performance_target>& targets) {
  const place at(o);
  shared_board b;
  auto store = at.open();
  if (!store) return std::unexpected(store.error());
  for (std::uint64_t pair = 0; pair < pair_count; ++pair)
    if (auto done = change_pair(*store, pair, 1, *b); !done) return done;
  std::vector<process> readers;
  for (std::uint64_t i = 0; i < 4; ++i)
    readers.emplace_back([&, i] { open_and_read(at.path, i, false, *b); });
  while (b->ready.load() < 4 && b->failed.load() == 0) std::this_thread::sleep_for(1ms);
  base::rng random(1);
  for (std::uint64_t n = 0; n < operations_judged; ++n) {
    if (n % 50'000 == 0) {
      if (o.cancelled()) return std::unexpected(error{errc::cancelled, "stopped"});
      o.progress(fmt::format("{} of {} changes beside four readers", n, operations_judged));
    }
    if (auto done = change_pair(*store, random.below(pair_count), n + 2, *b); !done) return done;
  }
  b->stop = true;
  report_wrong(*b, "of four processes beside 1 M changes of a store", targets);
  return {};
}

// One writer and two readers, of which one is killed again and again.
result<> killed(const target_options& o, std::vector<performance_target>& targets) {
  const place at(o);
  shared_board b;
  // A pair's number goes on from what is in the pool: the killed writer may have committed it.
  const auto write = [&] {
    auto store = at.open();
    if (!store) {
      b->failed.fetch_add(1);
      return;
    }
    base::rng random(static_cast<std::uint64_t>(::getpid()));
    for (;;) {
      const std::uint64_t pair = random.below(pair_count);
      const auto seen = store->read([&](const kv_store& s) { return number_of(s, pair); });
      if (!seen || *seen < b->acknowledged[pair].load()) b->stale.fetch_add(1);
      if (!seen || !change_pair(*store, pair, *seen + 1, *b)) b->failed.fetch_add(1);
    }
  };
  const auto read = [&] { open_and_read(at.path, 1, false, *b); };
  {
    auto made = at.open();
    if (!made) return std::unexpected(made.error());
  }
  std::array<std::optional<process>, 3> running;
  running[0].emplace(write);
  for (unsigned i = 1; i < 3; ++i) running[i].emplace(read);
  base::rng random(7);
  for (std::uint64_t n = 0; n < kills; ++n) {
    if (n % 50 == 0) {
      if (o.cancelled()) return std::unexpected(error{errc::cancelled, "stopped"});
      o.progress(fmt::format("{} of {} kills", n, kills));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
    const std::uint64_t which = random.below(3);
    running[which].reset();
    if (which == 0)
      running[which].emplace(write);
    else
      running[which].emplace(read);
  }
  for (auto& p : running) p.reset();
  auto store = at.open();
  if (!store) return std::unexpected(store.error());
  for (std::uint64_t pair = 0; pair < pair_count; ++pair) read_pair(*store, pair, *b);
  if (!store->check()) b->failed.fetch_add(1);
  report_wrong(*b, fmt::format("beside {} kills of writer or reader", kills), targets);
  return {};
}

}  // namespace

const std::vector<target_group>& reader_targets() {
  static const std::vector<target_group> parts = {writers_cost, opening, four_readers, killed};
  return parts;
}

}  // namespace stele::bench
