// Visits the records of a key-value store in key order or against it, along its ordered index.
#pragma once

#include <base/assert.h>

namespace stele::detail {

// Valid until the store changes. A step costs O(1) on average; entering a node sorts its bytes.
template <class Memory>
template <bool backward>
class kv_radix<Memory>::basic_walk {
 public:
  // Starts at the first record with a key not less than `bound`; backward: at the last record with
  // a key less than it, where an empty bound is above all keys.
  basic_walk(const kv_radix& tree, std::string_view bound) : tree_(tree) {
    std::size_t depth = 0;
    for (std::uint64_t ref = tree.root_.load(); ref != 0;) {
      if (is_record(ref)) {
        const record r(tree.block_at(ref));
        if (is_inside(r, bound, depth)) first_ = r.block();
        return;
      }
      if (backward && bound.empty()) {
        enter(ref);
        return;
      }
      ref = enter_at(ref, bound, depth);
    }
  }

  // The next record in the direction of the walk; null at the end.
  char* next() {
    if (first_ != nullptr) return std::exchange(first_, nullptr);
    while (!levels_.empty()) {
      const std::uint64_t ref = next_entry(levels_.back());
      if (ref == 0)
        levels_.pop_back();
      else if (is_record(ref))
        return tree_.block_at(ref);
      else
        enter(ref);
    }
    return nullptr;
  }

 private:
  struct level {
    const node* n;
    head h;
    std::uint64_t own;  // own record still to visit, or 0
    // byte << 8 | index of the child, in the order of the walk; unused in a full node.
    std::array<std::uint16_t, 47> children;
    unsigned next = 0;          // next index in `children`; in a full node entries left behind
    bool returned_any = false;  // full node: at least one entry was returned
  };

  // Whether a record belongs to the walk. Its key and the bound share the first `depth` bytes.
  static bool is_inside(const record& r, std::string_view bound, std::size_t depth) {
    return backward ? bound.empty() || less(r, bound, depth) : !less(r, bound, depth);
  }
  // Whether the record's key is less than `bound`. Their first `depth` bytes are equal.
  static bool less(const record& r, std::string_view bound, std::size_t depth) {
    const auto lengths = r.lengths();
    const std::size_t end = depth + r.common_prefix(lengths, bound, depth);
    if (end >= bound.size()) return false;
    if (end == lengths.key_bytes) return true;
    char byte = 0;
    r.load_key(end, &byte, 1);
    return static_cast<unsigned char>(byte) < static_cast<unsigned char>(bound[end]);
  }

  // Each node takes at least one byte of the keys below it, so a path deeper than the longest key
  // is a cycle.
  level& enter(std::uint64_t ref) {
    if (levels_.size() > format::kv_max_key_size)
      throw_corrupt_store("the ordered index goes in a circle");
    limit_.step();
    const node* const n = tree_.node_at(ref);
    const node_copy m = load(n);
    if (m.entries() == 0) throw_corrupt_store("a node of the ordered index leads nowhere");
    level& l = levels_.emplace_back();
    l.n = n;
    l.h = m.h;
    l.own = m.own_record();
    if (m.h.kind == full_kind) return l;
    STELE_ASSERT(m.h.count <= l.children.size());  // load() has found it so
    unsigned i = 0;
    for_each_child(n, m, [&](unsigned byte, std::uint64_t child) {
      if (is_record(child)) record(tree_.block_at(child)).prefetch();
      l.children[i] = static_cast<std::uint16_t>(byte << 8 | i);
      ++i;
    });
    if constexpr (backward)
      std::sort(l.children.begin(), l.children.begin() + i, std::greater<>());
    else
      std::sort(l.children.begin(), l.children.begin() + i);
    return l;
  }
  // Enters a node and skips its entries beyond the bound. Returns the child on the path of the
  // bound, or 0.
  std::uint64_t enter_at(std::uint64_t ref, std::string_view bound, std::size_t& depth) {
    level& l = enter(ref);
    const node_copy m = load(l.n);
    const std::size_t same = tree_.match_path(l.n, m, bound, depth);
    depth += same;
    STELE_ASSERT(same <= m.h.skip && depth <= bound.size());
    if (depth == bound.size()) {  // all keys below begin with the bound
      if (backward) levels_.pop_back();
      return 0;
    }
    if (same < m.h.skip) {
      const bool below = path_byte(l.n, m, same, depth) < static_cast<unsigned char>(bound[depth]);
      if (below != backward) levels_.pop_back();
      return 0;
    }
    if (!backward) l.own = 0;
    const unsigned byte = static_cast<unsigned char>(bound[depth]);
    word* const child = find_child(const_cast<node*>(l.n), m, byte);
    skip_to(l, byte, child != nullptr);
    ++depth;
    return child == nullptr ? 0 : child->load();
  }
  // The byte of the node's path after `same` bytes, which is byte `depth` of the keys below.
  unsigned path_byte(const node* n, const node_copy& m, std::size_t same, std::size_t depth) const {
    STELE_ASSERT(same < m.h.skip);
    if (m.h.skip <= path_bytes) return m.path() >> 8 * same & 255;
    char byte = 0;
    tree_.any_descendant(tree_.node_word(n)).load_key(depth, &byte, 1);
    return static_cast<unsigned char>(byte);
  }
  // The entry of a full node that comes after `passed` others.
  static unsigned byte_after(unsigned passed) { return backward ? 255 - passed : passed; }
  // Skips the entries before the one for `byte`, and this one too if the walk descends into it.
  static void skip_to(level& l, unsigned byte, bool descends) {
    if (l.h.kind == full_kind) {
      l.next = byte_after(byte) + descends, l.returned_any = true;  // all may have been skipped
      return;
    }
    const auto is_passed = [&](unsigned other) {
      return (backward ? other > byte : other < byte) || (descends && other == byte);
    };
    while (l.next < l.h.count && is_passed(l.children[l.next] >> 8)) ++l.next;
  }

  std::uint64_t next_entry(level& l) {
    STELE_ASSERT(l.next <= (l.h.kind == full_kind ? 256u : l.h.count));
    if (!backward && l.own != 0) return l.returned_any = true, std::exchange(l.own, 0);
    if (l.h.kind != full_kind) {
      if (l.next < l.h.count) return child_at(l.n, l.h, l.children[l.next++] & 255)->load();
      return backward ? std::exchange(l.own, 0) : 0;
    }
    while (l.next < 256)
      if (const std::uint64_t child = child_at(l.n, l.h, byte_after(l.next++))->load(); child != 0)
        return l.returned_any = true, child;
    if (backward && l.own != 0) return l.returned_any = true, std::exchange(l.own, 0);
    if (!l.returned_any) throw_corrupt_store("a node of the ordered index leads nowhere");
    return 0;
  }

  const kv_radix& tree_;
  char* first_ = nullptr;  // record to return before those of levels_
  std::vector<level> levels_;
  visit_limit<Memory> limit_{kinds[0].bytes()};
};

}  // namespace stele::detail
