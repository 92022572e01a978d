// The structures of the libpmemobj contender: an array, a chained hash map and a red-black tree in
// a pool of libpmemobj.
//
// Links are 8-byte offsets from the pool's first byte, 0 for none. A change snapshots only the
// bytes that it changes, each range once; fresh nodes are not snapshotted. Nothing here locks: see
// the contender.
#pragma once

#include <bench/rivals/libpmemobj_changes.h>
#include <bench/rivals/red_black_tree.h>
#include <bench/value.h>
#include <stele/element.h>
#include <workloads/store.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace stele::bench::pmdk {

using workloads::operation;
using kind = operation::kind;

inline bool reads(const operation& op) {
  return op.what == kind::read;
}

class structure {
 public:
  virtual ~structure() = default;
  [[nodiscard]] virtual result<> fill(const workloads::parameters& p) = 0;
  [[nodiscard]] virtual result<> apply(std::span<const operation> operations) = 0;
  virtual std::uint64_t space_bytes() const = 0;
  virtual bool is_valid() = 0;
};

// A structure that is changed through Changes. change() returns false when a call of libpmemobj has
// failed.
template <class Changes>
class structure_base : public structure {
 public:
  structure_base(pmem_pool& pool, const task& t)
      : pool_(pool),
        changes_(pool),
        value_size_((t.parameters.value_size + 7) / 8 * 8),
        keys_(t.parameters.keys),
        is_store_(t.workload == "store") {}

  [[nodiscard]] result<> apply(std::span<const operation> operations) final {
    if (std::ranges::all_of(operations, reads)) {
      for (const operation& op : operations) read(op);
      return {};
    }
    return changes_.run([&] {
      return std::ranges::all_of(operations, [&](const operation& op) { return apply_one(op); });
    });
  }

 protected:
  virtual bool change(const operation& op) = 0;
  virtual void read(const operation& op) = 0;

  pmem_pool& pool_;
  Changes changes_;
  const std::size_t value_size_;  // rounded up to whole words
  const std::size_t keys_;
  const bool is_store_;  // filled like the workload `store`, else by halves

 private:
  bool apply_one(const operation& op) {
    if (!reads(op)) return change(op);
    read(op);
    return true;
  }
};

template <class Changes>
class array_of_elements final : public structure_base<Changes> {
  using base = structure_base<Changes>;
  using base::changes_, base::keys_, base::pool_, base::value_size_;

 public:
  using base::base;
  [[nodiscard]] result<> fill(const workloads::parameters& p) override {
    const auto memory = pool_.array(keys_ * value_size_);
    if (!memory) return std::unexpected(memory.error());
    elements_ = static_cast<std::byte*>(*memory);
    const workloads::key_space keys(p);
    for (std::size_t i = 0; i < keys_; ++i) {
      fill_with(element(i), value_size_, keys.word_at_start(i));
      words_ ^= mixed_word(element(i));
    }
    pmemobj_persist(pool_.handle(), elements_, keys_ * value_size_);
    return {};
  }
  std::uint64_t space_bytes() const override { return keys_ * value_size_ + lanes_bytes; }
  bool is_valid() override {  // the words that fill() wrote, in some order
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < keys_; ++i) words ^= mixed_word(element(i));
    return words == words_;
  }

 private:
  bool change(const operation& op) override {
    return changes_.swap(element(op.a), element(op.b), value_size_);
  }
  void read(const operation& op) override { read_value(element(op.a), value_size_); }
  std::byte* element(std::size_t i) const noexcept { return elements_ + i * value_size_; }
  static std::uint64_t mixed_word(const std::byte* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return stele::base::mix(word);
  }
  std::byte* elements_ = nullptr;
  std::uint64_t words_ = 0;
};

// Shared by both maps: nodes of a header and a value, filled with every second key on average.
template <class Changes, class Node>
class map_of_nodes : public structure_base<Changes> {
  using base = structure_base<Changes>;

 public:
  using base::base;
  [[nodiscard]] result<> fill(const workloads::parameters& p) override {
    const auto made = pool_.allocation_class(node_size());
    if (!made) return std::unexpected(made.error());
    class_ = *made;
    std::vector<operation> some;
    const auto put_some = [&] {
      const auto puts = std::exchange(some, {});
      return changes_.run([&] {
        return std::ranges::all_of(puts, [&](const operation& op) { return change(op); });
      });
    };
    const auto put = [&](std::uint64_t key, std::uint64_t seed) -> result<> {
      some.push_back({kind::put, key, seed});
      return some.size() < filled_at_once ? result<>{} : put_some();
    };
    const auto filled = is_store_ ? workloads::store::fill(p, put) : fill_half(p, put);
    return filled ? put_some() : filled;
  }
  bool is_valid() final {
    std::size_t nodes = 0;
    for (std::uint64_t key = 0; key < keys_; ++key)
      if (const Node* found = find(key)) nodes += found->key == key;
    return nodes == count_.load() && links_valid();
  }

 protected:
  using base::changes_, base::is_store_, base::keys_, base::pool_, base::value_size_;

  std::size_t node_size() const noexcept { return sizeof(Node) + value_size_; }
  std::uint64_t nodes_bytes() const noexcept { return count_.load() * node_size() + lanes_bytes; }
  virtual void begin_change() {}
  virtual Node* find(std::uint64_t key) = 0;  // remembers the place for link() and unlink()
  virtual bool link(Node* fresh) = 0;
  virtual bool unlink(Node* found) = 0;
  virtual bool links_valid() { return true; }

 private:
  static constexpr std::size_t filled_at_once = 64;  // puts in each transaction that fills

  bool change(const operation& op) final {
    begin_change();
    Node* found = find(op.a);
    if (found == nullptr) return op.what == kind::erase || insert(op.a, op.b);
    if (op.what == kind::put) return overwrite(found, op.b);
    --count_;
    return unlink(found) && changes_.release(found, node_size());
  }
  void read(const operation& op) final {
    if (const Node* found = find(op.a)) read_value(found + 1, value_size_);
  }
  bool insert(std::uint64_t key, std::uint64_t seed) {
    auto* fresh = static_cast<Node*>(changes_.allocate(node_size(), class_));
    if (fresh == nullptr) return false;
    fresh->key = key;
    fill_with(fresh + 1, value_size_, seed);
    ++count_;
    return link(fresh);
  }
  bool overwrite(Node* found, std::uint64_t seed) {
    static thread_local std::vector<std::uint64_t> value;
    value.resize(value_size_ / 8);
    fill_with(value.data(), value_size_, seed);
    return changes_.assign(found + 1, value.data(), value_size_);
  }

  std::uint64_t class_ = 0;
  std::atomic<std::uint64_t> count_{0};
};

struct chained_node {
  std::uint64_t key, next;
};

// One bucket for each key of the key space, so chains have half a node on average.
template <class Changes>
class chained_map final : public map_of_nodes<Changes, chained_node> {
  using base = map_of_nodes<Changes, chained_node>;
  using base::changes_, base::keys_, base::pool_;

 public:
  using base::base;
  [[nodiscard]] result<> fill(const workloads::parameters& p) override {
    const auto memory = pool_.array((mask_ + 1) * sizeof(std::uint64_t));
    if (!memory) return std::unexpected(memory.error());
    buckets_ = static_cast<std::uint64_t*>(*memory);
    return base::fill(p);
  }
  std::uint64_t space_bytes() const override {
    return this->nodes_bytes() + (mask_ + 1) * sizeof(std::uint64_t);
  }

 private:
  chained_node* find(std::uint64_t key) override {
    link_ = &buckets_[detail::hash_word(key) & mask_];
    chained_node* n = target();
    while (n != nullptr && n->key != key) {
      link_ = &n->next;
      n = target();
    }
    return n;
  }
  chained_node* target() const { return pool_.template at<chained_node>(changes_.get(*link_)); }
  bool link(chained_node* fresh) override {
    fresh->next = 0;
    changes_.finish(fresh, this->node_size());
    return changes_.set(*link_, pool_.offset_of(fresh));
  }
  bool unlink(chained_node* found) override {
    return changes_.set(*link_, changes_.get(found->next));
  }

  const std::uint64_t mask_ = std::bit_ceil(base::keys_) - 1;
  std::uint64_t* buckets_ = nullptr;
  static inline thread_local std::uint64_t* link_ = nullptr;  // the link that find() followed last
};

struct tree_node {
  std::uint64_t key;
  std::uint64_t up;  // the parent's offset; lowest bit set when this node is red
  std::array<std::uint64_t, 2> child;
};

// A node's links are snapshotted together, once per transaction.
template <class Changes>
class red_black_map final : public map_of_nodes<Changes, tree_node>,
                            red_black_tree<red_black_map<Changes>, tree_node> {
  using base = map_of_nodes<Changes, tree_node>;
  using tree = red_black_tree<red_black_map<Changes>, tree_node>;
  using base::changes_, base::pool_;
  friend tree;

 public:
  using base::base;
  [[nodiscard]] result<> fill(const workloads::parameters& p) override {
    const auto memory = pool_.array(sizeof(std::uint64_t));
    if (!memory) return std::unexpected(memory.error());
    root_ = static_cast<std::uint64_t*>(*memory);
    return base::fill(p);
  }
  std::uint64_t space_bytes() const override { return this->nodes_bytes(); }

 private:
  using node = tree_node;

  std::uint64_t get(const std::uint64_t& word) const noexcept { return changes_.get(word); }
  node* at(std::uint64_t offset) const noexcept { return pool_.template at<node>(offset); }
  std::uint64_t key(const node* n) const noexcept { return n->key; }
  node* child(const node* n, bool side) const noexcept { return at(get(n->child[side])); }
  node* parent(const node* n) const noexcept { return at(get(n->up) & ~std::uint64_t{1}); }
  bool red(const node* n) const noexcept { return (get(n->up) & 1) != 0; }
  node* top() const noexcept { return at(get(*root_)); }

  // Every change of links passes here: the first change of a node takes the snapshot.
  void store(node* n, std::uint64_t& word, std::uint64_t value) {
    if (std::ranges::find(touched_, n) == touched_.end()) {
      ok_ = ok_ && changes_.snapshot(&n->up, sizeof(node) - offsetof(node, up));
      touched_.push_back(n);
    }
    changes_.set_in_snapshot(word, value);
  }
  void set_child(node* n, bool side, const node* c) {
    store(n, n->child[side], pool_.offset_of(c));
  }
  void set_parent(node* n, const node* p) {
    store(n, n->up, pool_.offset_of(p) | (get(n->up) & 1));
  }
  void set_red(node* n, bool) { store(n, n->up, get(n->up) ^ 1); }
  void set_top(const node* n) { ok_ = ok_ && changes_.set(*root_, pool_.offset_of(n)); }

  void begin_change() override { touched_.clear(); }
  bool links_valid() override { return tree::is_valid(); }

  node* find(std::uint64_t wanted) override {
    const auto where = tree::position_of(wanted);
    insert_parent_ = where.parent;
    return where.found;
  }
  bool link(node* fresh) override {
    touched_.push_back(fresh);  // new in this transaction: needs no snapshot
    fresh->up = pool_.offset_of(insert_parent_) | 1;
    fresh->child = {0, 0};
    changes_.finish(fresh, this->node_size());
    ok_ = true;
    tree::insert(fresh, insert_parent_);
    return ok_;
  }
  bool unlink(node* found) override {
    ok_ = true;
    tree::erase(found);
    return ok_;
  }

  std::uint64_t* root_ = nullptr;
  node* insert_parent_ = nullptr;  // the last node that find() passed
  std::vector<node*> touched_;
  bool ok_ = true;
};

}  // namespace stele::bench::pmdk
