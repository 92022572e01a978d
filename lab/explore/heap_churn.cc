// A block's size and content follow from the seed that it was made with, so the model is one seed a
// slot.
//
// Of churn, slots 0 to 3 hold small blocks, slots 4 and 5 extents of one or two chunks; in any
// order they fit into a pool of 64 KiB. Of large, slots 0 to 3 hold blocks of large slabs, slots 4
// and 5 extents. An operation of kind swap cancels its transaction, erase destroys the block and
// cancels; toggle and put commit.
#include <explore/edges.h>
#include <explore/heap_churn.h>
#include <explore/named_stores.h>
#include <explore/redis_keys.h>
#include <explore/ring_records.h>
#include <explore/sqlite_blocks.h>
#include <explore/sqlite_rows.h>
#include <explore/workload_by_name.h>
#include <stele/memory.h>

#include <array>
#include <optional>

namespace stele::explore {

namespace {

using workloads::operation;

constexpr std::size_t small_slots = 4, slots = 6;

// Words of the blocks in the first slots and in the others.
struct block_sizes {
  std::array<std::size_t, 8> small;
  std::array<std::size_t, 4> large;
  std::size_t of(std::uint64_t slot, std::uint64_t seed) const {
    return slot < small_slots ? small[base::mix(seed) % small.size()]
                              : large[base::mix(seed) % large.size()];
  }
};
constexpr block_sizes sizes_of_churn = {{2, 5, 6, 11, 14, 36, 75, 121}, {130, 300, 512, 900}};
// In chunks of 4 KiB: three sizes of which two or three blocks share two or three chunks, blocks of
// a part of a chunk, and extents.
constexpr block_sizes sizes_of_large = {{760, 750, 381, 338, 202, 98, 60, 3},
                                        {512, 1500, 9000, 10000}};

// Which words of a block are stored: all in a short block and in one whose record outgrows the
// ring; in others every 64th and the last, of very long ones every 2048th.
constexpr bool filled(std::size_t i, std::size_t words) {
  return words <= 40 || words == 512 || i % (words < 4096 ? 64 : 2048) == 0 || i + 1 == words;
}
std::uint64_t word_at(std::uint64_t seed, std::size_t i) {
  return base::mix(seed ^ (i + 1));
}

std::uint64_t digest_of(std::uint64_t slot, std::uint64_t seed, std::uint64_t content) {
  return base::mix(base::mix(slot + 1) ^ seed) + content;
}

struct item {
  field<std::uint64_t> seed;  // 0: empty
  field<field<std::uint64_t>*> block;
};
struct table {
  item items[slots];
};

class churn_model final : public workloads::model {
 public:
  explicit churn_model(const block_sizes& sizes) : sizes_(sizes) {}
  void apply(const operation& op) override {
    if (op.what == operation::kind::toggle) seeds_[op.a] = seeds_[op.a] == 0 ? op.b : 0;
    if (op.what == operation::kind::put) seeds_[op.a] = op.b;
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (std::uint64_t slot = 0; slot < slots; ++slot) {
      if (seeds_[slot] == 0) continue;
      const std::size_t words = sizes_.of(slot, seeds_[slot]);
      std::uint64_t content = 0;
      for (std::size_t i = 0; i < words; ++i)
        if (filled(i, words)) content += word_at(seeds_[slot], i) * (i + 1);
      sum += digest_of(slot, seeds_[slot], content);
    }
    return sum;
  }

 private:
  const block_sizes& sizes_;
  std::array<std::uint64_t, slots> seeds_{};
};

class heap_churn final : public workloads::workload_on<table> {
 public:
  heap_churn(std::string_view name, const block_sizes& sizes) : name_(name), sizes_(sizes) {}
  std::string_view name() const override { return name_; }

  result<> set_up() override {
    base::rng random(11);
    for (std::uint64_t slot = 0; slot < slots; slot += 2)
      if (auto made = apply({{{operation::kind::put, slot, seed_from(random)}}}); !made)
        return made;
    for (std::uint64_t slot = 0; slot < slots; slot += 2)
      if (auto gone = apply({{{operation::kind::toggle, slot, 1}}}); !gone) return gone;
    return pool_->sync();
  }

  operation draw(base::rng& random) const override {
    using kind = operation::kind;
    constexpr std::array kinds = {kind::toggle, kind::toggle, kind::toggle, kind::put,
                                  kind::put,    kind::swap,   kind::erase,  kind::toggle};
    const std::uint64_t slot = random.below(8) == 0
                                   ? small_slots + random.below(slots - small_slots)
                                   : random.below(small_slots);
    return {kinds[random.below(kinds.size())], slot, seed_from(random)};
  }

  result<> apply(std::span<const operation> operations) override {
    auto done = pool_->update(
        [&](table& t) {
          for (const operation& op : operations) run(t, op);
        },
        commit_durability());
    workloads::operation_cancelled = !done && done.error().code == errc::cancelled;
    return workloads::operation_cancelled ? result<>{} : done;
  }

  result<std::uint64_t> digest() override {
    return pool_->read([this](const table& t) {
      std::uint64_t sum = 0;
      for (std::uint64_t slot = 0; slot < slots; ++slot)
        if (const std::uint64_t seed = t.items[slot].seed; seed != 0)
          sum += digest_of(slot, seed, content_of(t.items[slot].block, sizes_.of(slot, seed)));
      return sum;
    });
  }

  void visit_blocks(const workloads::block_visit& visit) override {
    const auto done = pool_->read([&](const table& t) {
      for (const item& i : t.items)
        if (i.seed != 0) visit(i.block.load());
    });
    if (!done) throw failure(done.error());
  }

  std::unique_ptr<workloads::model> make_model() const override {
    return std::make_unique<churn_model>(sizes_);
  }

 private:
  static std::uint64_t seed_from(base::rng& random) { return random() | 1; }

  static std::uint64_t content_of(const field<std::uint64_t>* block, std::size_t words) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words; ++i)
      if (filled(i, words)) sum += block[i] * (i + 1);
    return sum;
  }
  static void clear(item& i) {
    if (i.seed != 0) destroy(i.block.load());
    i.seed = 0;
    i.block = nullptr;
  }
  void fill(item& i, std::uint64_t slot, std::uint64_t seed) const {
    const std::size_t words = sizes_.of(slot, seed);
    auto* const block = static_cast<field<std::uint64_t>*>(pool_memory::allocate(words * 8, 8));
    for (std::size_t k = 0; k < words; ++k)
      if (filled(k, words)) block[k] = word_at(seed, k);
    i.seed = seed;
    i.block = block;
  }
  void run(table& t, const operation& op) const {
    item& i = t.items[op.a];
    const bool was_empty = i.seed == 0;
    if (op.what == operation::kind::read) return;
    clear(i);
    if (op.what == operation::kind::erase) cancel("destroyed, and then not");
    if (op.what != operation::kind::toggle || was_empty) fill(i, op.a, op.b);
    if (op.what == operation::kind::swap) cancel("made, and then not");
  }

  std::string_view name_;
  const block_sizes& sizes_;
};

}  // namespace

std::unique_ptr<workloads::workload> make_heap_churn() {
  return std::make_unique<heap_churn>("churn", sizes_of_churn);
}
std::unique_ptr<workloads::workload> make_large_churn() {
  return std::make_unique<heap_churn>("large", sizes_of_large);
}

result<std::unique_ptr<workloads::workload>> make_explored_workload(
    std::string_view name, const workloads::parameters& p) {
  if (name == "churn") return make_heap_churn();
  if (name == "large") return make_large_churn();
  if (name == "edges") return make_edges();
  if (name == "rings") return make_ring_records();
  if (name == "stores") return make_named_stores(p);
  if (name == "redis") return make_redis_keys(p);
#ifdef STELE_HAVE_SQLITE
  if (name == "sqlite") return make_sqlite_rows(p, 4096);
  if (name == "sqlite-512") return make_sqlite_rows(p, 512);
  if (name == "sqlite-blocks") return make_sqlite_blocks(2);
  if (name == "sqlite-block") return make_sqlite_blocks(1);
#endif
  return workloads::make_workload(name, p);
}

}  // namespace stele::explore
