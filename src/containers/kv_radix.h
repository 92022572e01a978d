// The ordered index of a key-value store: a radix tree over the bytes of the keys. Its leaves are
// the records.
//
// After Leis, Kemper and Neumann, "The Adaptive Radix Tree" (ICDE 2013): nodes of four sizes, path
// compression, and leaves as high as they are unique. Departures: a node keeps its children in the
// order of their insertion, so an insert stores the count, one byte and one word. A key that is a
// prefix of other keys is the node's own record. A path of more than 8 bytes is read from a record
// below when it is needed. There are no separators, so no part of a key is copied, and an erased
// key leaves nothing behind. Nodes are small, so inserts of different keys rarely conflict.
//
// Invariants: the children and the own record of a node are at least two entries; the key of a
// record begins with the bytes on the path to it; no node is larger than its children need, with
// some slack (should_shrink()). Zeroed memory is an empty tree. The tree does not own the records.
#pragma once

#include <base/assert.h>
#include <containers/kv_record.h>

#include <array>
#include <vector>

namespace stele::detail {

template <class Memory>
class kv_radix {
  using word = typename Memory::template field<std::uint64_t>;
  using record = kv_record<Memory>;
  using head = format::kv_node_header;
  static constexpr auto& kinds = format::kv_node_kinds;
  static constexpr std::uint8_t full_kind = 3;  // one child slot for each byte value
  static constexpr unsigned path_bytes = 8;     // bytes of its path that a node stores
  struct node {
    word head, path, own_record;
    word rest[5];  // more for larger kinds
  };
  using line = std::array<std::uint64_t, 8>;  // the first line of a node
  struct node_copy {
    line words;
    head h;
    std::uint64_t path() const { return words[1]; }
    std::uint64_t own_record() const { return words[2]; }
    unsigned entries() const { return h.count + (own_record() != 0); }
  };

 public:
  template <bool backward>
  class basic_walk;
  using walk = basic_walk<false>;

  // Inserts a key that is not there.
  void insert(std::string_view key, char* block) {
    STELE_ASSERT(!key.empty() && block != nullptr);
    const position s = find(key);
    switch (s.what) {
      case position::empty:
        *s.at = record_word(block);
        break;
      case position::at_record:
        split_records(s, key, block);
        break;
      case position::in_path:
        split_path(s, key, block);
        break;
      case position::at_end:
        if (s.m.own_record() != 0)
          throw_corrupt_store("the ordered index has a key that the hash index lacks");
        s.n->own_record = record_word(block);
        break;
      case position::no_child:
        STELE_ASSERT(s.depth < key.size());
        add_child(s, static_cast<unsigned char>(key[s.depth]), record_word(block));
        break;
    }
  }
  // Replaces the record `before` of an existing key.
  void replace(std::string_view key, const char* before, char* block) {
    STELE_ASSERT(before != nullptr && before != block);
    const position s = find(key);
    verify_position(s, before);
    (s.what == position::at_end ? s.n->own_record : *s.at) = record_word(block);
  }
  void erase(std::string_view key, const char* block) {
    const position s = find(key);
    verify_position(s, block);
    if (s.what == position::at_end) {
      s.n->own_record = 0;
      shrink_or_collapse(s.n, s.at);
    } else if (s.n == nullptr) {
      *s.at = 0;
    } else {
      remove_child(s.n, s.at);
      shrink_or_collapse(s.n, s.above);
    }
  }

  // Number of nodes and of bytes in them.
  struct space {
    std::uint64_t nodes = 0, bytes = 0;
  };
  space used_space() const {
    space used;
    for_each_node([&](const node*, const node_copy& m) {
      ++used.nodes, used.bytes += kinds[m.h.kind].bytes();
    });
    return used;
  }
  template <class Visit>
  void visit_blocks(Visit& visit) const {
    for_each_node([&](const node* n, const node_copy&) { visit(static_cast<const void*>(n)); });
  }
  // Whether the key leads to this record.
  bool leads_to(std::string_view key, const char* block) const { return is_at(find(key), block); }
  // Errors: corrupt. The store checks the order and content of the records.
  [[nodiscard]] result<> check() const {
    result<> outcome;
    for_each_node([&](const node* n, const node_copy& m) {
      if (m.entries() < 2)
        outcome = corrupt_error(
            "key-value store: a node of the ordered index leads to less than two items");
      if (should_shrink(m.h))
        outcome = corrupt_error(
            "key-value store: a node of the ordered index is larger than it would be made");
      if (m.own_record() != 0 && m.own_record() >> format::kv_reference_bits != 1)
        outcome = corrupt_error("key-value store: a node's own record is none");
      std::array<bool, 256> seen{};
      unsigned children = 0;
      for_each_child(n, m, [&](unsigned b, std::uint64_t child) {
        if (seen[b] || child == 0)
          outcome = corrupt_error(
              "key-value store: a byte occurs twice in a node of the ordered index, or leads "
              "nowhere");
        if (child >> (format::kv_reference_bits + 1) != 0)
          outcome = corrupt_error(
              "key-value store: a reference of the ordered index with bits beyond it");
        seen[b] = true;
        ++children;
      });
      if (children != m.h.count)
        outcome = corrupt_error(
            "key-value store: a node of the ordered index has other children than it counts");
    });
    return outcome;
  }

 private:
  // The position of a key: where it is, or where it would be inserted.
  struct position {
    enum kind : std::uint8_t {
      empty,      // the tree is empty
      at_record,  // *at is a record; its key and the key share the first `depth` bytes
      in_path,    // the key leaves the path of n after `same` bytes
      at_end,     // the key ends at n
      no_child,   // n has no child for the key's byte at `depth`
    } what = empty;
    word* at = nullptr;     // refers to n, or to a record below n
    word* above = nullptr;  // refers to n, also at_record
    node* n = nullptr;
    node_copy m = {};
    std::size_t depth = 0, same = 0;
  };

  bool is_at(const position& s, const char* block) const {
    if (s.what == position::at_end)
      return s.m.own_record() != 0 && block_at(s.m.own_record()) == block;
    return s.what == position::at_record && block_at(s.at->load()) == block;
  }
  void verify_position(const position& s, const char* block) const {
    if (!is_at(s, block))
      throw_corrupt_store("the ordered index does not lead to a record by its key");
  }

  static bool is_record(std::uint64_t ref) { return (ref & format::kv_record_bit) != 0; }
  char* block_at(std::uint64_t ref) const { return format::kv_decode_reference(this, ref); }
  node* node_at(std::uint64_t ref) const { return reinterpret_cast<node*>(block_at(ref)); }
  std::uint64_t node_word(const node* n) const {
    const std::uint64_t ref = format::kv_encode_reference(this, n);
    STELE_ASSERT(!is_record(ref) && node_at(ref) == n);
    return ref;
  }
  std::uint64_t record_word(const char* block) const {
    const std::uint64_t ref = format::kv_encode_reference(this, block) | format::kv_record_bit;
    STELE_ASSERT(block_at(ref) == block);
    return ref;
  }

  static node_copy load(const node* n) {
    node_copy m;
    verify_in_heap<Memory>(n, sizeof m.words);
    Memory::load_bytes(m.words.data(), n, sizeof m.words);
    m.h = head::unpack(m.words[0]);
    if (m.h.kind > full_kind || m.h.count > kinds[m.h.kind].children)
      throw_corrupt_store("a node of the ordered index of no kind");
    verify_in_heap<Memory>(n, kinds[m.h.kind].bytes());
    return m;
  }
  static const word* byte_word(const node* n, unsigned i) { return &n->head + 3 + i; }
  static word* byte_word(node* n, unsigned i) { return &n->head + 3 + i; }
  static word* child_at(node* n, head h, unsigned i) {
    return &n->head + 3 + kinds[h.kind].byte_words + i;
  }
  static const word* child_at(const node* n, head h, unsigned i) {
    return child_at(const_cast<node*>(n), h, i);
  }
  static std::uint64_t bytes_of(const node* n, const node_copy& m, unsigned i) {
    return i < 5 ? m.words[3 + i] : byte_word(n, i)->load();
  }

  // Calls f(byte, child word) in no order.
  template <class F>
  static void for_each_child(const node* n, const node_copy& m, F&& f) {
    if (m.h.kind == full_kind) {
      for (unsigned b = 0; b < 256; ++b)
        if (const std::uint64_t child = child_at(n, m.h, b)->load(); child != 0) f(b, child);
      return;
    }
    for (unsigned i = 0; i < m.h.count; ++i)
      f(static_cast<unsigned>(bytes_of(n, m, i / 8) >> i % 8 * 8 & 255),
        child_at(n, m.h, i)->load());
  }
  template <class F>
  void for_each_node(F&& f) const {
    std::vector<std::uint64_t> todo = {root_.load()};
    visit_limit<Memory> limit(kinds[0].bytes());
    while (!todo.empty()) {
      const std::uint64_t ref = todo.back();
      todo.pop_back();
      if (ref == 0 || is_record(ref)) continue;
      limit.step();
      const node* const n = node_at(ref);
      const node_copy m = load(n);
      claim<Memory>(n, kinds[m.h.kind].bytes());
      f(n, m);
      for_each_child(n, m, [&](unsigned, std::uint64_t child) { todo.push_back(child); });
    }
  }

  // The child for a byte, or null.
  static word* find_child(node* n, const node_copy& m, unsigned byte) {
    if (m.h.kind == full_kind)
      return child_at(n, m.h, byte)->load() == 0 ? nullptr : child_at(n, m.h, byte);
    constexpr std::uint64_t ones = 0x0101'0101'0101'0101, low = 0x7F7F'7F7F'7F7F'7F7F;
    for (unsigned i = 0; i * 8 < m.h.count; ++i) {
      const std::uint64_t x = bytes_of(n, m, i) ^ byte * ones;
      const std::uint64_t hits = ~(((x & low) + low) | x | low);
      const unsigned at = i * 8 + static_cast<unsigned>(std::countr_zero(hits)) / 8;
      if (hits != 0 && at < m.h.count) return child_at(n, m.h, at);
    }
    return nullptr;
  }

  // Any record below the node. Its key begins with the bytes on the path to the node and the node's
  // path.
  record any_descendant(std::uint64_t ref) const {
    for (cycle_detector guard; !is_record(ref);) {
      const node* const n = node_at(ref);
      guard.step(n);
      const node_copy m = load(n);
      if (m.own_record() != 0) {
        ref = m.own_record();
      } else if (m.h.kind == full_kind) {
        unsigned b = 0;
        while (b < 255 && child_at(n, m.h, b)->load() == 0) ++b;
        ref = child_at(n, m.h, b)->load();
      } else {
        ref = child_at(n, m.h, 0)->load();
      }
      if (ref == 0) throw_corrupt_store("a node of the ordered index leads nowhere");
    }
    return record(block_at(ref));
  }
  // The number of bytes of the node's path that the key matches, from `depth` on.
  std::size_t match_path(const node* n, const node_copy& m, std::string_view key,
                         std::size_t depth) const {
    STELE_ASSERT(depth <= key.size());
    const std::size_t end = std::min<std::size_t>(m.h.skip, key.size() - depth);
    if (m.h.skip > path_bytes) {
      const record r = any_descendant(node_word(n));
      return std::min(end, r.common_prefix(r.lengths(), key, depth));
    }
    std::size_t same = 0;
    while (same < end &&
           static_cast<unsigned char>(key[depth + same]) == (m.path() >> 8 * same & 255))
      ++same;
    return same;
  }

  position find(std::string_view key) const {
    position s;
    s.at = const_cast<word*>(&root_);
    for (std::uint64_t ref = s.at->load(); ref != 0; ref = s.at->load()) {
      if (is_record(ref)) {
        s.what = position::at_record;
        return s;
      }
      s.above = s.at;
      s.n = node_at(ref);
      s.m = load(s.n);
      s.same = match_path(s.n, s.m, key, s.depth);
      s.what = position::in_path;
      if (s.same < s.m.h.skip) return s;
      s.depth += s.m.h.skip;
      STELE_ASSERT(s.depth <= key.size());  // the key has all of the path
      s.what = position::at_end;
      if (s.depth == key.size()) return s;
      s.what = position::no_child;
      word* const child = find_child(s.n, s.m, static_cast<unsigned char>(key[s.depth]));
      if (child == nullptr) return s;
      s.at = child;
      ++s.depth;
    }
    if (s.n != nullptr)
      throw_corrupt_store("a node of the ordered index has a child that is missing");
    return s;
  }

  // Changes.

  static std::uint64_t path_of(std::string_view bytes) {
    std::uint64_t path = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), path_bytes); ++i)
      path |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
    return path;
  }
  static node* make_node(head h, std::uint64_t path, std::uint64_t own) {
    STELE_ASSERT(h.kind <= full_kind && h.count <= kinds[h.kind].children);
    const std::size_t bytes = kinds[h.kind].bytes();
    node* const n =
        static_cast<node*>(Memory::allocate(bytes, h.kind == full_kind ? 8 : line_size));
    n->head = h.pack();
    n->path = path;
    n->own_record = own;
    if (h.kind == full_kind) Memory::fill_zero(n->rest, bytes - 24);
    return n;
  }
  // Adds a child after the existing ones. The caller stores the head.
  static void store_child(node* n, head h, std::uint64_t bytes_before, unsigned byte,
                          std::uint64_t child) {
    STELE_ASSERT(byte < 256 && (h.kind == full_kind || h.count < kinds[h.kind].children));
    if (h.kind == full_kind) {
      *child_at(n, h, byte) = child;
      return;
    }
    const unsigned i = h.count, shift = i % 8 * 8;
    *byte_word(n, i / 8) = shift == 0 ? byte
                                      : (bytes_before & ((std::uint64_t{1} << shift) - 1)) |
                                            std::uint64_t{byte} << shift;
    *child_at(n, h, i) = child;
  }
  // Makes a node with two entries. An entry without a next byte (-1) becomes the own record.
  node* make_fork(std::string_view path, int byte, std::uint64_t one, int other_byte,
                  std::uint64_t other) {
    STELE_ASSERT(byte >= 0 || other_byte >= 0);  // kv.md: a node has one own record at most
    const std::uint64_t own = byte < 0 ? one : other_byte < 0 ? other : 0;
    head h{0, 0, static_cast<std::uint32_t>(path.size())};
    const head whole{0, static_cast<std::uint16_t>(own == 0 ? 2 : 1), h.skip};
    node* const n = make_node(whole, path_of(path), own);
    std::uint64_t bytes = 0;
    for (const auto& [b, child] : {std::pair(byte, one), std::pair(other_byte, other)}) {
      if (b < 0) continue;
      store_child(n, h, bytes, static_cast<unsigned>(b), child);
      bytes = static_cast<unsigned>(b);
      ++h.count;
    }
    STELE_ASSERT(h.count == whole.count);
    return n;
  }
  static int byte_at(std::string_view key, std::size_t at) {
    return at < key.size() ? static_cast<unsigned char>(key[at]) : -1;
  }

  void split_records(const position& s, std::string_view key, char* block) {
    const std::uint64_t there = s.at->load();
    const record other(block_at(there));
    const auto lengths = other.lengths();
    const std::size_t end = s.depth + other.common_prefix(lengths, key, s.depth);
    if (end == key.size() && end == lengths.key_bytes)
      throw_corrupt_store("the ordered index has a key that the hash index lacks");
    char byte = 0;
    if (end < lengths.key_bytes) other.load_key(end, &byte, 1);
    const int other_byte = end < lengths.key_bytes ? static_cast<unsigned char>(byte) : -1;
    *s.at = node_word(make_fork(key.substr(s.depth, end - s.depth), other_byte, there,
                                byte_at(key, end), record_word(block)));
  }
  void split_path(const position& s, std::string_view key, char* block) {
    // Position of the byte in which the key and the path differ.
    const std::size_t from = s.depth + s.same;
    char bytes[1 + path_bytes] = {};
    const std::size_t left = s.m.h.skip - s.same;
    STELE_ASSERT(s.what == position::in_path && s.same < s.m.h.skip);
    if (s.m.h.skip > path_bytes) {
      any_descendant(node_word(s.n)).load_key(from, bytes, std::min(left, sizeof bytes));
    } else {
      for (std::size_t i = 0; i < left; ++i)
        bytes[i] = static_cast<char>(s.m.path() >> 8 * (s.same + i));
    }
    head h = s.m.h;
    h.skip = static_cast<std::uint32_t>(left - 1);
    s.n->head = h.pack();
    s.n->path = path_of({bytes + 1, std::min<std::size_t>(left - 1, path_bytes)});
    const int diverging_byte = static_cast<unsigned char>(bytes[0]);
    *s.at = node_word(make_fork(key.substr(s.depth, s.same), diverging_byte, node_word(s.n),
                                byte_at(key, from), record_word(block)));
  }
  void add_child(const position& s, unsigned byte, std::uint64_t child) {
    const head before = s.m.h;
    if (before.count == kinds[before.kind].children) {
      if (before.kind == full_kind)
        throw_corrupt_store("a node of the ordered index counts children that it does not have");
      node* const larger = resize_node(s.n, s.m, static_cast<std::uint8_t>(before.kind + 1));
      *s.above = node_word(larger);
      position there = s;
      there.n = larger;
      there.m = load(larger);
      return add_child(there, byte, child);
    }
    const std::uint64_t bytes =
        before.kind == full_kind ? 0 : bytes_of(s.n, s.m, before.count / 8u);
    store_child(s.n, before, bytes, byte, child);
    head h = before;
    ++h.count;
    s.n->head = h.pack();
  }
  // Copies the node to another kind and frees the old one.
  node* resize_node(node* n, const node_copy& m, std::uint8_t kind) {
    STELE_ASSERT(kind != m.h.kind && m.h.count <= kinds[kind].children);
    head h{kind, 0, m.h.skip};
    node* const other = make_node({kind, m.h.count, m.h.skip}, m.path(), m.own_record());
    std::uint64_t bytes = 0;
    for_each_child(n, m, [&](unsigned byte, std::uint64_t child) {
      if (h.count == kinds[kind].children)
        throw_corrupt_store("a node of the ordered index has more children than it counts");
      store_child(other, h, bytes, byte, child);
      bytes = h.count % 8u == 0 ? byte : bytes | std::uint64_t{byte} << h.count % 8u * 8;
      ++h.count;
    });
    Memory::deallocate(n);
    return other;
  }
  // Removes a child; the last child takes its place.
  void remove_child(node* n, word* child) {
    const node_copy m = load(n);
    head h = m.h;
    if (h.count-- == 0)
      throw_corrupt_store("a node of the ordered index has more children than it counts");
    n->head = h.pack();
    if (h.kind == full_kind) {
      *child = 0;
      return;
    }
    const auto i = static_cast<unsigned>(child - child_at(n, m.h, 0));
    STELE_ASSERT(i <= h.count);  // it was one of the children
    if (i == h.count) return;
    const std::uint64_t byte = bytes_of(n, m, h.count / 8u) >> h.count % 8u * 8 & 255;
    const unsigned shift = i % 8 * 8;
    *byte_word(n, i / 8) = (bytes_of(n, m, i / 8) & ~(std::uint64_t{255} << shift)) | byte << shift;
    *child = child_at(n, m.h, h.count)->load();
  }
  static bool should_shrink(head h) {
    return h.kind != 0 && h.count <= kinds[h.kind - 1].children * 3 / 4;
  }

  // Called after an entry of n was removed; *at refers to n.
  void shrink_or_collapse(node* n, word* at) {
    const node_copy m = load(n);
    if (m.entries() == 1) {
      *at = m.own_record() != 0 ? m.own_record() : merge_into_child(n, m);
      return Memory::deallocate(n);
    }
    if (should_shrink(m.h))
      *at = node_word(resize_node(n, m, static_cast<std::uint8_t>(m.h.kind - 1)));
  }
  // Returns the only child of n; its path now starts with that of n.
  std::uint64_t merge_into_child(node* n, const node_copy& m) {
    STELE_ASSERT(m.entries() == 1 && m.own_record() == 0);
    std::uint64_t ref = 0;
    unsigned byte = 0;
    for_each_child(n, m, [&](unsigned b, std::uint64_t child) { byte = b, ref = child; });
    if (ref == 0) throw_corrupt_store("a node of the ordered index leads nowhere");
    if (is_record(ref)) return ref;
    node* const child = node_at(ref);
    const node_copy c = load(child);
    head h = c.h;
    h.skip += m.h.skip + 1;
    child->head = h.pack();
    std::uint64_t path = m.path();
    if (m.h.skip < path_bytes) path |= std::uint64_t{byte} << 8 * m.h.skip;
    if (m.h.skip + 1 < path_bytes) path |= c.path() << 8 * (m.h.skip + 1);
    child->path = path;
    return ref;
  }

  word root_;  // a reference: a node, a record, or none
};

}  // namespace stele::detail

#include <containers/kv_walk.h>
