// The commands on items of a pool, and counts of keys.
#include <adapters/redis/keys.h>
#include <base/check.h>
#include <bench/redis/hosted.h>
#include <bench/redis/mirror.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <workloads/run.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <unordered_map>

namespace stele::bench::redis {
namespace {

using stele::redis::as;
using stele::redis::item_kind;
using stele::redis::stored_hash;
using stele::redis::stored_item;
using stele::redis::stored_text;

std::string folder_of_mirror(const task& t) {
  static std::atomic<unsigned> made{0};
  return pool_path(t, fmt::format("mirror-{}", made++));
}

// A value of the pool as one text, fields by their names.
std::string content_of(stored_item* item) {
  if (stele::redis::kind_of(item) == item_kind::string) return as<stored_text>(item).value.str();
  std::set<std::string> fields;
  as<stored_hash>(item).content.for_each([&](const auto& field, const auto& value) {
    fields.insert(fmt::format("{}={};", field.str(), value.str()));
  });
  return fmt::format("{}", fmt::join(fields, ""));
}

class hosted final : public workloads::workload {
 public:
  hosted(const task& t, std::unique_ptr<workloads::workload> draws)
      : task_(t), draws_(std::move(draws)) {}

  std::string_view name() const override { return draws_->name(); }
  std::size_t root_size() const override { return sizeof(stele::redis::stored_keys); }
  concurrency policy() const noexcept override { return concurrency::external; }
  void attach(detail::pool_handle handle) override {
    const auto cannot_go_on = [](const error& why) { throw failure(why); };
    auto opened =
        stele::redis::keys::over(pool<stele::redis::stored_keys>(std::move(handle)), cannot_go_on);
    if (!opened) throw failure(opened.error());
    keys_ = std::move(*opened);
    items_.clear();
    if (auto done = keys_->read(
            [&] { keys_->for_each([&](stored_item* item) { items_[item->key.str()] = item; }); });
        !done)
      throw failure(done.error());
  }
  void detach() override {
    items_.clear();
    keys_.reset();
  }
  detail::runtime& core() override { return keys_->content().core(); }
  result<> sync() override {
    const auto done = keys_->sync();
    return done ? result<>{} : std::unexpected(done.error());
  }
  void visit_blocks(const workloads::block_visit& visit) override {
    const auto done = keys_->content().read(
        [&](const stele::redis::stored_keys& root) { root.visit_blocks(visit); });
    if (!done) throw failure(done.error());
  }

  result<> set_up() override {
    auto started = mirror::start(folder_of_mirror(task_), task_.workload, task_.parameters);
    if (!started) return std::unexpected(std::move(started.error()));
    mirror_ = std::move(*started);
    return mirror_->content([this](const texts& command) {
      auto done = run(command);
      return done ? keys_->end_unit(true) : done;
    });
  }
  operation draw(base::rng& random) const override { return draws_->draw(random); }
  result<> apply(std::span<const operation> operations) override {
    const std::scoped_lock one_at_a_time(mutex_);
    if (auto done = mirror_->apply(operations, [this](const texts& c) { return run(c); }); !done)
      return done;
    return keys_->end_unit(commit_durability() == durability::durable);
  }

  // 0, when the pool has what the server has, and that is sound.
  result<std::uint64_t> digest() override {
    std::size_t count = 0;
    auto same = mirror_->content([&](const texts& c) -> result<> {
      ++count;
      std::set<std::string> fields;
      for (std::size_t i = 2; i + 1 < c.size(); i += 2)
        fields.insert(fmt::format("{}={};", c[i], c[i + 1]));
      const std::string there = c[0] == "SET" ? c[2] : fmt::format("{}", fmt::join(fields, ""));
      const auto found = items_.find(c[1]);
      const auto here = found == items_.end()
                            ? result<std::string>()
                            : keys_->read([&] { return content_of(found->second); });
      if (here && *here == there) return {};
      return base::fail(errc::corrupt, fmt::format("the pool differs from Redis in {}", c[1]));
    });
    if (same && count != items_.size())
      same = base::fail(errc::corrupt, "the pool has keys that Redis does not have");
    if (same) same = mirror_->check();
    if (!same) return std::unexpected(std::move(same.error()));
    return 0;
  }
  std::unique_ptr<workloads::model> make_model() const override { return nullptr; }

 private:
  result<> run(const texts& c) {
    if (c[0] == "SET") return set(c[1], c[2]);
    if (c[0] == "HSET") return put_fields(c);
    if (c[0] == "HINCRBY") return increase(c);
    if (c[0] == "HDEL") return remove_fields(c);
    if (c[0] == "MGET") {
      for (std::size_t i = 1; i < c.size(); ++i)
        if (auto done = read(c[i]); !done) return done;
      return {};
    }
    return read(c[1]);
  }
  stored_item* find(const std::string& key) const {
    const auto found = items_.find(key);
    return found == items_.end() ? nullptr : found->second;
  }
  result<> read(const std::string& key) {
    stored_item* const item = find(key);
    if (item == nullptr) return {};
    const auto content = keys_->read([&] { return content_of(item); });
    if (!content) return std::unexpected(content.error());
    workloads::do_not_optimize(content->size());
    return {};
  }
  // Runs body(item) in the unit; the key gets an item if it has none.
  template <class Body>
  result<> change(item_kind kind, const std::string& key, std::size_t bytes, Body&& body) {
    stored_item*& item = items_[key];
    return keys_->change(bytes + key.size() + stele::redis::bytes_of_item, [&] {
      if (item == nullptr) item = keys_->add(kind, key, 0);
      body(item);
      keys_->touch(item);
    });
  }
  result<> set(const std::string& key, const std::string& value) {
    return change(item_kind::string, key, value.size(),
                  [&](stored_item* item) { as<stored_text>(item).value = value; });
  }
  result<> put_fields(const texts& c) {
    std::size_t bytes = 0;
    for (std::size_t i = 2; i < c.size(); ++i) bytes += c[i].size() + 64;
    return change(item_kind::hash, c[1], bytes, [&](stored_item* item) {
      stored_hash& hash = as<stored_hash>(item);
      for (std::size_t i = 2; i + 1 < c.size(); i += 2)
        hash.count += hash.content.insert_or_assign(c[i], c[i + 1]).second ? 1 : 0;
    });
  }
  result<> increase(const texts& c) {
    long long before = 0;
    if (stored_item* const item = find(c[1])) {
      const auto text = keys_->read([&] {
        const auto at = as<stored_hash>(item).content.find(c[2]);
        return at == as<stored_hash>(item).content.end() ? std::string("0") : at->second.str();
      });
      if (!text) return std::unexpected(text.error());
      before = std::stoll(*text);
    }
    return put_fields({c[0], c[1], c[2], fmt::format("{}", before + std::stoll(c[3]))});
  }
  result<> remove_fields(const texts& c) {
    stored_item* const item = find(c[1]);
    if (item == nullptr) return {};
    bool is_empty = false;
    auto done = keys_->change(0, [&] {
      stored_hash& hash = as<stored_hash>(item);
      for (std::size_t i = 2; i < c.size(); ++i) hash.count -= hash.content.erase(c[i]);
      is_empty = hash.count == 0;
      if (is_empty)
        keys_->remove(item);
      else
        keys_->touch(item);
    });
    if (done && is_empty) items_.erase(c[1]);
    return done;
  }

  const task task_;
  const std::unique_ptr<workloads::workload> draws_;
  std::unique_ptr<mirror> mirror_;
  std::unique_ptr<stele::redis::keys> keys_;
  std::unordered_map<std::string, stored_item*> items_;  // Redis' keyspace
  std::mutex mutex_;
};

}  // namespace

result<std::unique_ptr<workloads::workload>> make_hosted(const task& t) {
  if (const auto content = make_redis_workload(t.workload, t.parameters); !content)
    return std::unexpected(content.error());
  auto draws = workloads::make_workload(t.workload, t.parameters);
  if (!draws) return std::unexpected(std::move(draws.error()));
  return std::make_unique<hosted>(t, std::move(*draws));
}

result<std::vector<std::uint32_t>> count_uses(const task& t,
                                              const std::function<bool()>& cancelled) {
  const auto draws = workloads::make_workload(t.workload, t.parameters);
  if (!draws) return std::unexpected(draws.error());
  const auto server = mirror::start(folder_of_mirror(t), t.workload, t.parameters);
  if (!server) return std::unexpected(server.error());
  std::unordered_map<std::string, std::uint32_t> uses;
  if (auto read = (*server)->content([&](const texts& c) -> result<> {
        uses[c[1]] = 0;
        return {};
      });
      !read)
    return std::unexpected(std::move(read.error()));
  base::rng random(base::mix(t.seed));
  std::set<std::string> used;
  for (std::uint64_t i = 0; i < t.parameters.keys; ++i) {
    if (cancelled()) return base::fail(errc::cancelled, "interrupted");
    const operation op = (*draws)->draw(random);
    used.clear();
    auto done = (*server)->apply({&op, 1}, [&](const texts& c) -> result<> {
      used.insert(c.begin() + 1, c[0] == "MGET" ? c.end() : c.begin() + 2);
      return {};
    });
    if (!done) return std::unexpected(std::move(done.error()));
    for (const std::string& key : used) ++uses[key];
  }
  std::vector<std::uint32_t> counts;
  for (const auto& [key, count] : uses) counts.push_back(count);
  return counts;
}

}  // namespace stele::bench::redis
