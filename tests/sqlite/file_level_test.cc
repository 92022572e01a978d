// Databases as SQLite's file methods show them, beside arrays of bytes: three connections lock,
// read, write, cut, commit and roll back at random, early stores, flushes and crashes among it.
// SQLite never reads some of what a file has (free pages, what it has cut off); this does.
//
// STELE_SQLITE_FILE_STEPS sets the number of steps of each setting; STELE_SEED repeats them.
#include <adapters/sqlite/stored.h>
#include <base/rng.h>
#include <fmt/format.h>
#include <media/os.h>
#include <tests/budget.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/unflushed_pool.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

namespace stele::testing {
namespace {

using bytes = std::vector<unsigned char>;
constexpr std::size_t databases = 2;
constexpr const char* schemas[databases] = {"main", "two"};
using contents = std::array<bytes, databases>;

constexpr int question_at = 24, question_bytes = 16;  // whether a cache of pages is still right
using answer_bytes = std::array<unsigned char, question_bytes>;

// One database of a connection, of which only the file methods are used.
struct open_file {
  sqlite3_file* file = nullptr;
  std::size_t database = 0;
  int level = SQLITE_LOCK_NONE;
  std::size_t version = 0;  // of this database, that it sees
  bytes content;            // what it sees, its own writes among it
  bool has_written = false;
  std::optional<bytes> cached;  // what it has read of the whole database
  answer_bytes answer{};        // the last

  const sqlite3_io_methods* operator->() const noexcept { return file->pMethods; }
  bool is_writer() const noexcept { return level > SQLITE_LOCK_SHARED; }
};

void put(bytes& to, std::size_t at, std::size_t number) {
  for (std::size_t i = 0; i < 4; ++i)
    to[at + i] = static_cast<unsigned char>(number >> (24 - 8 * i));
}

// SQLite changes the first page in each commit: its counter, and how many pages there are.
void renew_first_page(bytes& first, std::size_t pages, std::size_t counter) {
  constexpr std::string_view begin("SQLite format 3\0\4\0\1\1\0\100\40\40", 24);
  std::ranges::copy(begin, first.begin());
  put(first, 24, counter), put(first, 28, pages), put(first, 92, counter);
  std::fill(first.begin() + 32, first.begin() + 92, 0);
  put(first, 44, 4), put(first, 56, 1);
  constexpr std::string_view no_tables("\r\0\0\0\0\4\0\0", 8);
  std::ranges::copy(no_tables, first.begin() + 100);
}

// The counter, its copy and what follows may be old in a cache: SQLite writes them in each commit.
bytes without_counter(bytes of) {
  for (std::size_t i = 24; i < 100 && i < of.size(); ++i)
    if (i < 28 || i >= 92) of[i] = 0;
  return of;
}

// Begins a commit at the first write of a flush, in another thread, and gives it time to end. One
// that cannot be deferred waits for the flush.
class commit_in_flush final : public media::os::syscall_hook {
 public:
  explicit commit_in_flush(std::function<void()> commit) : commit_(std::move(commit)) {
    media::os::install_hook(this);
  }
  ~commit_in_flush() override {
    if (committing_.joinable()) committing_.join();
    media::os::install_hook(nullptr);
  }
  int before(const media::os::request& r) noexcept override {
    if (r.what != media::os::call::write || begun_.exchange(true)) return 0;
    committing_ = std::jthread(commit_);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return 0;
  }

 private:
  std::function<void()> commit_;
  std::atomic<bool> begun_ = false;
  std::jthread committing_;
};

class client {
 public:
  client(const std::string& path, const std::string& parameters)
      : connection_(uri_of(path, "database=main&" + parameters)) {
    connection_.must("ATTACH '" + uri_of(path, "database=two&" + parameters) + "' AS two");
    for (std::size_t d = 0; d < databases; ++d) {
      files[d].database = d;
      if (sqlite3_file_control(connection_.handle(), schemas[d], SQLITE_FCNTL_FILE_POINTER,
                               &files[d].file) != SQLITE_OK)
        throw sqlite_failure(SQLITE_ERROR, "no file");
    }
  }
  std::array<open_file, databases> files;

 private:
  connection connection_;
};

class SQLiteFiles : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr const char* path = "/files";
  static constexpr std::size_t page = 1024, longest = 180;  // pages

  void open_pool() {
    pool_.open(GetParam(), 16 << 20);
    for (int i = 0; i < 3 && pool_.is_open(); ++i)
      clients_.push_back(std::make_unique<client>(path, "pending=16K"));
  }
  void give_up() {
    clients_.clear();
    pool_.give_up();
  }
  void TearDown() override { give_up(); }

  // The newest content of a database.
  const bytes& newest(std::size_t database) const { return versions_.back()[database]; }
  bytes read_all(const open_file& f) {
    sqlite3_int64 size = -1;
    EXPECT_EQ(f->xFileSize(f.file, &size), SQLITE_OK);
    bytes all(static_cast<std::size_t>(size), 0xEE);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t part = std::min<std::size_t>(all.size() - at, page << random_.below(5));
      EXPECT_EQ(
          f->xRead(f.file, all.data() + at, static_cast<int>(part), static_cast<sqlite3_int64>(at)),
          SQLITE_OK);
      at += part;
    }
    return all;
  }
  // Where two contents differ; empty: nowhere.
  static std::string difference(const bytes& expected, const bytes& found) {
    if (expected == found) return "";
    const auto [at, there] = std::ranges::mismatch(expected, found);
    return fmt::format("{} bytes are expected, {} are there, and they differ from byte {} on",
                       expected.size(), found.size(), at - expected.begin());
  }

  // As SQLite does at the begin of a transaction: an answer that is as before says that all pages
  // which it has are still right.
  void begin(open_file& f) {
    f.version = changes_[f.database];
    f.content = newest(f.database);
    answer_bytes now{};
    (void)f->xRead(f.file, now.data(), question_bytes, question_at);  // short, of an empty file
    if (now != f.answer) f.cached.reset();
    f.answer = now;
    if (!f.cached) return;
    f.cached->resize(f.content.size());  // the first page says how many there are
    ASSERT_EQ(difference(without_counter(f.content), without_counter(*f.cached)), "")
        << "of a cache";
  }
  void lock(open_file& f, int level) {
    const int code = f->xLock(f.file, level);
    const bool begins = f.level == SQLITE_LOCK_NONE;
    const bool is_taken = std::ranges::any_of(clients_, [&](const auto& c) {
      const open_file& other = c->files[f.database];
      return &other != &f && other.is_writer();
    });
    const int expected = begins                              ? SQLITE_OK
                         : is_taken                          ? SQLITE_BUSY
                         : f.version != changes_[f.database] ? SQLITE_BUSY_SNAPSHOT
                                                             : SQLITE_OK;
    ASSERT_EQ(code, expected);
    if (code != SQLITE_OK) return;
    f.level = level;
    if (begins) begin(f);
  }
  static void unlock(open_file& f, int level) {
    ASSERT_EQ(f->xUnlock(f.file, level), SQLITE_OK);
    f.level = level;
  }

  void write(open_file& f) {
    const std::size_t count = 1 + random_.below(random_.below(4) == 0 ? 40 : 3),
                      most = std::min(longest - count, f.content.size() / page + 12);
    write(f, random_.below(3) == 0 ? random_.below(5) : random_.below(most), count);
  }
  void write(open_file& f, std::size_t first, std::size_t count = 1) {
    bytes written(count * page);
    for (unsigned char& b : written) b = static_cast<unsigned char>(random_());
    if (first == 0) written[18] = written[19] = 1;  // no database in WAL mode
    store(f, first * page, written);
  }
  static void store(open_file& f, std::size_t at, const bytes& written) {
    ASSERT_EQ(f->xWrite(f.file, written.data(), static_cast<int>(written.size()),
                        static_cast<sqlite3_int64>(at)),
              SQLITE_OK);
    f.has_written = true;
    f.content.resize(std::max(f.content.size(), at + written.size()));
    std::ranges::copy(written, f.content.begin() + static_cast<long>(at));
  }
  void cut(open_file& f) { cut(f, random_.below(2) == 0); }
  void cut(open_file& f, bool at_edge) {
    if (f.content.empty()) return;
    const std::size_t there = f.content.size() / page;
    std::size_t pages = 1 + random_.below(there);
    if (at_edge) {  // where an extent begins, or a page less or more
      const std::size_t edge = sqlite::extent_begin(1 + random_.below(4)) / page;
      pages = std::min(there, random_.below(2) == 0 ? edge : edge - 1 + random_.below(3));
    }
    ASSERT_EQ(f->xTruncate(f.file, static_cast<sqlite3_int64>(pages * page)), SQLITE_OK);
    f.content.resize(pages * page);
    f.has_written = true;
  }
  // One database, or both that the client has locked, in one commit.
  void commit(client& c, open_file& f, bool may_sync = true) {
    std::vector<open_file*> together{&f};
    open_file& other = c.files[1 - f.database];
    if (other.is_writer() && random_.below(2) == 0) together.push_back(&other);
    bool is_durable = false, changes = false;
    contents now = versions_.back();
    for (open_file* g : together) {
      if (g->has_written) {
        bytes first(g->content.begin(), g->content.begin() + page);
        renew_first_page(first, g->content.size() / page, ++counter_);
        store(*g, 0, first);
      }
      ASSERT_EQ((*g)->xFileControl(g->file, SQLITE_FCNTL_SYNC, nullptr), SQLITE_OK);
      if (may_sync && random_.below(4) == 0) {
        ASSERT_EQ((*g)->xSync(g->file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        is_durable |= g->has_written;
      }
    }
    for (open_file* g : together)
      ASSERT_EQ((*g)->xFileControl(g->file, SQLITE_FCNTL_COMMIT_PHASETWO, nullptr), SQLITE_OK);
    for (open_file* g : together) {
      changes |= g->has_written;
      if (std::exchange(g->has_written, false)) {
        now[g->database] = g->content;
        g->version = ++changes_[g->database];
        g->cached.reset();
      }
      unlock(*g, SQLITE_LOCK_SHARED);
    }
    if (changes) versions_.push_back(std::move(now));
    if (is_durable) durable_ = versions_.size() - 1;
  }

  // Another thread commits meanwhile, if the client has written. Or it makes the database long, and
  // short again, and nobody else reads what was there, so that its space is given back.
  void flush(client& c, open_file& f) {
    const std::size_t before = versions_.size() - 1;
    const bool is_cut = f.is_writer() && random_.below(2) == 0, is_twice = random_.below(2) == 0;
    if (is_cut) {
      write(f, longest - 1 - random_.below(40));
      for (const auto& other : clients_)
        if (open_file& g = other->files[f.database]; g.level == SQLITE_LOCK_SHARED && &g != &f)
          unlock(g, SQLITE_LOCK_NONE);
    }
    const auto commits = [&] {
      if (!is_cut) return commit(c, f, false);
      if (is_twice) {
        commit(c, f, false);
        lock(f, SQLITE_LOCK_RESERVED);
      }
      cut(f, true);
      commit(c, f, false);
      unlock(f, SQLITE_LOCK_NONE);
    };
    std::optional<commit_in_flush> hook;
    if (f.has_written) hook.emplace(commits);
    EXPECT_TRUE(pool_->flush());
    hook.reset();
    durable_ = std::max(durable_, before);
    if (random_.below(4) == 0) crash();
  }

  void step() {
    client& c = *clients_[random_.below(clients_.size())];
    open_file& f = c.files[random_.below(databases)];
    const std::uint64_t choice = random_.below(20);
    if (choice == 0 && random_.below(4) == 0) return crash();
    if (choice == 1 && random_.below(2) == 0) return flush(c, f);
    if (f.level == SQLITE_LOCK_NONE) return lock(f, SQLITE_LOCK_SHARED);
    if (choice < 6) return check(f);
    if (!f.is_writer())
      return choice < 10 ? unlock(f, SQLITE_LOCK_NONE) : lock(f, SQLITE_LOCK_RESERVED);
    if (choice < 13) return write(f);
    if (choice < 15) return cut(f);
    if (choice < 18) return commit(c, f);
    f.content = newest(f.database);  // rolled back
    f.has_written = false;
    f.cached.reset();
    unlock(f, SQLITE_LOCK_SHARED);
  }
  void check(open_file& f) {
    bytes found = read_all(f);
    ASSERT_EQ(difference(f.content, found), "");
    if (!f.has_written) f.cached = std::move(found);
  }
  void crash() {
    give_up();
    open_pool();
    ASSERT_TRUE(pool_.is_open());
    contents found;
    for (open_file& f : clients_[0]->files) {
      ASSERT_EQ(f->xLock(f.file, SQLITE_LOCK_SHARED), SQLITE_OK);
      found[f.database] = read_all(f);
      ASSERT_EQ(f->xUnlock(f.file, SQLITE_LOCK_NONE), SQLITE_OK);
    }
    ASSERT_NE(std::find(versions_.begin() + static_cast<long>(durable_), versions_.end(), found),
              versions_.end())
        << "after a crash main is: " << difference(versions_[durable_][0], found[0])
        << "; two is: " << difference(versions_[durable_][1], found[1]) << "; commit " << durable_
        << " of " << versions_.size() - 1 << " is durable";
    versions_ = {found};
    durable_ = 0;
  }

  scratch_directory dir_;
  base::rng random_{budget::count_from("STELE_SEED", 1)};
  unflushed_pool pool_{path, dir_.file("db")};
  std::vector<std::unique_ptr<client>> clients_;
  std::vector<contents> versions_{{}};  // of the pool, after each commit since a crash
  std::size_t durable_ = 0;             // the newest that a crash must leave
  std::array<std::size_t, databases> changes_{};
  std::size_t counter_ = 0;
};

TEST_P(SQLiteFiles, are_arrays_of_bytes) {
  const std::uint64_t steps = budget::count_from("STELE_SQLITE_FILE_STEPS", 60000);
  open_pool();
  for (std::uint64_t i = 0; i < steps && !HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("STELE_SEED={}, step {}", budget::count_from("STELE_SEED", 1), i));
    step();
  }
}

INSTANTIATE_TEST_SUITE_P(all, SQLiteFiles,
                         ::testing::ValuesIn(known_of({"default", "redo", "undo"})));

}  // namespace
}  // namespace stele::testing
