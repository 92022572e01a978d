// Common code of all workloads: runs a kind of structure on a pool. apart/plain_run.h runs it on
// ordinary memory, apart/native.h in a native run.
//
// A Kind is a set of functions over its root: prepare (makes the empty structure), fill (one step
// of the initial content), apply and read (one operation), digest; also name, draw and make_model,
// which need no structure. All are static, unless the kind has state besides the parameters. Then
// its runs get an object of it, and name, fill, draw and make_model may be members of that object.
// The root is a container with check() and visit_blocks(). The same code runs on all memories.
#pragma once

#include <workloads/key_space.h>
#include <workloads/value.h>

#include <stele/coalescing.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace stele::workloads {

inline bool only_reads(std::span<const operation> operations) {
  return std::ranges::all_of(operations, [](const operation& op) { return only_reads(op); });
}

template <class Kind, class Root>
void run_operation(Root& root, const key_space& keys, const operation& op) {
  if (only_reads(op)) {
    Kind::read(root, op);
  } else {
    Kind::apply(root, keys, op);
  }
}

template <class Kind, class Memory>
class run_in final : public workload_on<typename Kind::template root<Memory>> {
  using root = typename Kind::template root<Memory>;
  using workload_on<root>::pool_, workload::commit_durability;

 public:
  explicit run_in(const parameters& p, Kind kind = {}) : keys_(p), kind_(std::move(kind)) {}

  std::string_view name() const override { return kind_.name; }

  [[nodiscard]] result<> set_up() override {
    if (auto done = pool_->update([&](root& r) { Kind::prepare(r, keys_); }, durability::ordered);
        !done)
      return done;
    const std::size_t batch =
        std::clamp<std::size_t>(batch_bytes / keys_.params().value_size, 1, 256);
    for (std::uint64_t from = 0; from < keys_.size(); from += batch) {
      const std::uint64_t to = std::min<std::uint64_t>(from + batch, keys_.size());
      if (auto done = pool_->update([&](root& r) { fill(r, from, to); }, durability::ordered);
          !done)
        return done;
    }
    return pool_->sync();
  }

  operation draw(base::rng& random) const override { return kind_.draw(keys_, random); }

  [[nodiscard]] result<> apply(std::span<const operation> operations) override {
    if (only_reads(operations)) {
      return pool_->read([&](const root& r) {
        for (const operation& op : operations) Kind::read(r, op);
      });
    }
    return pool_->update(
        [&](root& r) {
          for (const operation& op : operations) run_operation<Kind>(r, keys_, op);
        },
        commit_durability());
  }

  bool has_calls_for_many() const override { return has_read_many; }
  [[nodiscard]] result<> apply_many(std::span<const operation> operations) override {
    if constexpr (has_read_many) {
      static thread_local std::vector<operation> changes;
      changes.assign(operations.begin(), operations.end());
      std::erase_if(changes, [](const operation& op) { return only_reads(op); });
      if (changes.size() != operations.size()) {
        auto done = pool_->read([&](const root& r) { Kind::read_many(r, operations); });
        if (!done) return done;
      }
      return changes.empty() ? result<>{} : apply(changes);
    } else {
      return apply(operations);
    }
  }

  [[nodiscard]] result<std::uint64_t> digest() override {
    return pool_->read([](const root& r) -> result<std::uint64_t> {
      if (auto ok = r.check(); !ok) return std::unexpected(std::move(ok.error()));
      return Kind::digest(r);
    });
  }

  void visit_blocks(const block_visit& visit) override {
    const auto done = pool_->read([&](const root& r) { r.visit_blocks(visit); });
    if (!done) throw failure(done.error());
  }

  std::unique_ptr<model> make_model() const override { return kind_.make_model(keys_); }

 private:
  static constexpr bool has_read_many = requires(
      const root& r, std::span<const operation> operations) { Kind::read_many(r, operations); };
  // Bytes of values that one transaction of set_up writes.
  static constexpr std::size_t batch_bytes = 16384;

  void fill(root& r, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) kind_.fill(r, keys_, i);
  }

  key_space keys_;
  [[no_unique_address]] Kind kind_;
};

template <class Kind>
using pool_run = run_in<Kind, pool_memory>;
template <class Kind>
using coalescing_run = run_in<Kind, coalescing_memory>;

}  // namespace stele::workloads
