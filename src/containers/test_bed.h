// Runs the same test body on ordinary memory and on a pool.
//
// bed<Root, Memory> holds one zeroed Root. update() and read() run a body on it (on a pool: as one
// transaction) and throw on an error. The pool's file is in a directory that is removed with the
// bed.
#pragma once

#include <base/scratch_directory.h>
#include <gtest/gtest.h>
#include <stele/coalescing.h>
#include <tx/mechanism/catalog.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stele::testing {

using base::scratch_directory;

// Those of the mechanisms that this program has: one without stele::published has the library's.
inline std::vector<std::string> known_of(std::initializer_list<std::string> names) {
  std::vector<std::string> known;
  for (const std::string& name : names)
    if (detail::find_mechanism(name)) known.push_back(name);
  return known;
}

// The blocks that a container reaches. Fails the test if a block is reached twice.
template <class Container>
std::set<const void*> blocks_of(const Container& c) {
  std::set<const void*> blocks;
  c.visit_blocks(
      [&](const void* b) { EXPECT_TRUE(blocks.insert(b).second) << "a block is reached twice"; });
  return blocks;
}

template <class Root, class Memory>
class bed;

template <class Root>
class bed<Root, plain_memory> {
 public:
  template <class Body>
  auto update(Body&& body) {
    return std::invoke(body, *root_);
  }
  template <class Body>
  auto read(Body&& body) {
    return std::invoke(body, std::as_const(*root_));
  }

 private:
  std::unique_ptr<Root> root_ = std::make_unique<Root>();
};

template <class Root>
class bed<Root, pool_memory> {
 public:
  explicit bed(std::size_t size = std::size_t{64} << 20) : size_(size) { reopen(); }

  template <class Body>
  auto update(Body&& body) {
    return checked(pool_->update(body));
  }
  template <class Body>
  auto read(Body&& body) {
    return checked(pool_->read(body));
  }
  stele::pool<Root>& pool() { return *pool_; }
  void reopen() {
    pool_.reset();
    auto opened = stele::pool<Root>::open(directory_.file("pool"), {.create_size = size_});
    if (!opened) throw std::runtime_error(opened.error().message);
    pool_.emplace(std::move(*opened));
  }

 private:
  template <class R>
  static auto checked(R outcome) {
    if (!outcome) throw std::runtime_error(outcome.error().message);
    if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
  }

  std::size_t size_;
  scratch_directory directory_;
  std::optional<stele::pool<Root>> pool_;
};

template <class Root>
class bed<Root, coalescing_memory> : public bed<Root, pool_memory> {
  using bed<Root, pool_memory>::bed;
};

}  // namespace stele::testing
