// Servers under load.
#include <base/check.h>
#include <bench/drive.h>
#include <bench/redis/connection.h>
#include <bench/redis/server.h>
#include <bench/redis/server_contender.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pool/volatile_storage.h>
#include <tx/mechanism/catalog.h>
#include <workloads/run.h>
#include <workloads/store.h>
#include <workloads/ycsb.h>

#include <algorithm>
#include <atomic>

namespace stele::bench::redis {
namespace {

using workloads::operation;
using kind = operation::kind;
using workloads::ycsb::key_range;
using words = std::vector<std::string>;

// What distinguishes the servers.
struct setting {
  std::string name;
  words arguments;
  std::string media, durability;
};

std::string name_of_key(std::uint64_t key) {
  return fmt::format("user{:012}", key);
}

// One client.
class client {
 public:
  client(std::shared_ptr<connection> to, const workloads::parameters& p,
         std::atomic<std::uint64_t>& inserted)
      : to_(std::move(to)), parameters_(p), inserted_(inserted) {}

  result<> apply(std::span<const operation> operations) {
    if (operations.size() == 1) return run(operations[0]);
    if (auto begun = to_->run({"MULTI"}); !begun) return std::unexpected(begun.error());
    for (const operation& op : operations)
      if (auto done = run(op); !done) return done;
    return without_answer(to_->run({"EXEC"}));
  }

 private:
  static result<> without_answer(result<reply> r) {
    if (!r) return std::unexpected(std::move(r.error()));
    return {};
  }
  result<> run(const operation& op) {
    switch (op.what) {
      case kind::put:
        return set(op.a, op.b);
      case kind::insert:
        return set(key_range{parameters_.keys, inserted_.fetch_add(1)}.next(), op.b);
      case kind::read_modify:
        return read_modify(op);
      case kind::scan:
        return scan(op.a, op.b);
      default:
        return without_answer(to_->run({"GET", name_of_key(key_of(op))}));
    }
  }
  std::uint64_t key_of(const operation& read) const {
    if (read.b != workloads::ycsb::by_recency) return read.a;
    return key_range{parameters_.keys, inserted_.load()}.latest(read.a);
  }
  result<> set(std::uint64_t key, std::uint64_t word) {
    return without_answer(to_->run(
        {"SET", name_of_key(key), workloads::store::value(word, parameters_.value_size, buffer_)}));
  }
  result<> read_modify(const operation& op) {
    const auto old = to_->run({"GET", name_of_key(op.a)});
    if (!old) return std::unexpected(old.error());
    std::uint64_t word = 0;
    std::memcpy(&word, old->text.data(), std::min(sizeof word, old->text.size()));
    return set(op.a, workloads::ycsb::modified(word, op.b));
  }
  // Redis keeps strings in no order: the keys are known by their numbers.
  result<> scan(std::uint64_t from, std::uint64_t length) {
    const std::uint64_t end =
        std::min(from + length, key_range{parameters_.keys, inserted_.load()}.keys());
    keys_.assign(1, "MGET");
    for (std::uint64_t key = from; key < end; ++key) keys_.push_back(name_of_key(key));
    const std::vector<std::string_view> views(keys_.begin(), keys_.end());
    return without_answer(to_->run(views));
  }

  const std::shared_ptr<connection> to_;
  const workloads::parameters parameters_;
  std::atomic<std::uint64_t>& inserted_;
  std::string buffer_;
  words keys_;
};

class server_contender final : public contender {
 public:
  server_contender(const task& t, setting s, std::unique_ptr<workloads::workload> draws)
      : task_(t),
        setting_(std::move(s)),
        keys_(t.parameters),
        draws_(std::move(draws)),
        generators_(make_generators(t)) {}

  std::string name() const override { return setting_.name + task_.note; }
  std::string media() const override { return setting_.media; }
  std::string durability() const override { return setting_.durability; }

  result<> set_up() override {
    auto started = server::start(pool_path(task_, "redis-" + setting_.name), setting_.arguments);
    if (!started) return std::unexpected(std::move(started.error()));
    server_ = std::move(*started);
    if (auto filled = fill(); !filled) return filled;
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      auto to = connection::open(server_->socket());
      if (!to) return std::unexpected(std::move(to.error()));
      clients_.push_back(std::make_unique<client>(std::move(*to), task_.parameters, inserted_));
    }
    return {};
  }
  result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned thread) {
      return draw_and_apply(
          *draws_, task_.ops_per_tx,
          [of = clients_[thread].get()](std::span<const operation> ops) { return of->apply(ops); });
    });
  }
  footprint space() override { return {server_->file_bytes(), live_bytes_of(task_), 0}; }
  result<> check() override {
    auto to = connection::open(server_->socket());
    if (!to) return std::unexpected(std::move(to.error()));
    const std::uint64_t keys = key_range{keys_.size(), inserted_.load()}.keys();
    const auto told = (*to)->run({"DBSIZE"});
    if (!told) return std::unexpected(told.error());
    if (static_cast<std::uint64_t>(told->number) != keys)
      return base::fail(errc::corrupt,
                        fmt::format("there are {} keys, not {}", told->number, keys));
    for (std::uint64_t key = 0; key < keys; ++key) (*to)->append({"STRLEN", name_of_key(key)});
    return (*to)->finish();
  }

 private:
  result<> fill() {
    constexpr std::uint64_t at_once = 1000;
    auto to = connection::open(server_->socket());
    if (!to) return std::unexpected(std::move(to.error()));
    std::string buffer;
    for (std::uint64_t key = 0; key < keys_.size(); ++key) {
      (*to)->append(
          {"SET", name_of_key(key),
           workloads::store::value(keys_.word_at_start(key), task_.parameters.value_size, buffer)});
      if (key % at_once == at_once - 1)
        if (auto done = (*to)->finish(); !done) return done;
    }
    return (*to)->finish();
  }

  const task task_;
  const setting setting_;
  const workloads::key_space keys_;
  const std::unique_ptr<workloads::workload> draws_;
  std::vector<base::rng> generators_;
  std::atomic<std::uint64_t> inserted_{0};
  std::unique_ptr<server> server_;
  std::vector<std::unique_ptr<client>> clients_;
};

contender_result make(const task& t, setting s) {
  if (!t.workload.starts_with("ycsb-"))
    return base::fail(
        errc::unsupported,
        fmt::format("the host redis has no workload '{}'; it has ycsb-a to ycsb-f", t.workload));
  auto draws = workloads::make_workload(t.workload, t.parameters);
  if (!draws) return std::unexpected(std::move(draws.error()));
  return std::make_unique<server_contender>(t, std::move(s), std::move(*draws));
}

// What an acknowledged transaction survives, of a file in the task's folder that is synced.
std::string synced(const task& t) {
  return storage::is_volatile(t.dir) ? "process" : "power";
}

}  // namespace

contender_result make_with_module(const task& t, const std::string& mechanism) {
  const auto known = detail::find_mechanism(mechanism);
  if (!known) return std::unexpected(known.error());
  const std::size_t size = t.pool_size_bytes != 0
                               ? t.pool_size_bytes
                               : std::max<std::size_t>(std::size_t{64} << 20, 6 * live_bytes_of(t));
  return make(t, {mechanism,
                  {"--loadmodule", STELE_REDIS_MODULE, "path", "pool.stele", "size",
                   fmt::format("{}", size), "mechanism", mechanism, "media", t.media},
                  t.media,
                  durability_of(t, t.dir)});
}

contender_result make_with_files(const task& t, std::string_view name) {
  if (name == "aof-always")
    return make(
        t,
        {std::string(name), {"--appendonly", "yes", "--appendfsync", "always"}, "file", synced(t)});
  // The file is written before the answer, and synced within two seconds.
  if (name == "aof-everysec")
    return make(t, {std::string(name),
                    {"--appendonly", "yes", "--appendfsync", "everysec"},
                    "file",
                    "process"});
  return base::fail(errc::not_found, fmt::format("the host redis has no rival '{}'; it has: {}",
                                                 name, fmt::join(file_contender_names(), ", ")));
}

contender_result make_without_files(const task& t) {
  return make(t, {"no-persistence", {}, "none", "none"});
}

std::vector<std::string> file_contender_names() {
  return {"aof-always", "aof-everysec"};
}

}  // namespace stele::bench::redis
