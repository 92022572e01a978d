// A skip list of numbers in a pool: sorted lists over one another, the higher
// ones with fewer nodes. Source: Pugh, "Skip Lists: A Probabilistic Alternative
// to Balanced Trees" (1990).
//
// A node's height follows from its key, so the list is a function of its
// operations alone.
#pragma once

#include <stele/leaks.h>
#include <stele/pool.h>

#include <bit>
#include <cstdint>

inline constexpr unsigned most_levels = 8;

// Count is field<std::uint64_t>. With stele::plain<std::uint64_t> the list is
// wrong in a way that no kill of the process shows: the kernel keeps such a
// store, and only a power failure loses it.
template <class Count>
class basic_skip_list {
 public:
  using pool_resident = void;

  bool insert(std::uint64_t key) {
    stele::field<node*>* before[most_levels];
    if (const node* at = find(key, before); at != nullptr && at->key == key) return false;
    auto* const n = stele::make<node>();
    n->key = key;
    n->height = height_of(key);
    for (unsigned level = 0; level < n->height; ++level) {
      n->next[level] = before[level]->load();
      *before[level] = n;
    }
    size_ = size_ + 1;
    return true;
  }

  bool erase(std::uint64_t key) {
    stele::field<node*>* before[most_levels];
    node* const n = find(key, before);
    if (n == nullptr || n->key != key) return false;
    for (unsigned level = 0; level < n->height; ++level) *before[level] = n->next[level].load();
    stele::destroy(n);
    size_ = size_ - 1;
    return true;
  }

  std::uint64_t size() const { return size_; }

  template <class Each>
  void for_each(Each&& each) const {
    for (const node* n = head_[0]; n != nullptr; n = n->next[0]) each(n->key.load());
  }

  // Whether each level is sorted and has the nodes that are high enough for it,
  // and no others.
  bool is_sound() const {
    std::uint64_t nodes = 0;
    for (unsigned level = 0; level < most_levels; ++level) {
      const node* high = head_[level];
      for (const node* n = head_[0]; n != nullptr; n = n->next[0]) {
        if (n->next[0] != nullptr && !(n->key < n->next[0]->key)) return false;
        nodes += level == 0;
        if (n->height <= level) continue;
        if (high != n) return false;
        high = n->next[level];
      }
      if (high != nullptr) return false;
    }
    return nodes == size_;
  }

  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    for (const node* n = head_[0]; n != nullptr; n = n->next[0]) visit(n);
  }

 private:
  struct node {
    stele::field<std::uint64_t> key;
    stele::field<std::uint64_t> height;
    stele::field<node*> next[most_levels];
  };

  static unsigned height_of(std::uint64_t key) {
    const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    return 1 + static_cast<unsigned>(std::countl_zero(mixed | 1)) % most_levels;
  }

  // The first node that is not below the key; and on each level the link that
  // leads past it.
  node* find(std::uint64_t key, stele::field<node*>** before) {
    stele::field<node*>* links = head_;
    for (unsigned level = most_levels; level-- > 0;) {
      while (links[level] != nullptr && links[level]->key < key) links = links[level]->next;
      before[level] = &links[level];
    }
    return links[0];
  }

  stele::field<node*> head_[most_levels];
  Count size_;
};

using skip_list = basic_skip_list<stele::field<std::uint64_t>>;
