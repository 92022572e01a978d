// The workloads `sqlite-blocks` and `sqlite-block`: see sqlite_blocks.h.
#include <adapters/sqlite/cache.h>
#include <base/check.h>
#include <explore/sqlite_blocks.h>
#include <fmt/format.h>
#include <workloads/on_sqlite.h>
#include <workloads/value.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <thread>

namespace stele::explore {

namespace {

using namespace workloads;
using sqlite::block_size;
using sqlite::database;
using sqlite::pending_writes;
using kind_of = operation::kind;

constexpr unsigned most_databases = 2;
constexpr std::uint64_t first_blocks = 2, most_blocks = 6;

// What an operation does. `a` chooses database and block, `b` is the value.
//   put: a block gets the value;  swap: blocks of two databases change places
//   toggle: the first block of every database gets the value
//   append: the database gets two blocks more, if it has room;  erase: it loses its last
using rows = std::vector<std::uint64_t>;  // the values of a database's blocks

unsigned database_of(const operation& op, unsigned databases) {
  return static_cast<unsigned>(op.a % databases);
}

// Changes what is changed of the databases.
void change(std::span<rows> all, const operation& op) {
  rows& one = all[database_of(op, static_cast<unsigned>(all.size()))];
  switch (op.what) {
    case kind_of::put:
      one[op.a / 2 % one.size()] = op.b;
      break;
    case kind_of::swap:
      std::swap(all.front()[op.a % all.front().size()], all.back()[op.b % all.back().size()]);
      break;
    case kind_of::toggle:
      for (rows& r : all) r.front() = op.b;
      break;
    case kind_of::append:
      if (one.size() + 2 <= most_blocks) one.insert(one.end(), {op.b, op.b + 1});
      break;
    case kind_of::erase:
      if (one.size() > 1) one.pop_back();
      break;
    default:
      break;
  }
}

std::uint64_t digest_of(std::span<const rows> all) {
  std::uint64_t sum = 0;
  for (std::size_t d = 0; d < all.size(); ++d)
    for (std::size_t i = 0; i < all[d].size(); ++i)
      sum += digest_item(most_databases * i + d, &all[d][i], sizeof all[d][i]);
  return sum;
}

class blocks_model final : public model {
 public:
  explicit blocks_model(unsigned databases) : all_(databases, rows(first_blocks)) {}
  void apply(const operation& op) override { change(all_, op); }
  std::uint64_t digest() const override { return digest_of(all_); }

 private:
  std::vector<rows> all_;
};

// A block has its value at its begin, in the middle and at its end, so a torn one shows.
constexpr std::size_t places[] = {0, 1280, block_size - 8};

void fill(pending_writes::block& to, std::uint64_t value) {
  to.fill(std::byte{0});
  for (const std::size_t at : places) std::memcpy(to.data() + at, &value, sizeof value);
}

result<std::uint64_t> value_of(const pending_writes::block& bytes, std::uint64_t at) {
  std::uint64_t value[std::size(places)];
  for (std::size_t i = 0; i < std::size(places); ++i)
    std::memcpy(&value[i], bytes.data() + places[i], sizeof value[i]);
  if (value[0] != value[1] || value[0] != value[2])
    return base::fail(errc::corrupt, fmt::format("block {} is torn", at / block_size));
  return value[0];
}

// A connection to one database that keeps a cache between its read transactions, as SQLite does.
class caching_reader {
 public:
  explicit caching_reader(database& of) : of_(of) { of_.add(reader_); }
  ~caching_reader() { of_.remove(reader_); }
  caching_reader(const caching_reader&) = delete;
  caching_reader& operator=(const caching_reader&) = delete;

  result<rows> values() {
    of_.begin_read(reader_);
    known_.begin(reader_.changes);
    auto all = read_all();
    of_.end_read(reader_);
    return all;
  }

 private:
  result<rows> read_all() {
    std::array<std::byte, sqlite::version_bytes::size> now;
    known_.answer(of_.changes(), reader_.changes, now);
    if (now != std::array<std::byte, sqlite::version_bytes::size>{}) cache_.clear();
    rows all;
    for (std::uint64_t at = 0; at < reader_.size; at += block_size) {
      auto cached = cache_.find(at);
      if (cached == cache_.end()) {
        pending_writes::block bytes;
        of_.read(reader_, at, bytes);
        known_.note(at, bytes);
        const auto value = value_of(bytes, at);
        if (!value) return std::unexpected(value.error());
        cached = cache_.emplace(at, *value).first;
      }
      all.push_back(cached->second);
    }
    return all;
  }

  database& of_;
  database::snapshot reader_;
  sqlite::cached_blocks known_;
  std::map<std::uint64_t, std::uint64_t> cache_;  // values by place
};

// One connection to all databases of the pool, for one transaction.
class session {
 public:
  session(sqlite::open_pool& pool, std::span<database* const> databases)
      : pool_(pool), databases_(databases) {
    for (std::size_t d = 0; d < databases_.size(); ++d) databases_[d]->add(readers_[d]);
  }
  ~session() {
    for (std::size_t d = 0; d < databases_.size(); ++d) {
      databases_[d]->end_read(readers_[d]);
      databases_[d]->remove(readers_[d]);
    }
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  void begin() {
    for (std::size_t d = 0; d < databases_.size(); ++d) databases_[d]->begin_read(readers_[d]);
  }
  // Begins at the newest version, with the writers' locks.
  void begin_to_write() {
    for (;; std::this_thread::yield()) {
      begin();
      std::size_t locked = 0;
      while (locked < databases_.size() && databases_[locked]->lock_writer()) ++locked;
      bool newest = locked == databases_.size();
      for (std::size_t d = 0; d < databases_.size() && newest; ++d)
        newest = databases_[d]->is_newest(readers_[d]);
      if (newest) return;
      unlock(locked);
    }
  }
  void end_to_write() { unlock(databases_.size()); }

  result<std::vector<rows>> values() const {
    std::vector<rows> all(databases_.size());
    for (std::size_t d = 0; d < databases_.size(); ++d)
      for (std::uint64_t at = 0; at < readers_[d].size; at += block_size) {
        pending_writes::block bytes;
        databases_[d]->read(readers_[d], at, bytes);
        const auto value = value_of(bytes, at);
        if (!value) return std::unexpected(value.error());
        all[d].push_back(*value);
      }
    return all;
  }

  // Stores early what it appends, if `early`.
  result<> write(std::span<const rows> from, std::span<const rows> to, bool early, durability d) {
    std::array<pending_writes, most_databases> writes;
    std::vector<sqlite::open_pool::part> parts;
    for (std::size_t i = 0; i < databases_.size(); ++i) {
      if (from[i] == to[i]) continue;
      write_changed(writes[i], from[i], to[i]);
      parts.push_back({databases_[i], &readers_[i], &writes[i]});
    }
    // Nothing has changed. All that was before is durable after a durable commit all the same.
    if (parts.empty()) return d == durability::durable ? pool_.flush() : result<>();
    if (early) pool_.store_early(parts.front());
    for (const auto& p : parts)
      if (auto room = pool_.reserve(p); !room) return room;
    return pool_.commit(parts, d);
  }

 private:
  static void write_changed(pending_writes& writes, const rows& from, const rows& to) {
    const auto nothing = [](std::uint64_t, pending_writes::block&) {};  // blocks are whole
    writes.begin(from.size() * block_size);
    writes.set_size(to.size() * block_size, nothing);
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (i < from.size() && from[i] == to[i]) continue;
      pending_writes::block bytes;
      fill(bytes, to[i]);
      writes.write(i * block_size, bytes, nothing);
    }
  }
  void unlock(std::size_t count) {
    while (count-- > 0) databases_[count]->unlock_writer();
  }

  sqlite::open_pool& pool_;
  std::span<database* const> databases_;
  std::array<database::snapshot, most_databases> readers_;
};

class sqlite_blocks final : public workload_on_sqlite {
 public:
  explicit sqlite_blocks(unsigned databases) : databases_(databases) {}

  std::string_view name() const override {
    return databases_ == 1 ? "sqlite-block" : "sqlite-blocks";
  }
  void attach(detail::pool_handle handle) override {
    workload_on_sqlite::attach(std::move(handle));
    for (unsigned d = 0; d < databases_; ++d) {
      auto found = adopted().find(fmt::format("database {}", d), true);
      if (!found) {
        const error why = found.error();
        detach();
        throw failure(why);
      }
      of_[d] = *found;
    }
  }
  void detach() override {
    reader_.reset();
    workload_on_sqlite::detach();
  }

  result<> set_up() override {
    session s(adopted(), those());
    s.begin_to_write();
    auto done =
        s.write(std::vector<rows>(databases_), std::vector<rows>(databases_, rows(first_blocks)),
                false, durability::durable);
    s.end_to_write();
    return done;
  }

  operation draw(base::rng& random) const override {
    constexpr kind_of kinds[] = {kind_of::put,    kind_of::put,    kind_of::swap,
                                 kind_of::toggle, kind_of::append, kind_of::erase};
    return {kinds[random.below(std::size(kinds))], random.below(64), random() >> 8};
  }

  result<> apply(std::span<const operation> operations) override {
    const durability d = commit_durability();
    session s(adopted(), those());
    s.begin_to_write();
    auto before = s.values();
    result<> done;
    if (!before) done = std::unexpected(before.error());
    if (done) {
      std::vector<rows> after = *before;
      for (const operation& op : operations) change(after, op);
      done = s.write(*before, after, operations.front().what == kind_of::append, d);
    }
    s.end_to_write();
    return done;
  }

  // Commits to two databases become visible one after the other, so no writer is at work then.
  result<std::uint64_t> digest() override {
    if (databases_ == 1) return digest_of_one();
    session s(adopted(), those());
    s.begin_to_write();
    const auto values = s.values();
    s.end_to_write();
    if (!values) return std::unexpected(values.error());
    return digest_of(*values);
  }

  std::unique_ptr<model> make_model() const override {
    return std::make_unique<blocks_model>(databases_);
  }

 private:
  // By the reader that has a cache, which begins with the first call; by one without, if another
  // thread uses that.
  result<std::uint64_t> digest_of_one() {
    std::vector<rows> all(1);
    result<rows> values;
    if (reads_.exchange(true)) {
      values = caching_reader(*of_[0]).values();
    } else {
      if (!reader_) reader_.emplace(*of_[0]);
      values = reader_->values();
      reads_ = false;
    }
    if (!values) return std::unexpected(values.error());
    all[0] = std::move(*values);
    return digest_of(all);
  }
  std::span<database* const> those() const { return std::span(of_).first(databases_); }

  const unsigned databases_;
  std::array<database*, most_databases> of_{};
  std::optional<caching_reader> reader_;
  std::atomic<bool> reads_{false};
};

}  // namespace

std::unique_ptr<workloads::workload> make_sqlite_blocks(unsigned databases) {
  return std::make_unique<sqlite_blocks>(databases);
}

}  // namespace stele::explore
