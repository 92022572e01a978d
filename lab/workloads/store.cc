// store: puts, gets and erases of 8-byte keys on stele::kv, through the calls that programs use.
#include <workloads/entries.h>
#include <workloads/on_kv.h>
#include <workloads/run.h>
#include <workloads/store_kind.h>

#include <unordered_map>

namespace stele::workloads {

namespace {

using kind_of = operation::kind;

thread_local std::string value_buffer, read_buffer;

class store_model final : public model {
 public:
  explicit store_model(const parameters& p) : value_size_(p.value_size) {
    (void)store::fill(p, [&](std::uint64_t number, std::uint64_t word) -> result<> {
      words_[number] = word;
      return {};
    });
  }
  void apply(const operation& op) override {
    if (op.what == kind_of::put) words_[op.a] = op.b;
    if (op.what == kind_of::erase) words_.erase(op.a);
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    std::string value;
    for (const auto& [number, word] : words_)
      sum += store::digest_pair(store::key(number), store::value(word, value_size_, value));
    return sum;
  }

 private:
  std::size_t value_size_;
  std::unordered_map<std::uint64_t, std::uint64_t> words_;
};

// Operations as the arguments of the store's calls for many items. Memory is reused.
struct many_items {
  std::vector<std::string_view> gets, erases;
  std::vector<kv_pair> puts;

  void take(std::span<const operation> operations, std::size_t value_size) {
    gets.clear(), erases.clear(), puts.clear(), keys_.clear();
    keys_.reserve(operations.size());
    if (values_.size() < operations.size()) values_.resize(operations.size());
    for (const operation& op : operations) {
      const std::string_view key = keys_.emplace_back(op.a);
      if (op.what == kind_of::read) gets.push_back(key);
      if (op.what == kind_of::erase) erases.push_back(key);
      if (op.what == kind_of::put)
        puts.push_back({key, store::value(op.b, value_size, values_[puts.size()])});
    }
  }

 private:
  std::vector<store::key> keys_;
  std::vector<std::string> values_;
};

class store_run final : public workload_on_kv {
 public:
  explicit store_run(const parameters& p) : keys_(p) {}

  std::string_view name() const override { return "store"; }

  result<> set_up() override {
    kv::batch some;
    std::size_t bytes = 0;
    std::string buffer;
    auto filled =
        store::fill(keys_.params(), [&](std::uint64_t number, std::uint64_t word) -> result<> {
          some.put(store::key(number), store::value(word, value_size(), buffer));
          bytes += value_size() + store::key_bytes;
          if (bytes < batch_bytes && some.size() < batch_items) return {};
          auto done = kv_->write(some, durability::ordered);
          some.clear();
          bytes = 0;
          return done;
        });
    if (filled) filled = kv_->write(some, durability::ordered);
    return filled ? kv_->sync() : filled;
  }

  operation draw(base::rng& random) const override { return store::draw(keys_, random); }

  result<> apply(std::span<const operation> operations) override {
    if (operations.size() == 1) return apply_one(operations.front());
    if (only_reads(operations)) {
      return kv_->read([&](const kv::view& v) {
        for (const operation& op : operations)
          if (v.get(store::key(op.a), read_buffer)) do_not_optimize(read_buffer);
      });
    }
    return kv_->update(
        [&](kv::changes& c) {
          for (const operation& op : operations)
            store::apply_to(c, value_size(), op, value_buffer, read_buffer);
        },
        commit_durability());
  }

  bool has_calls_for_many() const override { return true; }
  result<> apply_many(std::span<const operation> operations) override {
    static thread_local many_items items;
    items.take(operations, value_size());
    if (!items.gets.empty()) {
      const auto got =
          kv_->get_many(items.gets, [](std::size_t, std::optional<std::string_view> value) {
            if (value) do_not_optimize(value->data());
          });
      if (!got) return got;
    }
    if (items.erases.empty())
      return items.puts.empty() ? result<>{} : kv_->put_many(items.puts, commit_durability());
    return kv_->update(
        [&](kv::changes& c) {
          c.put_many(items.puts);
          for (const std::string_view key : items.erases) c.erase(key);
        },
        commit_durability());
  }

  result<std::uint64_t> digest() override {
    if (auto ok = kv_->check(); !ok) return std::unexpected(std::move(ok.error()));
    return kv_->read([](const kv::view& v) {
      std::uint64_t sum = 0;
      v.for_each({}, {}, [&](std::string_view key, std::string_view value) {
        sum += store::digest_pair(key, value);
        return true;
      });
      return sum;
    });
  }

  std::unique_ptr<model> make_model() const override {
    return std::make_unique<store_model>(keys_.params());
  }

 private:
  static constexpr std::size_t
      batch_bytes = 16384,
      batch_items = 16;  // of one transaction of set_up, which must fit the explorer's logs

  std::size_t value_size() const { return keys_.params().value_size; }
  result<> apply_one(const operation& op) {
    const store::key key(op.a);
    switch (op.what) {
      case kind_of::put:
        return kv_->put(key, store::value(op.b, value_size(), value_buffer), commit_durability());
      case kind_of::erase:
        return without_value(kv_->erase(key, commit_durability()));
      default: {
        auto there = kv_->get(key, read_buffer);
        if (there && *there) do_not_optimize(read_buffer);
        return without_value(std::move(there));
      }
    }
  }

  key_space keys_;
};

}  // namespace

constinit const workload_entry store_entry = {
    .name = "store", .make = make_run<workload, store_run>, .largest_value = store::largest_value};

}  // namespace stele::workloads
