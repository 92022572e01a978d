// The workloads sps and rbtree on plain structs in atomic blocks; see structures.h.
#include <bench/itm/structures.h>

#include <stele/itm.h>

#define SAFE [[gnu::transaction_safe]] static

namespace stele::bench::itm {

// sps.

void make_words(root* r, std::uint64_t size) {
  __transaction_atomic {
    r->words = stele::itm::make_array<std::uint64_t>(size);
    r->size = size;
  }
}

[[gnu::transaction_pure]] static std::uint64_t ask(std::uint64_t (*word)(const void*,
                                                                         std::uint64_t),
                                                   const void* context, std::uint64_t i) {
  return word(context, i);
}

void fill_words(root* r, std::uint64_t from, std::uint64_t to,
                std::uint64_t (*word)(const void*, std::uint64_t), const void* context) {
  __transaction_atomic {
    for (std::uint64_t i = from; i < to; ++i) r->words[i] = ask(word, context, i);
  }
}

void swap_words(root* r, std::uint64_t a, std::uint64_t b) {
  __transaction_atomic {
    std::uint64_t* const words = r->words;
    const std::uint64_t first = words[a], second = words[b];
    words[a] = second;
    words[b] = first;
  }
}

std::uint64_t word_at(const root* r, std::uint64_t i) {
  std::uint64_t word;
  __transaction_atomic {
    word = r->words[i];
  }
  return word;
}

// rbtree.

namespace {

struct step {
  std::uintptr_t* at;  // the link that was followed
  node* to;            // the node that it points to
  bool red;
};

struct path {
  step steps[96];
  std::size_t last;
  bool found;
};

}  // namespace

SAFE node* target(std::uintptr_t link) {
  return reinterpret_cast<node*>(link & ~std::uintptr_t{1});
}
SAFE bool is_red(std::uintptr_t link) {
  return (link & 1) != 0;
}
SAFE std::uintptr_t link_to(node* n, bool red) {
  return reinterpret_cast<std::uintptr_t>(n) | static_cast<std::uintptr_t>(n != nullptr && red);
}

SAFE void find_path(root* r, std::uint64_t key, path& p) {
  std::uintptr_t* at = &r->tree;
  for (p.last = 0;; ++p.last) {
    const std::uintptr_t link = *at;
    node* const n = target(link);
    p.steps[p.last] = {at, n, is_red(link)};
    p.found = n != nullptr;
    if (!p.found) return;
    const std::uint64_t k = n->key;
    if (k == key) return;
    at = &n->child[key > k];
  }
}

SAFE void rotate(std::uintptr_t& top, node* n, std::size_t side, bool top_red, bool below_red) {
  node* const child = target(n->child[side]);
  n->child[side] = child->child[1 - side];
  child->child[1 - side] = link_to(n, below_red);
  top = link_to(child, top_red);
}

SAFE void rotate_double(std::uintptr_t& top, node* n, std::size_t side, bool top_red,
                        bool below_red) {
  node* const child = target(n->child[side]);
  node* const inner = target(child->child[1 - side]);
  child->child[1 - side] = inner->child[side];
  n->child[side] = inner->child[1 - side];
  inner->child[side] = link_to(child, below_red);
  inner->child[1 - side] = link_to(n, below_red);
  top = link_to(inner, top_red);
}

SAFE void fix_double_red(path& p, std::size_t i) {
  for (; i >= 2 && p.steps[i - 1].red; i -= 2) {
    step& top = p.steps[i - 2];
    node* const grandparent = top.to;
    node* const parent = p.steps[i - 1].to;
    const std::size_t side = p.steps[i - 1].at == &grandparent->child[1];
    const std::uintptr_t uncle = grandparent->child[1 - side];
    if (!is_red(uncle)) {
      if (p.steps[i].at == &parent->child[side])
        return rotate(*top.at, grandparent, side, false, true);
      return rotate_double(*top.at, grandparent, side, false, true);
    }
    grandparent->child[side] = link_to(parent, false);
    grandparent->child[1 - side] = link_to(target(uncle), false);
    if (i == 2) return;
    *top.at = link_to(grandparent, true);
    top.red = true;
  }
}

SAFE void insert(path& p, std::uint64_t key, std::uint64_t value) {
  node* const n = stele::itm::make<node>();
  n->key = key;
  n->value = value;
  step& place = p.steps[p.last];
  place.to = n;
  place.red = p.last != 0;
  *place.at = link_to(n, place.red);
  fix_double_red(p, p.last);
}

SAFE std::size_t extend_to_successor(path& p, std::uintptr_t greater) {
  std::size_t i = p.last + 1;
  p.steps[i] = {&p.steps[p.last].to->child[1], target(greater), is_red(greater)};
  for (;;) {
    std::uintptr_t* const left = &p.steps[i].to->child[0];
    const std::uintptr_t t = *left;
    if (t == 0) return i;
    p.steps[++i] = {left, target(t), is_red(t)};
  }
}

SAFE void replace_by_successor(path& p, std::size_t successor, std::uintptr_t lesser,
                               std::uintptr_t greater) {
  step& place = p.steps[p.last];
  node* const n = p.steps[successor].to;
  if (successor != p.last + 1) n->child[1] = greater;
  n->child[0] = lesser;
  *place.at = link_to(n, place.red);
  place.to = n;
  p.steps[p.last + 1].at = &n->child[1];
}

SAFE void fix_missing_black(path& p, std::size_t i) {
  while (i > 0) {
    step& top = p.steps[i - 1];
    node* const parent = top.to;
    const std::size_t side = p.steps[i].at == &parent->child[0];
    const std::uintptr_t sibling_link = parent->child[side];
    node* const sibling = target(sibling_link);
    if (is_red(sibling_link)) {
      rotate(*top.at, parent, side, false, true);
      top.to = sibling;
      p.steps[i + 1].at = p.steps[i].at;
      p.steps[i] = {&sibling->child[1 - side], parent, true};
      ++i;
      continue;
    }
    const std::uintptr_t outer = sibling->child[side];
    if (is_red(outer)) {
      rotate(*top.at, parent, side, top.red, false);
      sibling->child[side] = link_to(target(outer), false);
      return;
    }
    if (is_red(sibling->child[1 - side]))
      return rotate_double(*top.at, parent, side, top.red, false);
    parent->child[side] = link_to(sibling, true);
    if (top.red) {
      *top.at = link_to(parent, false);
      return;
    }
    --i;
  }
}

SAFE void erase(path& p) {
  node* const gone = p.steps[p.last].to;
  const std::uintptr_t lesser = gone->child[0], greater = gone->child[1];
  const bool two = lesser != 0 && greater != 0;
  const std::size_t end = two ? extend_to_successor(p, greater) : p.last;
  const std::uintptr_t rest = two ? p.steps[end].to->child[1] : lesser != 0 ? lesser : greater;
  if (two) replace_by_successor(p, end, lesser, greater);
  const bool in_place = end == p.last + 1 && !is_red(rest);
  if (!in_place) *p.steps[end].at = link_to(target(rest), false);
  if (!p.steps[end].red && !is_red(rest)) fix_missing_black(p, end);
  stele::itm::destroy(gone);
}

// A separate function: the compiler treats variables of the function that contains the block as
// shared memory, and logs and locks them.
[[gnu::noinline]] SAFE void toggle_now(root* r, std::uint64_t key, std::uint64_t value) {
  path p;
  find_path(r, key, p);
  if (p.found)
    erase(p);
  else
    insert(p, key, value);
}

void toggle(root* r, std::uint64_t key, std::uint64_t value) {
  __transaction_atomic {
    toggle_now(r, key, value);
  }
}

std::uint64_t find(const root* r, std::uint64_t key) {
  std::uint64_t value = 0;
  __transaction_atomic {
    for (const node* n = target(r->tree); n != nullptr;) {
      const std::uint64_t k = n->key;
      if (k == key) {
        value = n->value;
        break;
      }
      n = target(n->child[key > k]);
    }
  }
  return value;
}

namespace {

struct check_state {
  std::uint64_t nodes, before, black_height;
  bool any, sound;
};

}  // namespace

SAFE void check_subtree(std::uintptr_t link, check_state& s) {
  node* const n = target(link);
  s.black_height = 0;
  if (n == nullptr) return;
  if (is_red(link) && (is_red(n->child[0]) || is_red(n->child[1]))) s.sound = false;
  check_subtree(n->child[0], s);
  const std::uint64_t left = s.black_height;
  if (s.any && n->key <= s.before) s.sound = false;
  s.any = true;
  s.before = n->key;
  ++s.nodes;
  check_subtree(n->child[1], s);
  if (left != s.black_height) s.sound = false;
  s.black_height = left + !is_red(link);
}

std::uint64_t count_nodes(const root* r) {
  check_state s = {0, 0, 0, false, true};
  __transaction_atomic {
    check_subtree(r->tree, s);
  }
  return s.sound ? s.nodes : ~std::uint64_t{0};
}

}  // namespace stele::bench::itm
