// Parts of linkbench: nodes, lists, the links at the start, and what operations mean.
//
// A list of links belongs to a node and a type; its number is list_of(). Of an operation, `a` is
// the node, and `b` is what its kind makes of it: draw_operation().
#pragma once

#include <workloads/key_space.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace stele::workloads::linkbench {

inline constexpr std::uint64_t types = 2;
inline constexpr std::uint64_t links_at_start = 32;  // the most in a list
inline constexpr double default_theta = 0.8;

inline std::uint64_t nodes_of(const parameters& p) {
  return std::max<std::uint64_t>(p.keys / 8, 1);
}
inline std::uint64_t list_of(std::uint64_t id, std::uint64_t type) {
  return id * types + type;
}
constexpr std::uint32_t room_at_start(std::uint32_t links) {
  return links + links / 2 + 1;
}

// A change of a list. The operation's word has random bits; for an added link the lowest bits are
// the other node.
struct change {
  std::uint64_t list;
  std::uint32_t to;
  std::uint64_t position;

  explicit change(const operation& op)
      : list(list_of(op.a, op.b >> 63)),
        to(static_cast<std::uint32_t>(op.b)),
        position(op.b >> 32 & 0x7FFF'FFFF) {}
};

// The list whose links a read with a word above 0 counts.
inline std::uint64_t counted_list(const operation& op) {
  return list_of(op.a, (op.b - 1) % types);
}

// Node ids as operations draw them, and the links at the start.
class id_choice {
 public:
  explicit id_choice(const parameters& p)
      : ids_({.keys = nodes_of(p),
              .choice = key_choice::zipf,
              .zipf_theta = p.choice == key_choice::zipf ? p.zipf_theta : default_theta,
              .seed = p.seed}) {}

  std::uint64_t nodes() const { return ids_.size(); }
  std::uint64_t draw(base::rng& random) const { return ids_.draw(random); }

  struct link {
    std::uint64_t list;
    std::uint32_t to;
    std::uint64_t word;
  };
  // The link that step i of filling adds, if any, unless its list is full. The nodes with many
  // links differ from those that operations use most.
  std::optional<link> at_start(const key_space& keys, std::uint64_t i) const {
    if (i % 2 != 0) return std::nullopt;
    base::rng random(base::mix(keys.params().seed) + i);
    const std::uint64_t from = (draw(random) + nodes() / 2) % nodes();
    return link{list_of(from, random.below(types)), static_cast<std::uint32_t>(draw(random)),
                keys.word_at_start(i)};
  }
  operation draw_operation(base::rng& random) const {
    using enum operation::kind;
    const std::uint64_t choice = random.below(100), id = draw(random), word = random();
    if (choice < 51) return {scan, id, word};
    if (choice < 64) return {read, id, 0};
    if (choice < 68) return {read, id, 1 + (word >> 63)};  // a count: 1 and the type
    if (choice < 76) return {put, id, word};
    if (choice < 84) return {read_modify, id, word};
    if (choice < 96) return {insert, id, word >> 32 << 32 | draw(random)};
    return {erase, id, word};
  }

 private:
  key_space ids_;
};

}  // namespace stele::workloads::linkbench
