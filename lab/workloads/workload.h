// A workload: a structure in a pool, the operations that change it, and a volatile model that gives
// the expected state.
//
// The same object serves the benchmarks (draw and apply at full speed), the explorer (compares the
// digest of a recovered pool with the model's) and the conformance tests. An operation is drawn
// from a seeded generator and contains everything needed to repeat it, so parameters and seed
// identify a run. `apply` runs all given operations as one transaction.
#pragma once

#include <base/rng.h>
#include <stele/pool.h>
#include <workloads/operation.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stele::workloads {

// fresh: keys that were never drawn before, uniformly of all words: every toggle is an insert, and
// so is every operation of kv.
enum class key_choice : std::uint8_t { uniform, zipf, fresh };

struct parameters {
  std::size_t value_size = 8;  // bytes; a power of two from 8 to 4096; store: any from 1 to 2^20
  std::size_t keys = std::size_t{1} << 20;  // size of the key space (array elements for sps)
  double read_share = 0;  // share of operations that only read; no effect on ycsb, tpcc, linkbench
  key_choice choice = key_choice::uniform;  // tpcc has rules of its own
  double zipf_theta = 0.99;
  std::uint64_t seed = 1;  // of the initial content
  // Structures in coalescing_memory (coalescing.h); only in pools, and not for every workload.
  bool coalesce = false;
};

// Set by apply() in the thread that calls it, when an operation has cancelled its transaction: then
// nothing was committed, though the operation has had its effect, which is none.
inline thread_local bool operation_cancelled = false;

// The state after a workload's operations, kept in ordinary memory by simple code.
class model {
 public:
  virtual ~model() = default;
  virtual void apply(const operation& op) = 0;
  virtual std::uint64_t digest() const = 0;
};

using block_visit = std::function<void(const void* block)>;

class workload {
 public:
  virtual ~workload() = default;
  virtual std::string_view name() const = 0;
  virtual std::size_t root_size() const = 0;
  // The concurrency of its pools.
  virtual concurrency policy() const noexcept { return concurrency::stm; }

  // Takes the pool that the workload runs on; the pool's root is this workload's.
  virtual void attach(detail::pool_handle handle) = 0;
  // Gives up the pool, which closes it; attach may follow.
  virtual void detach() = 0;
  virtual detail::runtime& core() = 0;

  // Fills an empty pool with the initial content (a function of the parameters), in as many
  // transactions as needed.
  [[nodiscard]] virtual result<> set_up() = 0;
  // Draws the next operation; thread-safe for distinct generators.
  virtual operation draw(base::rng& random) const = 0;
  // Runs the operations as one transaction; a read transaction if all of them only read.
  // Thread-safe.
  [[nodiscard]] virtual result<> apply(std::span<const operation> operations) = 0;
  // Whether the structure has calls for many items. If so, apply_many runs the operations by them,
  // in any order: the reads as one transaction, the changes as another. Else it is apply.
  // Thread-safe.
  virtual bool has_calls_for_many() const { return false; }
  [[nodiscard]] virtual result<> apply_many(std::span<const operation> operations) {
    return apply(operations);
  }
  // The durability of later commits of apply when it returns; initially durable. Not while another
  // thread is in apply.
  void set_commit_durability(durability d) noexcept { commit_durability_ = d; }
  // Makes the ordered commits so far durable.
  [[nodiscard]] virtual result<> sync() { return detail::sync_pool(core()); }
  // Makes all commits durable and closes the pool. detach() follows.
  [[nodiscard]] virtual result<> close() { return detail::close_pool(core()); }

  // The digest of the structure's content, read in one transaction; equal to the model's after the
  // same operations. An error if an invariant of the structure does not hold.
  [[nodiscard]] virtual result<std::uint64_t> digest() = 0;
  // Calls `visit` for every allocated block that the structure reaches, except the root object.
  // Inside a read transaction.
  virtual void visit_blocks(const block_visit& visit) = 0;

  // The model after set_up().
  virtual std::unique_ptr<model> make_model() const = 0;

 protected:
  durability commit_durability() const noexcept { return commit_durability_; }

 private:
  durability commit_durability_ = durability::durable;
};

// A workload whose pool has such a root.
template <class Root>
class workload_on : public workload {
 public:
  std::size_t root_size() const override { return sizeof(Root); }
  void attach(detail::pool_handle handle) override { pool_.emplace(std::move(handle)); }
  void detach() override { pool_.reset(); }
  detail::runtime& core() override { return pool_->core(); }

 protected:
  std::optional<pool<Root>> pool_;
};

// Makes a workload by name: sps, hash, rbtree, bptree, kv, sdg, ssca2, ycsb-a to ycsb-f, tpcc,
// linkbench, store. Errors: not_found, invalid_argument (value size, keys, no coalescing
// available).
[[nodiscard]] result<std::unique_ptr<workload>> make_workload(std::string_view name,
                                                              const parameters& p);

std::vector<std::string> workload_names();

}  // namespace stele::workloads
