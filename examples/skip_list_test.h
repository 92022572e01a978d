// The skip list and its model, for the crash explorer: docs/guide/testing.md.
#pragma once

#include <stele/testing.h>

#include <set>
#include <string>

#include "skip_list.h"

template <class List>
struct basic_skip_list_test {
  using root = List;
  using model = std::set<std::uint64_t>;
  struct operation {
    bool insert;
    std::uint64_t key;
  };

  static operation draw(stele::testing::random& r) { return {r.below(3) != 0, r.below(40)}; }

  static void apply(auto& set,
                    const operation& op) {  // a skip list or its model
    if (op.insert)
      set.insert(op.key);
    else
      set.erase(op.key);
  }

  static std::string check(const List& list, const model& should) {
    if (!list.is_sound()) return "the levels are not those of the nodes";
    std::vector<std::uint64_t> keys;
    list.for_each([&](std::uint64_t key) { keys.push_back(key); });
    return stele::testing::compare(keys, should);
  }

  static std::string describe(const operation& op) {
    return (op.insert ? "insert " : "erase ") + std::to_string(op.key);
  }
};

struct skip_list_test : basic_skip_list_test<skip_list> {};
