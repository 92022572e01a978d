// The replacement policies and their table. A new policy is a class and a line in the table.
#include <base/check.h>
#include <base/rng.h>
#include <sim/cache/replacement.h>

#include <bit>
#include <vector>

namespace stele::sim {

namespace {

class tree_plru final : public replacement {
 public:
  tree_plru(std::size_t sets, unsigned ways) : ways_(std::bit_ceil(ways)), trees_(sets) {}

  void touched(std::size_t set, unsigned way) override { point_away_from(trees_[set], way); }
  void filled(std::size_t set, unsigned way) override { touched(set, way); }
  unsigned victim(std::size_t set, std::uint32_t allowed) override {
    unsigned low = 0, node = 1;
    for (unsigned half = ways_ / 2; half != 0; half /= 2) {
      const bool right_has = (allowed >> (low + half) & mask(half)) != 0,
                 left_has = (allowed >> low & mask(half)) != 0;
      const bool right = right_has && (!left_has || (trees_[set] >> node & 1) != 0);
      low += right ? half : 0;
      node = 2 * node + right;
    }
    return low;
  }
  void visit_state(archive& a) override { a.sparse(trees_, 0); }

 private:
  static std::uint32_t mask(unsigned bits) noexcept { return bits >= 32 ? ~0u : (1u << bits) - 1; }
  // Bit n of a tree is set when the half used longer ago is the right one.
  void point_away_from(std::uint64_t& tree, unsigned way) const noexcept {
    unsigned node = 1;
    for (unsigned half = ways_ / 2; half != 0; half /= 2) {
      const bool right = (way & half) != 0;
      tree = right ? tree & ~(std::uint64_t{1} << node) : tree | std::uint64_t{1} << node;
      node = 2 * node + right;
    }
  }

  unsigned ways_;
  std::vector<std::uint64_t> trees_;
};

class bimodal final : public replacement {
 public:
  bimodal(std::size_t sets, unsigned ways, std::uint64_t seed)
      : ways_(ways), last_used_(sets * ways), random_(seed) {}

  void touched(std::size_t set, unsigned way) override { last_used_[set * ways_ + way] = ++clock_; }
  void filled(std::size_t set, unsigned way) override {
    last_used_[set * ways_ + way] = random_() % 32 == 0 ? ++clock_ : -++clock_;
  }
  unsigned victim(std::size_t set, std::uint32_t allowed) override {
    unsigned best = static_cast<unsigned>(std::countr_zero(allowed));
    for (unsigned w = best; w < ways_; ++w)
      if ((allowed >> w & 1) != 0 && last_used_[set * ways_ + w] < last_used_[set * ways_ + best])
        best = w;
    return best;
  }
  void visit_state(archive& a) override {
    a(clock_, random_);
    a.sparse(last_used_, 0);
  }

 private:
  unsigned ways_;
  std::vector<std::int64_t> last_used_;
  std::int64_t clock_ = 0;
  base::rng random_;
};

class any_way final : public replacement {
 public:
  explicit any_way(std::uint64_t seed) : random_(seed) {}
  void touched(std::size_t, unsigned) override {}
  void filled(std::size_t, unsigned) override {}
  unsigned victim(std::size_t, std::uint32_t allowed) override {
    for (auto skip = random_() % static_cast<unsigned>(std::popcount(allowed)); skip != 0; --skip)
      allowed &= allowed - 1;
    return static_cast<unsigned>(std::countr_zero(allowed));
  }
  void visit_state(archive& a) override { a(random_); }

 private:
  base::rng random_;
};

constexpr replacement_policy policies[] = {
    {"lru",
     [](std::size_t, unsigned, std::uint64_t) -> std::unique_ptr<replacement> { return nullptr; }},
    {"plru",
     [](std::size_t sets, unsigned ways, std::uint64_t) -> std::unique_ptr<replacement> {
       return std::make_unique<tree_plru>(sets, ways);
     }},
    {"bip",
     [](std::size_t sets, unsigned ways, std::uint64_t seed) -> std::unique_ptr<replacement> {
       return std::make_unique<bimodal>(sets, ways, seed);
     }},
    {"random", [](std::size_t, unsigned, std::uint64_t seed) -> std::unique_ptr<replacement> {
       return std::make_unique<any_way>(seed);
     }}};

}  // namespace

std::span<const replacement_policy> replacement_policies() noexcept {
  return policies;
}

result<const replacement_policy*> replacement_named(std::string_view name) {
  std::string known;
  for (const replacement_policy& p : policies) {
    if (p.name == name) return &p;
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  return base::fail(errc::invalid_argument, "there is no replacement policy \"" +
                                                std::string(name) + "\"; choose one of " + known);
}

}  // namespace stele::sim
