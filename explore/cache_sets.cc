// Looking lines up, and the four replacement policies.
#include <explore/cache_sets.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <base/check.h>

namespace stele::explore {

namespace {

constexpr std::array<std::string_view, 4> names = {"lru", "plru", "bip", "random"};
constexpr std::uint64_t bimodal_throttle = 32;

}  // namespace

std::string_view name_of(replacement r) noexcept {
  return names[static_cast<std::size_t>(r)];
}

std::optional<replacement> replacement_named(std::string_view name) noexcept {
  for (const replacement r : all_replacements)
    if (name_of(r) == name) return r;
  return std::nullopt;
}

result<> check_shape(const cache_shape& s) {
  if (s.ways == 0 || s.ways > 64 || !std::has_single_bit(s.ways))
    return base::fail(errc::invalid_argument, fmt::format("a cache of {} ways: give a power of two up to 64", s.ways));
  if (s.lines == 0 || s.lines % s.ways != 0 || s.lines > std::size_t{1} << 24)
    return base::fail(errc::invalid_argument, fmt::format("a cache of {} lines and {} ways: give a multiple of the ways, "
                                                          "at most 2^24",
                                                          s.lines, s.ways));
  return {};
}

cache_sets::cache_sets(const cache_shape& shape)
    : shape_(shape), sets_(shape.lines / shape.ways), ways_(shape.lines), trees_(sets_), random_(0) {}

void cache_sets::empty(std::uint64_t seed) {
  std::ranges::fill(ways_, way{});
  std::ranges::fill(trees_, 0);
  clock_ = 0;
  random_ = base::rng(seed);
}

cache_sets::way* cache_sets::find(std::uint32_t line) noexcept {
  way* const set = set_of(line);
  for (way* w = set; w != set + shape_.ways; ++w)
    if (w->line == line) return w;
  return nullptr;
}

std::uint32_t cache_sets::write(std::uint32_t line) {
  way* const set = set_of(line);
  if (way* const there = find(line)) {
    use(set, *there);
    there->dirty = true;
    return none;
  }
  way& w = victim(set);
  const std::uint32_t leaves = w.dirty ? w.line : none;
  w = {line, true, w.used};
  bring_in(set, w);
  return leaves;
}

bool cache_sets::clean(std::uint32_t line) noexcept {
  way* const there = find(line);
  return there != nullptr && std::exchange(there->dirty, false);
}

bool cache_sets::drop(std::uint32_t line) noexcept {
  way* const there = find(line);
  if (there == nullptr) return false;
  there->line = none;
  return std::exchange(there->dirty, false);
}

cache_sets::way& cache_sets::victim(way* set) {
  way* const end = set + shape_.ways;
  if (way* const unused = std::find_if(set, end, [](const way& w) { return w.line == none; }); unused != end) return *unused;
  if (shape_.policy == replacement::random) return set[random_.below(shape_.ways)];
  if (shape_.policy != replacement::plru)
    return *std::min_element(set, end, [](auto& a, auto& b) { return a.used < b.used; });
  const std::uint64_t tree = tree_of(set);
  std::size_t node = 1;
  while (node < shape_.ways) node = 2 * node + (tree >> node & 1);
  return set[node - shape_.ways];
}

void cache_sets::use(way* set, way& w) noexcept {
  w.used = ++clock_;
  if (shape_.policy != replacement::plru) return;
  std::uint64_t& tree = tree_of(set);
  for (std::size_t node = static_cast<std::size_t>(&w - set) + shape_.ways; node > 1; node /= 2) {
    const std::uint64_t bit = std::uint64_t{1} << node / 2;  // of the parent: point to the other child
    tree = node % 2 == 0 ? tree | bit : tree & ~bit;
  }
}

void cache_sets::bring_in(way* set, way& w) {
  const bool next_to_leave = shape_.policy == replacement::bip && random_.below(bimodal_throttle) != 0;
  if (!next_to_leave) return use(set, w);
  w.used = std::min_element(set, set + shape_.ways, [](auto& a, auto& b) { return a.used < b.used; })->used - 1;
}

}  // namespace stele::explore
