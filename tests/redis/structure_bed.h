// A pool with one structure of the Redis adapter, for tests of it beside a model.
#pragma once

#include <base/rng.h>
#include <containers/test_bed.h>
#include <gtest/gtest.h>
#include <stele/leaks.h>
#include <tests/budget.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace stele::redis {

inline std::vector<std::string> tested_mechanisms() {
  return stele::testing::known_of({"default", "redo", "undo"});
}

template <class Structure>
struct one_structure {
  using pool_resident = void;
  Structure content;

  void visit_blocks(const block_visitor& visit) const { content.visit_blocks(visit); }
  [[nodiscard]] result<> check() const { return content.check(); }
};

template <class Structure>
class structure_bed {
 public:
  using root = one_structure<Structure>;

  explicit structure_bed(std::string mechanism) : mechanism_(std::move(mechanism)) {
    open();
    empty_bytes_ = used_bytes();
  }

  // Runs the body on the structure in a transaction, and rolls that back if it is not to be kept.
  template <class Body>
  void change(Body&& body, bool kept = true) {
    const auto done = pool_->update([&](root& r) -> result<> {
      body(r.content);
      if (kept) return {};
      return std::unexpected(error{errc::cancelled, "by the test"});
    });
    if (kept) {
      ASSERT_TRUE(done) << done.error().message;
    } else {
      ASSERT_EQ(done.error().code, errc::cancelled) << done.error().message;
    }
  }
  template <class Body>
  void look(Body&& body) const {
    const auto done = pool_->read([&](const root& r) { body(r.content); });
    ASSERT_TRUE(done) << done.error().message;
  }
  void expect_sound() const {
    const auto sound = pool_->read([](const root& r) { return r.check(); });
    ASSERT_TRUE(sound) << sound.error().message;
  }
  // The pool is closed and opened again; its whole content is right, and no block is lost.
  void reopen() {
    pool_.reset();
    open();
    const auto sound = pool_->check();
    ASSERT_TRUE(sound) << sound.error().message;
    const auto found = find_leaks(*pool_);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_TRUE(found->leaked.empty());
    EXPECT_TRUE(found->dangling.empty());
  }

  std::size_t used_bytes() const { return pool_->space().used_bytes; }
  std::size_t empty_bytes() const { return empty_bytes_; }  // used of a new pool
  // Words that a commit with one such change stores, those of the heap included: the mean of 99 %
  // of the commits, without those that store most. With `default` they store nothing else, but for
  // a few that copy what is due at home.
  template <class Change>
  double words_of(Change&& one_change) {
    std::vector<std::uint64_t> words(2000);
    for (std::uint64_t& w : words) {
      const std::uint64_t before = pool_->counters().stored_bytes;
      change(one_change);
      w = (pool_->counters().stored_bytes - before) / 8;
    }
    std::ranges::sort(words);
    words.resize(words.size() * 99 / 100);
    return static_cast<double>(std::accumulate(words.begin(), words.end(), std::uint64_t{0})) /
           static_cast<double>(words.size());
  }

 private:
  void open() {
    auto opened = pool<root>::open(dir_.file("pool"),
                                   {.create_size = std::size_t{64} << 20,
                                    .engine = {.mechanism = mechanism_, .background = false}});
    if (!opened) throw failure(opened.error());
    pool_.emplace(std::move(*opened));
  }

  std::string mechanism_;
  testing::scratch_directory dir_;
  std::optional<pool<root>> pool_;
  std::size_t empty_bytes_ = 0;
};

// A text of up to 60 bytes, now and then of thousands.
inline std::string random_text(base::rng& random) {
  const std::size_t size = random.below(40) == 0 ? random.below(5000) : random.below(60);
  std::string text(size, static_cast<char>('a' + random.below(26)));
  if (size != 0) text[random.below(size)] = static_cast<char>(random.below(256));
  return text;
}

}  // namespace stele::redis
