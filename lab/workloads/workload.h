// A workload: a structure in a pool, the operations that change it, and a volatile model that says
// what must be true.
//
// The same object serves the benchmarks (draw and apply as fast as it goes), the explorer (digest
// of a recovered pool against the model's) and the conformance tests. An operation is drawn from a
// seeded generator and carries everything needed to repeat it, so a run is named by its parameters
// and seed. `apply` is one transaction of all given operations.
#pragma once

#include <base/rng.h>
#include <stele/pool.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stele::workloads {

enum class key_choice : std::uint8_t { uniform, zipf };

struct parameters {
  std::size_t value_size = 8;  // bytes; a power of two from 8 to 4096, of store any from 1 to 2^20
  std::size_t keys = std::size_t{1} << 20;  // size of the key space (array elements for sps)
  double read_share = 0;  // share of operations that only read; ycsb, tpcc, linkbench: of no effect
  key_choice choice = key_choice::uniform;  // tpcc chooses by rules of its own
  double zipf_theta = 0.99;
  std::uint64_t seed = 1;  // of the initial content
  bool coalesce = false;   // structures in coalescing_memory (coalescing.h); in pools alone, not of
                           // every workload
};

struct operation {
  enum class kind : std::uint8_t {
    read,
    swap,
    toggle,
    put,
    append,
    erase,
    insert,
    read_modify,
    scan
  };
  kind what = kind::read;
  std::uint64_t a = 0;  // a key or index
  std::uint64_t b = 0;  // sps: the other index; else the seed of the value written, or what the
                        // workload says it is
};

constexpr bool only_reads(const operation& op) {
  return op.what == operation::kind::read || op.what == operation::kind::scan;
}

// The state that a workload's operations lead to, kept in ordinary memory by obvious code.
class model {
 public:
  virtual ~model() = default;
  virtual void apply(const operation& op) = 0;
  virtual std::uint64_t digest() const = 0;
};

using visitor = std::function<void(const void* block)>;

class workload {
 public:
  virtual ~workload() = default;
  virtual std::string_view name() const = 0;
  virtual std::size_t root_size() const = 0;

  // Takes the pool that the workload runs on; its root is this workload's.
  virtual void attach(detail::pool_handle handle) = 0;
  // Gives the pool up (closing it); attach may follow.
  virtual void detach() = 0;
  virtual detail::runtime& core() = 0;

  // Fills an empty pool with the initial content (a function of the parameters), in as many
  // transactions as suit.
  [[nodiscard]] virtual result<> set_up() = 0;
  // Draws the next operation; thread-safe for distinct generators.
  virtual operation draw(base::rng& random) const = 0;
  // Runs the operations as one transaction (a read transaction when all of them only read).
  // Thread-safe.
  [[nodiscard]] virtual result<> apply(std::span<const operation> operations) = 0;
  // What the commits of apply have reached when it returns, from now on; at first durable. Not
  // while another thread applies.
  void set_commit_durability(durability d) noexcept { commit_durability_ = d; }

  // The digest of the structure's content, read in one transaction; equals the model's after the
  // same operations. An error when one of the structure's own invariants does not hold.
  [[nodiscard]] virtual result<std::uint64_t> digest() = 0;
  // Calls `visit` for every allocated block that the structure reaches, the root object excepted.
  // Inside a read transaction.
  virtual void visit_blocks(const visitor& visit) = 0;

  // The model after set_up().
  virtual std::unique_ptr<model> make_model() const = 0;

 protected:
  durability commit_durability() const noexcept { return commit_durability_; }

 private:
  durability commit_durability_ = durability::durable;
};

// One whose pool has such a root.
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

// A workload by name: sps, hash, rbtree, bptree, kv, sdg, ssca2, ycsb-a to ycsb-f, tpcc, linkbench,
// store. Errors: not_found, invalid_argument (value size, keys; one that does not coalesce).
[[nodiscard]] result<std::unique_ptr<workload>> make_workload(std::string_view name,
                                                              const parameters& p);

// The same structures and operations on plain ordinary memory, without pool or transaction: the
// ceiling.
class volatile_run {
 public:
  virtual ~volatile_run() = default;
  virtual void set_up() = 0;
  virtual operation draw(base::rng& random) const = 0;
  virtual void apply(std::span<const operation> operations) = 0;  // not thread-safe
  virtual std::uint64_t digest() = 0;
};
[[nodiscard]] result<std::unique_ptr<volatile_run>> make_volatile(std::string_view name,
                                                                  const parameters& p);

std::vector<std::string> workload_names();

}  // namespace stele::workloads
