// ycsb-a to ycsb-f: records are strings. GET, SET, GET and SET for a read-modify-write, MGET of
// consecutive keys for a scan, because Redis keeps strings in no order: the keys are known by their
// numbers. The number of inserts is the client's.
#include <base/check.h>
#include <bench/redis/workload.h>
#include <fmt/format.h>
#include <workloads/store.h>
#include <workloads/ycsb.h>

#include <algorithm>
#include <atomic>

namespace stele::bench::redis {
namespace {

using kind = operation::kind;
using workloads::ycsb::key_range;

std::string name_of_key(std::uint64_t key) {
  return fmt::format("user{:012}", key);
}

class ycsb_session final : public session {
 public:
  ycsb_session(std::shared_ptr<connection> to, const workloads::parameters& p,
               std::atomic<std::uint64_t>& inserted)
      : session(std::move(to)), parameters_(p), inserted_(inserted) {}

 private:
  result<> run(const operation& op) override {
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
        return run_command({"GET", name_of_key(key_of(op))});
    }
  }
  std::uint64_t key_of(const operation& read) const {
    if (read.b != workloads::ycsb::by_recency) return read.a;
    return key_range{parameters_.keys, inserted_.load()}.latest(read.a);
  }
  result<> set(std::uint64_t key, std::uint64_t word) {
    return run_command(
        {"SET", name_of_key(key), workloads::store::value(word, parameters_.value_size, buffer_)});
  }
  result<> read_modify(const operation& op) {
    const std::string key = name_of_key(op.a);
    const auto old = server().run({"GET", key});
    if (!old) return std::unexpected(old.error());
    std::uint64_t word = 0;
    std::memcpy(&word, old->text.data(), std::min(sizeof word, old->text.size()));
    return set(op.a, workloads::ycsb::modified(word, op.b));
  }
  result<> scan(std::uint64_t from, std::uint64_t length) {
    const std::uint64_t end =
        std::min(from + length, key_range{parameters_.keys, inserted_.load()}.keys());
    keys_.assign(1, "MGET");
    for (std::uint64_t key = from; key < end; ++key) keys_.push_back(name_of_key(key));
    const std::vector<std::string_view> views(keys_.begin(), keys_.end());
    const auto read = server().run(views);
    return read ? result<>{} : std::unexpected(read.error());
  }

  const workloads::parameters parameters_;
  std::atomic<std::uint64_t>& inserted_;
  std::string buffer_;
  texts keys_;
};

class ycsb final : public redis_workload {
 public:
  explicit ycsb(const workloads::parameters& p) : keys_(p) {}

  result<> fill(connection& to) const override {
    std::string buffer;
    for (std::uint64_t key = 0; key < keys_.size(); ++key)
      if (auto sent = to.append({"SET", name_of_key(key),
                                 workloads::store::value(keys_.word_at_start(key),
                                                         keys_.params().value_size, buffer)});
          !sent)
        return sent;
    return to.finish();
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> to) override {
    return std::make_unique<ycsb_session>(std::move(to), keys_.params(), inserted_);
  }
  result<> check(connection& to) const override {
    const std::uint64_t keys = key_range{keys_.size(), inserted_.load()}.keys();
    const auto told = to.run({"DBSIZE"});
    if (!told) return std::unexpected(told.error());
    if (static_cast<std::uint64_t>(told->number) != keys)
      return base::fail(errc::corrupt,
                        fmt::format("there are {} keys, not {}", told->number, keys));
    for (std::uint64_t key = 0; key < keys; ++key)
      if (auto sent = to.append({"STRLEN", name_of_key(key)}); !sent) return sent;
    return to.finish();
  }

 private:
  const workloads::key_space keys_;
  std::atomic<std::uint64_t> inserted_{0};
};

}  // namespace

std::unique_ptr<redis_workload> make_ycsb(const workloads::parameters& p) {
  return std::make_unique<ycsb>(p);
}

}  // namespace stele::bench::redis
