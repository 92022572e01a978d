// The workloads sps and rbtree as a program with atomic blocks: plain structs, plain pointers, one
// block for each operation.
//
// The tree is the algorithm of stele::map, step by step (include/stele/map.h), so that only the
// access to memory differs. A link is a pointer whose lowest bit is its node's colour.
// structures.cc is compiled with -fgnu-tm.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::bench::itm {

struct node {
  std::uint64_t key;
  std::uintptr_t child[2];  // links: a node's address, plus 1 when it is red; 0: none
  std::uint64_t value;
};

struct root {
  std::uint64_t* words;  // sps
  std::uint64_t size;
  std::uintptr_t tree;  // rbtree: a link
};

void make_words(root* r, std::uint64_t size);
void fill_words(root* r, std::uint64_t from, std::uint64_t to,
                std::uint64_t (*word)(const void*, std::uint64_t), const void* context);
void swap_words(root* r, std::uint64_t a, std::uint64_t b);
std::uint64_t word_at(const root* r, std::uint64_t i);

// Erases the key if it is there, else inserts it.
void toggle(root* r, std::uint64_t key, std::uint64_t value);
std::uint64_t find(const root* r, std::uint64_t key);  // the key's value, or 0
// The number of nodes in the tree; ~0 when order, colours or black heights are wrong.
std::uint64_t count_nodes(const root* r);

}  // namespace stele::bench::itm
