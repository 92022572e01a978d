// A red-black tree after Cormen et al. with null leaves, for rivals, which keep links each in their
// own way. C++17, for programs of rivals that are compiled as such.
//
// Tree derives from this class and supplies, for its Node: key(n), child(n, side), parent(n),
// red(n) of a node that is not null, top(), and set_child, set_parent, set_red and set_top, which
// this class calls only for a change. Side true is the larger keys' side. Not thread-safe by
// itself.
#pragma once

#include <cstdint>

namespace stele::bench {

template <class Tree, class Node>
class red_black_tree {
 protected:
  struct position {
    Node* found;   // null when there is no such key
    Node* parent;  // the last node before `found`
  };

  position position_of(std::uint64_t key) const {
    position p = {self().top(), nullptr};
    while (p.found != nullptr && self().key(p.found) != key) {
      p.parent = p.found;
      p.found = child(p.found, self().key(p.found) < key);
    }
    return p;
  }

  // Links a fresh node, which is red, has this parent and no children.
  void insert(Node* fresh, Node* parent_of_fresh) {
    if (parent_of_fresh == nullptr)
      self().set_top(fresh);
    else
      self().set_child(parent_of_fresh, self().key(parent_of_fresh) < self().key(fresh), fresh);
    balance_inserted(fresh);
  }

  void erase(Node* found) {
    const bool inner = child(found, false) != nullptr && child(found, true) != nullptr;
    // the node whose place in the tree is removed
    Node* gone = inner ? leftmost(child(found, true)) : found;
    Node* filler = child(gone, child(gone, false) == nullptr);
    Node* above = parent(gone);
    const bool lost_black = !red(gone);
    transplant(above, gone, filler);
    if (inner) {
      if (above == found) above = gone;
      replace_node(gone, found);
    }
    if (lost_black) balance_erased(filler, above);
  }

  // Whether keys, colours and parents are as they must be.
  bool is_valid() const { return black_height(self().top()) >= 0; }

 private:
  Tree& self() { return static_cast<Tree&>(*this); }
  const Tree& self() const { return static_cast<const Tree&>(*this); }
  Node* child(const Node* n, bool side) const { return self().child(n, side); }
  Node* parent(const Node* n) const { return self().parent(n); }
  bool red(const Node* n) const { return n != nullptr && self().red(n); }
  void set_parent(Node* n, Node* p) {
    if (n != nullptr && parent(n) != p) self().set_parent(n, p);
  }
  void set_red(Node* n, bool is_red) {
    if (n != nullptr && red(n) != is_red) self().set_red(n, is_red);
  }

  // The black height of n's subtree, n included; -1 when a rule is broken there.
  int black_height(const Node* n) const {
    if (n == nullptr) return 0;
    const Node *left = child(n, false), *right = child(n, true);
    for (const Node* c : {left, right})
      if (c != nullptr &&
          (parent(c) != n || (red(n) && red(c)) || (self().key(c) < self().key(n)) != (c == left)))
        return -1;
    const int height = black_height(left);
    return height < 0 || height != black_height(right) ? -1 : height + !red(n);
  }

  void transplant(Node* p, Node* old, Node* n) {
    if (p == nullptr)
      self().set_top(n);
    else
      self().set_child(p, child(p, true) == old, n);
    set_parent(n, p);
  }

  void rotate(Node* n, bool side) {  // n goes down to `side`
    Node* up = child(n, !side);
    Node* inner = child(up, side);
    self().set_child(n, !side, inner);
    set_parent(inner, n);
    transplant(parent(n), n, up);
    self().set_child(up, side, n);
    set_parent(n, up);
  }

  void balance_inserted(Node* n) {
    for (Node* p = parent(n); red(p); p = parent(n)) {
      Node* above = parent(p);
      const bool side = child(above, true) == p;
      Node* uncle = child(above, !side);
      if (red(uncle)) {
        set_red(p, false);
        set_red(uncle, false);
        set_red(above, true);
        n = above;
        continue;
      }
      if (child(p, !side) == n) {
        rotate(p, side);
        p = n;
      }
      set_red(p, false);
      set_red(above, true);
      rotate(above, !side);
      break;
    }
    set_red(self().top(), false);
  }

  Node* leftmost(Node* n) const {
    while (Node* c = child(n, false)) n = c;
    return n;
  }

  void replace_node(Node* n, Node* found) {
    transplant(parent(found), found, n);
    for (const bool side : {false, true}) {
      self().set_child(n, side, child(found, side));
      set_parent(child(found, side), n);
    }
    set_red(n, red(found));
  }

  void balance_erased(Node* n, Node* p) {  // the subtree of n under p lacks a black node
    while (p != nullptr && !red(n)) {
      const bool side = child(p, false) != n;
      Node* sibling = child(p, !side);
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
};

}  // namespace stele::bench
