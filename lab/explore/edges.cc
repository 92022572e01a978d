// All stored values follow from an operation's seed, so the model is the root's words and one seed.
#include <explore/edges.h>
#include <stele/memory.h>

#include <array>
#include <optional>

namespace stele::explore {

namespace {

using workloads::operation;
using kind = operation::kind;

constexpr std::size_t root_words = 320, run_words = 96, abort_words = 300;

struct edge_root {
  field<std::uint64_t> words[root_words];
  field<std::uint64_t> extent_seed;  // 0: there is none
  field<field<std::uint64_t>*> extent;
};

// Every second value has zeroes in one half or in both.
std::uint64_t value_of(std::uint64_t seed, std::size_t i) {
  const std::uint64_t v = base::mix(seed ^ (i + 1));
  constexpr std::array<std::uint64_t, 6> masks = {~0ull,       0xFFFFFFFFull, ~0ull,
                                                  ~0ull << 32, ~0ull,         0};
  return v & masks[(seed + i) % masks.size()];
}
std::size_t extent_words(std::uint64_t seed) {
  constexpr std::array<std::size_t, 3> sizes = {1'100, 1'600,
                                                2'300};  // three to five chunks of 4 KiB
  return sizes[base::mix(seed) % sizes.size()];
}
// Whether word i of an extent is stored: long runs with gaps between them.
constexpr bool stored(std::size_t i) {
  return i % 512 < 100 || i % 512 >= 500;
}

template <class Words>
std::uint64_t digest_of(const Words& words, std::uint64_t extent_seed, std::uint64_t extent) {
  std::uint64_t sum = base::mix(extent_seed) + extent;
  for (std::size_t i = 0; i < root_words; ++i) sum += words[i] * (2 * i + 1);
  return sum;
}

// What an operation does to the words of the root: toggle changes a long run, put a few words far
// apart, swap one word; the others change none.
template <class Words>
void change(Words& words, const operation& op) {
  if (op.what == kind::toggle)
    for (std::size_t i = 0; i < run_words; ++i)
      words[op.a % (root_words - run_words) + i] = value_of(op.b, i);
  if (op.what == kind::put)
    for (std::size_t i = 0; i < 5; ++i) words[(op.a + 61 * i) % root_words] = value_of(op.b, i);
  if (op.what == kind::swap) words[op.a % root_words] = value_of(op.b, 1);
}

class edge_model final : public workloads::model {
 public:
  void apply(const operation& op) override {
    change(words_, op);
    if (op.what == kind::append) extent_ = extent_ == 0 ? op.b : 0;
  }
  std::uint64_t digest() const override {
    std::uint64_t content = 0;
    for (std::size_t i = 0; extent_ != 0 && i < extent_words(extent_); ++i)
      if (stored(i)) content += value_of(extent_, i) * (i + 1);
    return digest_of(words_, extent_, content);
  }

 private:
  std::array<std::uint64_t, root_words> words_{};
  std::uint64_t extent_ = 0;
};

class edges final : public workloads::workload_on<edge_root> {
 public:
  std::string_view name() const override { return "edges"; }
  result<> set_up() override { return pool_->sync(); }

  operation draw(base::rng& random) const override {
    constexpr std::array kinds = {kind::toggle, kind::toggle, kind::put,   kind::put,
                                  kind::swap,   kind::swap,   kind::erase, kind::append};
    return {kinds[random.below(kinds.size())], random.below(root_words), random() | 1};
  }

  result<> apply(std::span<const operation> operations) override {
    auto done = pool_->update(
        [&](edge_root& r) {
          for (const operation& op : operations) run(r, op);
        },
        commit_durability());
    workloads::operation_cancelled = !done && done.error().code == errc::cancelled;
    return workloads::operation_cancelled ? result<>{} : done;
  }

  result<std::uint64_t> digest() override {
    return pool_->read([](const edge_root& r) {
      const std::uint64_t seed = r.extent_seed;
      std::uint64_t content = 0;
      for (std::size_t i = 0; seed != 0 && i < extent_words(seed); ++i)
        if (stored(i)) content += r.extent.load()[i] * (i + 1);
      return digest_of(r.words, seed, content);
    });
  }

  void visit_blocks(const workloads::block_visit& visit) override {
    const auto done = pool_->read([&](const edge_root& r) {
      if (r.extent_seed != 0) visit(r.extent.load());
    });
    if (!done) throw failure(done.error());
  }

  std::unique_ptr<workloads::model> make_model() const override {
    return std::make_unique<edge_model>();
  }

 private:
  static field<std::uint64_t>* make_words(std::size_t count) {
    return static_cast<field<std::uint64_t>*>(pool_memory::allocate(count * 8, 8));
  }

  static void run(edge_root& r, const operation& op) {
    change(r.words, op);
    // A block made and destroyed; its size is its own or that of other blocks.
    if (op.what == kind::swap) {
      auto* const block = make_words(2 + op.b % 3 * 60);
      block[0] = op.b;
      destroy(block);
    }
    if (op.what == kind::erase) {
      const std::size_t words = abort_words >> op.a % 4;
      for (std::size_t i = 0; i < words; ++i) r.words[i] = op.b + i;
      cancel("stored, and then not");
    }
    if (op.what == kind::append) r.extent_seed == 0 ? fill(r, op.b) : clear(r);
  }
  static void fill(edge_root& r, std::uint64_t seed) {
    auto* const extent = make_words(extent_words(seed));
    for (std::size_t i = 0; i < extent_words(seed); ++i)
      if (stored(i)) extent[i] = value_of(seed, i);
    r.extent_seed = seed;
    r.extent = extent;
  }
  static void clear(edge_root& r) {
    destroy(r.extent.load());
    r.extent_seed = 0;
    r.extent = nullptr;
  }
};

}  // namespace

std::unique_ptr<workloads::workload> make_edges() {
  return std::make_unique<edges>();
}

}  // namespace stele::explore
