// The structures of the libpmemobj contender: an array, a chained hash map and a red-black tree in a pool of libpmemobj.
//
// Links are 8-byte offsets from the pool's first byte, 0 for none. A change snapshots only the bytes it changes, and each
// range once; fresh nodes are not snapshot. Nothing here locks: see the contender.
#pragma once

#include <bench/contender.h>
#include <bench/value.h>
#include <fmt/format.h>
#include <libpmemobj.h>
#include <stele/element.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <filesystem>

namespace stele::bench::pmdk {

using workloads::operation;
using kind = operation::kind;

inline constexpr std::uint64_t lanes_bytes = 1024 * 3 * 1024;  // its logs: 1024 lanes of 3 KiB

inline error failed(std::string_view what) {
  return {errc::io, fmt::format("libpmemobj: {} failed: {}", what, pmemobj_errormsg())};
}

// A pool file of its own, removed at the end. Offsets count from the pool's first byte; 0 is null.
class pmem_pool {
 public:
  static result<std::unique_ptr<pmem_pool>> create(const std::string& path, std::size_t size) {
    int on = 1, off = 0;
    pmemobj_ctl_set(nullptr, "prefault.at_create", &on);
    pmemobj_ctl_set(nullptr, "sds.at_create", &off);
    PMEMobjpool* pop = pmemobj_create(path.c_str(), "stele-comparison", std::max<std::size_t>(size, PMEMOBJ_MIN_POOL), 0600);
    if (pop == nullptr) return std::unexpected(failed(fmt::format("creating {}", path)));
    auto pool = std::unique_ptr<pmem_pool>(new pmem_pool(pop, path));
    pool->uuid_ = pmemobj_root(pop, 64).pool_uuid_lo;
    return pool;
  }
  ~pmem_pool() {
    pmemobj_close(pop_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  PMEMobjpool* handle() const noexcept { return pop_; }
  template <class T>
  T* at(std::uint64_t offset) const noexcept {
    return offset == 0 ? nullptr : reinterpret_cast<T*>(base_ + offset);
  }
  std::uint64_t offset_of(const void* p) const noexcept {
    return p == nullptr ? 0 : static_cast<std::uint64_t>(static_cast<const char*>(p) - base_);
  }
  PMEMoid oid(const void* p) const noexcept { return {uuid_, offset_of(p)}; }

  // Outside transactions: zeroed memory for an array, kept until the pool goes.
  result<void*> array(std::size_t size) {
    PMEMoid where;
    if (pmemobj_zalloc(pop_, &where, size, 0) != 0) return std::unexpected(failed("allocating the structure's array"));
    return at<void>(where.off);
  }
  // The flag that allocates from a class of blocks of exactly `size` bytes.
  result<std::uint64_t> allocation_class(std::size_t size) {
    pobj_alloc_class_desc c{};
    c.unit_size = size;
    c.alignment = size % 64 == 0 ? 64 : 0;
    c.units_per_block = 1024;
    c.header_type = POBJ_HEADER_NONE;
    if (pmemobj_ctl_set(pop_, "heap.alloc_class.new.desc", &c) != 0)
      return std::unexpected(failed("adding an allocation class"));
    return POBJ_CLASS_ID(c.class_id);
  }

 private:
  pmem_pool(PMEMobjpool* pop, std::string path) : pop_(pop), path_(std::move(path)), base_(reinterpret_cast<char*>(pop)) {}
  PMEMobjpool* pop_;
  std::string path_;
  char* base_;
  std::uint64_t uuid_ = 0;
};

// Runs body() in a transaction of libpmemobj; body returns false when a call in it has aborted the transaction.
template <class Body>
result<> transact(PMEMobjpool* pop, Body&& body) {
  if (pmemobj_tx_begin(pop, nullptr, TX_PARAM_NONE) != 0) return std::unexpected(failed("pmemobj_tx_begin"));
  if (body()) pmemobj_tx_commit();
  return pmemobj_tx_end() == 0 ? result<>{} : std::unexpected(failed("the transaction"));
}

inline bool snapshot(const void* at, std::size_t size) {
  return pmemobj_tx_add_range_direct(at, size) == 0;
}

// One structure in the pool. change() runs inside a transaction and is false when that has aborted.
class structure {
 public:
  explicit structure(pmem_pool& pool, const task& t)
      : pool_(pool), value_size_(t.parameters.value_size), keys_(t.parameters.keys) {}
  virtual ~structure() = default;
  virtual result<> fill(const workloads::parameters& p) = 0;
  virtual bool change(const operation& op) = 0;
  virtual void read(const operation& op) = 0;
  virtual std::uint64_t space_bytes() const = 0;
  virtual bool sound() = 0;

 protected:
  pmem_pool& pool_;
  const std::size_t value_size_;
  const std::size_t keys_;
};

class array_of_elements final : public structure {
 public:
  using structure::structure;
  result<> fill(const workloads::parameters&) override {
    const auto memory = pool_.array(keys_ * value_size_);
    if (!memory) return std::unexpected(memory.error());
    elements_ = static_cast<std::byte*>(*memory);
    for (std::size_t i = 0; i < keys_; ++i) write_value(element(i), value_size_, i);
    pmemobj_persist(pool_.handle(), elements_, keys_ * value_size_);
    return {};
  }
  bool change(const operation& op) override {
    std::byte *a = element(op.a), *b = element(op.b);
    if (!snapshot(a, value_size_) || !snapshot(b, value_size_)) return false;
    std::swap_ranges(a, a + value_size_, b);
    return true;
  }
  void read(const operation& op) override { consume_value(element(op.a), value_size_); }
  std::uint64_t space_bytes() const override { return keys_ * value_size_ + lanes_bytes; }
  bool sound() override {  // a permutation of what fill() wrote
    std::vector<std::uint64_t> firsts(keys_), expected(keys_);
    for (std::size_t i = 0; i < keys_; ++i) {
      std::memcpy(&firsts[i], element(i), sizeof firsts[i]);
      write_value(&expected[i], sizeof expected[i], i);
    }
    std::ranges::sort(firsts);
    std::ranges::sort(expected);
    return firsts == expected;
  }

 private:
  std::byte* element(std::size_t i) const noexcept { return elements_ + i * value_size_; }
  std::byte* elements_ = nullptr;
};

// What both maps do: nodes of a header and a value, filled with every second key on average.
template <class Node>
class map_of_nodes : public structure {
 public:
  using structure::structure;
  result<> fill(const workloads::parameters& p) override {
    const auto made = pool_.allocation_class(node_size());
    if (!made) return std::unexpected(made.error());
    class_ = *made;
    return fill_half(p, [this](std::uint64_t key, std::uint64_t seed) {
      return transact(pool_.handle(), [&] { return change({kind::put, key, seed}); });
    });
  }
  bool change(const operation& op) final {
    begin_change();
    Node* found = find(op.a);
    if (found == nullptr) return op.what == kind::erase || insert(op.a, op.b);
    if (op.what == kind::put) return overwrite(found, op.b);
    --count_;
    return unlink(found) && pmemobj_tx_free(pool_.oid(found)) == 0;
  }
  void read(const operation& op) final {
    if (const Node* found = find(op.a)) consume_value(found + 1, value_size_);
  }
  bool sound() final {
    std::size_t nodes = 0;
    for (std::uint64_t key = 0; key < keys_; ++key)
      if (const Node* found = find(key)) nodes += found->key == key;
    return nodes == count_.load() && links_hold();
  }

 protected:
  std::size_t node_size() const noexcept { return sizeof(Node) + value_size_; }
  std::uint64_t nodes_bytes() const noexcept { return count_.load() * node_size() + lanes_bytes; }
  virtual void begin_change() {}
  virtual Node* find(std::uint64_t key) = 0;  // and remembers the place for insert
  virtual bool link(Node* fresh) = 0;
  virtual bool unlink(Node* found) = 0;
  virtual bool links_hold() { return true; }

 private:
  bool insert(std::uint64_t key, std::uint64_t seed) {
    auto* fresh = pool_.at<Node>(pmemobj_tx_xalloc(node_size(), 0, class_).off);
    if (fresh == nullptr) return false;
    fresh->key = key;
    write_value(fresh + 1, value_size_, seed);
    ++count_;
    return link(fresh);
  }
  bool overwrite(Node* found, std::uint64_t seed) {
    if (!snapshot(found + 1, value_size_)) return false;
    write_value(found + 1, value_size_, seed);
    return true;
  }

  std::uint64_t class_ = 0;
  std::atomic<std::uint64_t> count_{0};
};

struct chained_node {
  std::uint64_t key, next;
};

// One bucket a key of the key space, so chains are half a node long on average.
class chained_map final : public map_of_nodes<chained_node> {
 public:
  using map_of_nodes::map_of_nodes;
  result<> fill(const workloads::parameters& p) override {
    const auto memory = pool_.array((mask_ + 1) * sizeof(std::uint64_t));
    if (!memory) return std::unexpected(memory.error());
    buckets_ = static_cast<std::uint64_t*>(*memory);
    return map_of_nodes::fill(p);
  }
  std::uint64_t space_bytes() const override { return nodes_bytes() + (mask_ + 1) * sizeof(std::uint64_t); }

 private:
  chained_node* find(std::uint64_t key) override {
    link_ = &buckets_[detail::hash_word(key) & mask_];
    chained_node* n = pool_.at<chained_node>(*link_);
    while (n != nullptr && n->key != key) {
      link_ = &n->next;
      n = pool_.at<chained_node>(*link_);
    }
    return n;
  }
  bool link(chained_node* fresh) override {
    fresh->next = 0;
    return set_link(pool_.offset_of(fresh));
  }
  bool unlink(chained_node* found) override { return set_link(found->next); }
  bool set_link(std::uint64_t target) {
    if (!snapshot(link_, sizeof *link_)) return false;
    *link_ = target;
    return true;
  }

  const std::uint64_t mask_ = std::bit_ceil(keys_) - 1;
  std::uint64_t* buckets_ = nullptr;
  static inline thread_local std::uint64_t* link_ = nullptr;  // the word that leads to what find() looked for
};

struct tree_node {
  std::uint64_t key;
  std::uint64_t up;  // the parent's offset, lowest bit set when this node is red
  std::array<std::uint64_t, 2> child;
};

// A red-black tree after Cormen et al. with null leaves. A node's links are snapshot together, once a transaction.
class red_black_map final : public map_of_nodes<tree_node> {
 public:
  using map_of_nodes::map_of_nodes;
  result<> fill(const workloads::parameters& p) override {
    const auto memory = pool_.array(sizeof(std::uint64_t));
    if (!memory) return std::unexpected(memory.error());
    root_ = static_cast<std::uint64_t*>(*memory);
    return map_of_nodes::fill(p);
  }
  std::uint64_t space_bytes() const override { return nodes_bytes(); }

 private:
  using node = tree_node;

  node* at(std::uint64_t offset) const noexcept { return pool_.at<node>(offset); }
  node* child(const node* n, bool side) const noexcept { return at(n->child[side]); }
  node* parent(const node* n) const noexcept { return at(n->up & ~std::uint64_t{1}); }
  static bool red(const node* n) noexcept { return n != nullptr && (n->up & 1) != 0; }

  // Every change of links passes here: the first of a transaction to a node takes the snapshot.
  node* touched(node* n) {
    if (std::ranges::find(touched_, n) == touched_.end()) {
      ok_ = ok_ && snapshot(&n->up, sizeof(node) - offsetof(node, up));
      touched_.push_back(n);
    }
    return n;
  }
  void set_child(node* n, bool side, const node* c) { touched(n)->child[side] = pool_.offset_of(c); }
  void set_parent(node* n, const node* p) {
    if (n != nullptr && parent(n) != p) touched(n)->up = pool_.offset_of(p) | (n->up & 1);
  }
  void set_red(node* n, bool is_red) {
    if (red(n) != is_red) touched(n)->up ^= 1;
  }
  void set_root(const node* n) {
    ok_ = ok_ && snapshot(root_, sizeof *root_);
    *root_ = pool_.offset_of(n);
  }

  void begin_change() override { touched_.clear(); }

  node* find(std::uint64_t key) override {
    node* n = at(*root_);
    place_ = nullptr;
    while (n != nullptr && n->key != key) {
      place_ = n;
      n = child(n, n->key < key);
    }
    return n;
  }

  bool links_hold() override { return black_height(at(*root_)) >= 0; }
  // Of the nodes below n, n included; -1 when a rule is broken there.
  int black_height(const node* n) const {
    if (n == nullptr) return 0;
    const node *left = child(n, false), *right = child(n, true);
    for (const node* c : {left, right})
      if (c != nullptr && (parent(c) != n || (red(n) && red(c)) || (c->key < n->key) != (c == left))) return -1;
    const int height = black_height(left);
    return height < 0 || height != black_height(right) ? -1 : height + !red(n);
  }

  void put_in_place_of(node* p, node* old, node* n) {
    if (p == nullptr)
      set_root(n);
    else
      set_child(p, child(p, true) == old, n);
    set_parent(n, p);
  }

  void rotate(node* n, bool side) {  // n goes down to `side`
    node* up = child(n, !side);
    node* inner = child(up, side);
    set_child(n, !side, inner);
    set_parent(inner, n);
    put_in_place_of(parent(n), n, up);
    set_child(up, side, n);
    set_parent(n, up);
  }

  bool link(node* fresh) override {
    node* p = place_;
    touched_.push_back(fresh);  // new in this transaction, needs no snapshot
    fresh->up = pool_.offset_of(p) | 1;
    fresh->child = {0, 0};
    ok_ = true;
    if (p == nullptr)
      set_root(fresh);
    else
      set_child(p, p->key < fresh->key, fresh);
    balance_inserted(fresh);
    return ok_;
  }

  void balance_inserted(node* n) {
    for (node* p = parent(n); red(p); p = parent(n)) {
      node* top = parent(p);
      const bool side = child(top, true) == p;
      node* uncle = child(top, !side);
      if (red(uncle)) {
        set_red(p, false);
        set_red(uncle, false);
        set_red(top, true);
        n = top;
        continue;
      }
      if (child(p, !side) == n) {
        rotate(p, side);
        p = n;
      }
      set_red(p, false);
      set_red(top, true);
      rotate(top, !side);
      break;
    }
    set_red(at(*root_), false);
  }

  bool unlink(node* found) override {
    ok_ = true;
    const bool inner = found->child[0] != 0 && found->child[1] != 0;
    node* gone = inner ? leftmost(child(found, true)) : found;  // the node whose place closes
    node* filler = child(gone, gone->child[0] == 0);
    node* above = parent(gone);
    const bool lost_black = !red(gone);
    put_in_place_of(above, gone, filler);
    if (inner) {
      if (above == found) above = gone;
      take_over(gone, found);
    }
    if (lost_black) balance_erased(filler, above);
    return ok_;
  }

  node* leftmost(node* n) const noexcept {
    while (n->child[0] != 0) n = child(n, false);
    return n;
  }

  void take_over(node* n, node* found) {
    put_in_place_of(parent(found), found, n);
    for (const bool side : {false, true}) {
      set_child(n, side, child(found, side));
      set_parent(child(found, side), n);
    }
    set_red(n, red(found));
  }

  void balance_erased(node* n, node* p) {  // n, or its empty place under p, is a black short
    while (p != nullptr && !red(n)) {
      const bool side = child(p, false) != n;
      node* sibling = child(p, !side);
      if (red(sibling)) {
        set_red(sibling, false);
        set_red(p, true);
        rotate(p, side);
        sibling = child(p, !side);
      }
      if (!red(child(sibling, false)) && !red(child(sibling, true))) {
        set_red(sibling, true);
        n = p;
        p = parent(n);
        continue;
      }
      if (!red(child(sibling, !side))) {
        set_red(child(sibling, side), false);
        set_red(sibling, true);
        rotate(sibling, !side);
        sibling = child(p, !side);
      }
      set_red(sibling, red(p));
      set_red(p, false);
      set_red(child(sibling, !side), false);
      rotate(p, side);
      return;
    }
    if (n != nullptr) set_red(n, false);
  }

  std::uint64_t* root_ = nullptr;
  node* place_ = nullptr;  // the last node on the way to a key that find() did not find
  std::vector<node*> touched_;
  bool ok_ = true;
};

}  // namespace stele::bench::pmdk
