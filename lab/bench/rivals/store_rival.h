// Shared by rivals that are key-value stores: runs the workload `store` on their engine.
//
// Durability equals that of Stele's row: on media "file" every transaction has reached the device
// when it returns; otherwise it survives the process, for which an engine needs no sync. A
// transaction is atomic unless the name says otherwise. Gets copy values, as Stele's get does.
// Batches of many puts fill the store, outside of the measured time.
#pragma once

#include <bench/drive.h>
#include <fmt/format.h>
#include <workloads/store.h>

#include <filesystem>
#include <span>

namespace stele::bench {

// One store. Many threads call apply() and get() concurrently; an engine serializes them if it
// must. `number` names a key.
class store_engine {
 public:
  virtual ~store_engine() = default;
  [[nodiscard]] virtual result<> apply(std::span<const workloads::operation> puts_and_erases) = 0;
  // Puts that fill the store, before any other call: faster than apply, and durable when filled()
  // has returned.
  [[nodiscard]] virtual result<> fill(std::span<const workloads::operation> puts) {
    return apply(puts);
  }
  [[nodiscard]] virtual result<> filled() { return {}; }
  // Returns whether the key is present, with its value in `into`.
  [[nodiscard]] virtual result<bool> get(std::uint64_t number, std::string& into) = 0;
  virtual std::optional<std::uint64_t> space_bytes() = 0;
};

struct store_settings {
  std::string path;      // nothing is there yet
  bool sync = false;     // every transaction reaches the device
  std::size_t keys = 0;  // size of the key space
  std::size_t value_bytes = 0;
  unsigned threads = 1;

  std::size_t content_bytes() const { return keys * (value_bytes + workloads::store::key_bytes); }
};

inline std::unexpected<error> engine_failed(std::string_view engine, std::string_view what,
                                            std::string_view why) {
  return std::unexpected(error{errc::io, fmt::format("{}: {} failed: {}", engine, what, why)});
}

// The sum of the sizes of all files below a path.
inline std::uint64_t bytes_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return fs::file_size(path, ignored);
  std::uint64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored))
    if (entry.is_regular_file(ignored)) sum += entry.file_size(ignored);
  return sum;
}

template <class Engine>
class store_contender final : public contender {
  using operation = workloads::operation;

 public:
  explicit store_contender(const task& t)
      : task_(t), keys_(t.parameters), generators_(make_generators(t)) {}
  ~store_contender() override {
    engine_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path(), ignored);
  }

  std::string name() const override {
    if constexpr (requires { Engine::name_in_report(true); })
      return Engine::name_in_report(synced());
    return Engine::name;
  }
  std::string media() const override { return synced() ? "file" : "process"; }
  durability_level durability() const override {
    return synced() ? durability_level::power : durability_level::process;
  }

  [[nodiscard]] result<> set_up() override {
    const workloads::parameters& p = task_.parameters;
    auto opened = Engine::open({path(), synced(), p.keys, p.value_size, task_.threads});
    if (!opened) return std::unexpected(std::move(opened.error()));
    engine_ = std::move(*opened);
    const std::size_t at_once =
        std::clamp<std::size_t>((std::size_t{1} << 20) / p.value_size, 1, 4096);
    std::vector<operation> some;
    auto filled =
        workloads::store::fill(p, [&](std::uint64_t number, std::uint64_t word) -> result<> {
          some.push_back({operation::kind::put, number, word});
          if (some.size() < at_once) return {};
          auto done = engine_->fill(some);
          some.clear();
          return done;
        });
    if (filled && !some.empty()) filled = engine_->fill(some);
    return filled ? engine_->filled() : filled;
  }

  [[nodiscard]] result<measurement> run(double seconds) override {
    return drive(generators_, seconds, task_.idle_share, [this](unsigned) {
      return draw_and_apply(*this, task_.ops_per_tx,
                            [this](std::span<const operation> ops) { return apply(ops); });
    });
  }
  operation draw(base::rng& random) const { return workloads::store::draw(keys_, random); }

  footprint space() override { return {engine_->space_bytes(), live_bytes_of(task_), 0}; }

  // Checks that every value was written by a put.
  [[nodiscard]] result<> check() override {
    std::string value, whole;
    for (std::uint64_t number = 0; number < std::min<std::uint64_t>(keys_.size(), 10'000);
         ++number) {
      const auto there = engine_->get(number, value);
      if (!there) return std::unexpected(there.error());
      if (!*there) continue;
      std::uint64_t word = 0;
      std::memcpy(&word, value.data(), std::min<std::size_t>(value.size(), 8));
      if (workloads::store::value(word, task_.parameters.value_size, whole) != value)
        return std::unexpected(error{
            errc::corrupt,
            fmt::format("{}: key {} has a value that no put has made", Engine::name, number)});
    }
    return {};
  }

 private:
  [[nodiscard]] result<> apply(std::span<const operation> ops) {
    static thread_local std::vector<operation> writes;
    static thread_local std::string value;
    writes.clear();
    for (const operation& op : ops) {
      if (op.what != operation::kind::read) {
        writes.push_back(op);
      } else {
        const auto there = engine_->get(op.a, value);
        if (!there) return std::unexpected(there.error());
        if (*there) workloads::do_not_optimize(value);
      }
    }
    return writes.empty() ? result<>{} : engine_->apply(writes);
  }
  bool synced() const { return task_.media == "file"; }
  std::string path() const { return pool_path(task_, Engine::name); }

  const task task_;
  const workloads::key_space keys_;
  std::vector<base::rng> generators_;
  std::unique_ptr<Engine> engine_;
};

template <class Engine>
[[nodiscard]] contender_result make_store_rival(const task& t) {
  const auto unsupported = [](std::string why) {
    return std::unexpected(error{errc::unsupported, fmt::format("{}: {}", Engine::name, why)});
  };
  if (t.workload != "store")
    return unsupported(
        fmt::format("it is a key-value store and runs the workload 'store', not '{}'", t.workload));
  if (t.media.find(':') != std::string::npos)
    return unsupported(fmt::format("it cannot run on media '{}'", t.media));
  if (auto valid = workloads::make_workload(t.workload, t.parameters); !valid)
    return std::unexpected(std::move(valid.error()));
  return std::make_unique<store_contender<Engine>>(t);
}

}  // namespace stele::bench
