// Members with scores, in the order of (score, bytes of the member): the value of a sorted set.
//
// The members are the items of a hash map, which leads from a member to its score and moves no
// item. A counted B+-tree leads to the items in their order: a leaf has up to 15 scores and
// pointers, an inner node up to 15 children with the first score and item, and the number of items,
// of each. So a rank is found from counts, and a position by comparing scores; only equal scores
// lead to members. A skip list with spans (Pugh, "A Skip List Cookbook", 1990), which Redis has,
// stores a span at each of its levels, log4(n), where the tree stores a count at log11(n); and it
// visits a node for each comparison, where the tree compares within a node.
//
// The entries of a node stay in their slots; one word has their order and number, as in Masstree
// (Mao, Kohler, Morris, "Cache Craftiness for Fast Multicore Key-Value Storage", 2012). So a new
// entry stores itself, that word, and a count on each level. A node is freed when it is empty, and
// joined with its neighbour when both have ten entries at most: no least number is kept (Johnson
// and Shasha, "B-Trees with Inserts and Deletes: Why Free-at-Empty Is Better Than Merge-at-Half",
// 1993). A node that is appended to is split behind its last entry, so ascending scores fill nodes.
//
// Zeroed memory is empty. Call members in a transaction of the pool, changing members in an update.
// Members that may allocate throw failure(errc::full); then the transaction must be rolled back. A
// score is never NaN. -0.0 and 0.0 are the same score. A rank is a position from 0, the lowest.
// O(log n), if nothing else is said.
#pragma once

#include <base/assert.h>
#include <stele/hash_map.h>
#include <stele/string.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stele::redis {

// The order of up to 15 slots, in one word. The low four bits: how many are in use. Above them,
// four bits each: the slots in use in their order, then the free ones.
class slot_order {
 public:
  static constexpr std::size_t slots = 15;

  slot_order() = default;  // none is in use
  explicit slot_order(std::uint64_t word) : word_(word) {}
  std::uint64_t word() const { return word_; }
  std::size_t count() const { return word_ & 15; }
  std::size_t slot(std::size_t position) const {
    STELE_ASSERT(position < slots);
    return word_ >> (4 * position + 4) & 15;
  }
  // Takes a free slot to this position. Requires count() < slots.
  std::size_t insert(std::size_t position) {
    STELE_ASSERT(count() < slots && position <= count());
    const std::size_t taken = slot(count());
    move(count(), position);
    word_ += 1;
    STELE_ASSERT_WHOLE(valid() && slot(position) == taken);
    return taken;
  }
  void erase(std::size_t position) {
    STELE_ASSERT(position < count());
    word_ -= 1;
    move(position, count());
    STELE_ASSERT_WHOLE(valid());
  }
  void keep(std::size_t first) {
    STELE_ASSERT(first <= count());
    word_ = (word_ & ~std::uint64_t{15}) | first;
  }
  bool valid() const;

 private:
  void move(std::size_t from, std::size_t to);
  std::uint64_t word_ = 0xEDCB'A987'6543'2100;
};

class stored_scores {
  using item_map = hash_map<stele::string, double>;
  using item = item_map::value_type;

 public:
  using pool_resident = void;

  stored_scores() noexcept = default;  // leaves the bytes unchanged: zeroed memory is empty
  ~stored_scores() {
    run_destructor([&] { free_tree(); });
  }
  stored_scores(const stored_scores&) = delete;
  stored_scores& operator=(const stored_scores&) = delete;

  [[nodiscard]] std::uint64_t size() const { return size_; }  // O(1)
  // The score of a member. O(1).
  [[nodiscard]] std::optional<double> find(std::string_view member) const;
  // True: the member is new. A score that leaves the member where it is in the order is only
  // stored.
  bool put(std::string_view member, double score);
  bool erase(std::string_view member);  // false: it is not there
  // O(count log n).
  void erase_ranks(std::uint64_t first, std::uint64_t count);
  void clear();  // frees every block

  [[nodiscard]] std::optional<std::uint64_t> rank_of(std::string_view member) const;
  // How many members have a lower score; with `after`, a lower score or this one.
  [[nodiscard]] std::uint64_t rank_of_score(double score, bool after) const;
  // The same of the bytes of members. Requires that all scores are equal.
  [[nodiscard]] std::uint64_t rank_of_member_bytes(std::string_view member, bool after) const;

  // Call f(std::string_view member, double score) on up to `count` members from this rank on, to
  // higher ranks or to lower ones, until it returns false. f must not change the set. A rank that
  // is not there has no members. O(log n + count).
  template <class F>
  void for_each(std::uint64_t first_rank, std::uint64_t count, F&& f) const;
  template <class F>
  void for_each_backwards(std::uint64_t highest_rank, std::uint64_t count, F&& f) const;
  // One step of a walk in portions, between which the set may change: see hash_map::scan, which it
  // is. Calls f(std::string_view member, double score). The walk needs a hash table whose buckets
  // are a power of two, so the map is no word_map. O(1).
  template <class F>
  std::uint64_t scan(std::uint64_t cursor, F&& f) const;

  template <class Visit>
  void visit_blocks(Visit&& visit) const;
  // Errors: corrupt, when the tree is not the order of the members, or a count is wrong; also for
  // content that leads anywhere.
  [[nodiscard]] result<> check() const;
  // The same in a bounded walk that has begun.
  [[nodiscard]] result<> check_in_walk() const;

 private:
  static constexpr std::size_t most_joined = 10;   // entries of two nodes that become one
  static constexpr std::uint64_t max_height = 32;  // no pool has room for more

  // The head of a leaf and of an inner node.
  struct node {
    field<std::uint64_t> order;
  };
  // What a slot has, in ordinary memory: an item, or a child with its first item.
  struct entry {
    double score = 0;
    item* who = nullptr;
    std::uint64_t count = 0;  // of items
    node* child = nullptr;
  };
  struct leaf_slot {
    field<double> score;
    field<item*> who;

    entry load() const { return {score, who, 1, nullptr}; }
    void store(const entry& e) {
      score = e.score;
      who = e.who;
    }
  };
  // The first item of a node's first child is not kept: what is there is never read.
  struct inner_slot {
    leaf_slot first;
    field<std::uint64_t> count;
    field<node*> child;

    entry load() const { return {first.score, first.who, count, child}; }
    void store(const entry& e) {
      first.store(e);
      count = e.count;
      child = e.child;
    }
  };
  template <class Slot>
  struct node_of {
    using pool_resident = void;
    node head;
    Slot slots[slot_order::slots];

    explicit node_of(slot_order o) { set_order(o); }  // leaves the slots unchanged
    slot_order order() const { return slot_order(head.order); }
    void set_order(slot_order o) { head.order = o.word(); }
    std::size_t count() const { return order().count(); }
    Slot& at(std::size_t position) {
      STELE_ASSERT(position < count());
      return slots[order().slot(position)];
    }
    const Slot& at(std::size_t position) const {
      STELE_ASSERT(position < count());
      return slots[order().slot(position)];
    }
  };
  using leaf = node_of<leaf_slot>;
  using inner = node_of<inner_slot>;
  struct place {
    std::size_t position = 0;  // in a node
    std::uint64_t rank = 0;    // in the child there
  };
  struct leaf_place {
    const leaf* at = nullptr;
    std::size_t position = 0;
  };

  static leaf* leaf_of(node* n) { return reinterpret_cast<leaf*>(n); }
  static const leaf* leaf_of(const node* n) { return reinterpret_cast<const leaf*>(n); }
  static inner* inner_of(node* n) { return reinterpret_cast<inner*>(n); }
  static const inner* inner_of(const node* n) { return reinterpret_cast<const inner*>(n); }

  static place child_of(const inner* n, std::uint64_t rank);
  static entry first_of(const node* n, std::uint64_t level);
  template <class Before>
  std::uint64_t count_before(Before&& is_before) const;
  std::uint64_t rank_of_key(double score, std::string_view member) const;
  leaf_place find_rank(std::uint64_t rank) const;

  template <class Node>
  static entry insert_entry(Node* n, std::size_t position, const entry& e);
  template <class Node>
  static entry split(Node* n, std::size_t position, const entry& e);
  static entry insert_below(node* n, std::uint64_t level, std::uint64_t rank, const entry& e);
  void insert_at(std::uint64_t rank, const entry& e);

  template <class Node>
  static bool join(Node* left, Node* right, const entry& right_entry);
  static bool join_children(inner* n, std::uint64_t level, std::size_t position);
  static void erase_below(node* n, std::uint64_t level, std::uint64_t rank);
  void erase_at(std::uint64_t rank);
  void set_score_at(std::uint64_t rank, double score);

  // For assertions. How many items are below a node, by its own slots.
  [[maybe_unused]] static std::uint64_t items_of(const node* n, std::uint64_t level);
  // Whether the entry of this rank is the item's, with its score.
  [[maybe_unused]] bool is_at(std::uint64_t rank, const item* who) const;
  // format/redis.md: entries ascend. Those beside this rank, and the one there.
  [[maybe_unused]] bool ascends_at(std::uint64_t rank) const;
  // format/redis.md: as many entries as members, and a root of levels. Of a large map, without it.
  [[maybe_unused]] bool counts_agree() const;

  static void free_node(node* n, std::uint64_t level);
  static void free_below(node* n, std::uint64_t level);
  void free_tree();
  template <class Visit>
  static void visit_nodes(const node* n, std::uint64_t level, Visit& visit);
  struct walk;
  [[nodiscard]] result<> check_below(const node* n, std::uint64_t level, walk& w) const;
  [[nodiscard]] result<> check_entry(const entry& e, walk& w) const;

  item_map members_;
  field<node*> root_;
  field<std::uint64_t> height_;  // levels of inner nodes
  field<std::uint64_t> size_;
};

template <class F>
void stored_scores::for_each(std::uint64_t first_rank, std::uint64_t count, F&& f) const {
  for (std::uint64_t rank = first_rank; count != 0 && rank < size_;) {
    const leaf_place from = find_rank(rank);
    STELE_ASSERT(from.position < from.at->count());
    for (std::size_t i = from.position; i < from.at->count() && count != 0; ++i, ++rank, --count) {
      const entry e = from.at->at(i).load();
      const std::string member = e.who->first.str();
      if (!f(std::string_view(member), e.who->second.load())) return;
    }
  }
}

template <class F>
void stored_scores::for_each_backwards(std::uint64_t highest_rank, std::uint64_t count,
                                       F&& f) const {
  if (highest_rank >= size_) return;
  for (std::uint64_t ranks = highest_rank + 1; count != 0 && ranks != 0;) {
    const leaf_place from = find_rank(ranks - 1);
    for (std::size_t left = from.position + 1; left != 0 && count != 0; --left, --ranks, --count) {
      const entry e = from.at->at(left - 1).load();
      const std::string member = e.who->first.str();
      if (!f(std::string_view(member), e.who->second.load())) return;
    }
  }
}

template <class F>
std::uint64_t stored_scores::scan(std::uint64_t cursor, F&& f) const {
  return members_.scan(cursor, [&](const stele::string& member, const field<double>& score) {
    const std::string text = member.str();
    f(std::string_view(text), score.load());
  });
}

template <class Visit>
void stored_scores::visit_nodes(const node* n, std::uint64_t level, Visit& visit) {
  visit(static_cast<const void*>(n));
  if (level == 0) return;
  for (std::size_t i = 0; i < inner_of(n)->count(); ++i)
    visit_nodes(inner_of(n)->at(i).child.load(), level - 1, visit);
}

template <class Visit>
void stored_scores::visit_blocks(Visit&& visit) const {
  members_.visit_blocks(visit);
  if (const node* const root = root_) visit_nodes(root, height_, visit);
}

}  // namespace stele::redis
