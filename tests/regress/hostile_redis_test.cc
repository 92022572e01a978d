// Content of a Redis server's pool that no server writes: it is refused when the pool is opened,
// with a sentence. Each fault once led a read out of the pool, or on without an end, or a store to
// memory of another value. tests/fuzz/redis_target.cc tries many at once.
#include <adapters/redis/keys.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <functional>
#include <map>

namespace stele::redis {
namespace {

using words = field<std::uint64_t>*;
using links = field<void*>*;

// The members of a value by their place, private ones too.
words word_of(void* at, std::size_t offset) {
  return reinterpret_cast<words>(static_cast<std::byte*>(at) + offset);
}
links link_of(void* at, std::size_t offset) {
  return reinterpret_cast<links>(static_cast<std::byte*>(at) + offset);
}
constexpr std::size_t behind_item = sizeof(stored_item);

constexpr std::size_t many = 100;  // elements: several blocks, nodes on two levels

class hostile_redis : public ::testing::Test {
 protected:
  using items = std::map<item_kind, stored_item*>;

  pool<stored_keys> open() {
    auto opened = pool<stored_keys>::open(dir_.file("pool"),
                                          {.create_size = 1 << 20,
                                           .layout = layout_name,
                                           .policy = concurrency::external,
                                           .engine = {.media = "process", .background = false}});
    if (!opened) throw failure(opened.error());
    return std::move(*opened);
  }
  static void end(const error& why) { throw failure(why); }

  // A pool with a value of each kind, in which `damage` then changes something.
  void make(const std::function<void(stored_keys&, items&)>& damage) {
    std::filesystem::remove(dir_.file("pool"));
    auto p = open();
    items all;
    const auto made = p.update([&](stored_keys& root) {
      for (int k = 1; k <= static_cast<int>(item_kinds); ++k) {
        const auto kind = static_cast<item_kind>(k);
        stored_item* const item = all[kind] =
            root.add(static_cast<std::uint64_t>(k - 1), kind,
                     fmt::format("a name of more than 23 bytes, {}", k), 0);
        for (std::size_t i = 0; i < (kind == item_kind::string ? 1 : many); ++i)
          add_element(item, fmt::format("an element of more than 23 bytes, {}", i),
                      kind == item_kind::sorted_set ? std::to_string(i) : std::string(40, 'v'));
      }
    });
    ASSERT_TRUE(made) << made.error().message;
    const auto damaged = p.update([&](stored_keys& root) { damage(root, all); });
    ASSERT_TRUE(damaged) << damaged.error().message;
    ASSERT_TRUE(p.close());
  }

  void expect_refused(const std::function<void(stored_keys&, items&)>& damage) {
    make(damage);
    const auto all = keys::over(open(), end);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, errc::corrupt);
    EXPECT_NE(all.error().message.find("restore the pool from a copy"), std::string::npos);
  }

  testing::scratch_directory dir_;
};

TEST_F(hostile_redis, sound_content_is_taken) {
  make([](stored_keys&, items&) {});
  const auto all = keys::over(open(), end);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ((*all)->count(), item_kinds);
}

// The table.

TEST_F(hostile_redis, more_segments_than_the_table_has) {
  expect_refused([](stored_keys& root, items&) { root.segments = std::uint64_t{1} << 40; });
}
TEST_F(hostile_redis, a_segment_that_is_not_there) {
  expect_refused([](stored_keys& root, items&) { root.segments = 2; });
}
TEST_F(hostile_redis, a_segment_that_is_a_value) {
  expect_refused([](stored_keys& root, items& all) {
    root.table[0].load()[0] = reinterpret_cast<stored_keys::segment*>(all[item_kind::hash]);
  });
}
TEST_F(hostile_redis, two_places_of_one_item) {
  expect_refused([](stored_keys& root, items& all) {
    root.table[0].load()[0].load()[100] = all[item_kind::hash];
  });
}
TEST_F(hostile_redis, an_item_outside_of_the_heap) {
  expect_refused([](stored_keys& root, items& all) {
    root.table[0].load()[0].load()[0] =
        reinterpret_cast<stored_item*>(reinterpret_cast<char*>(all[item_kind::hash]) - (8 << 20));
  });
}
TEST_F(hostile_redis, two_databases_with_the_same_keys) {
  expect_refused([](stored_keys& root, items&) { root.moved[1] = ~std::uint64_t{0}; });
}
TEST_F(hostile_redis, keys_that_a_flush_will_give) {
  const std::uint64_t next = stored_keys::databases;
  expect_refused([&](stored_keys& root, items&) { root.moved[1] = next - 1; });
  expect_refused([&](stored_keys&, items& all) { all[item_kind::hash]->keyspace = next; });
  expect_refused([](stored_keys& root, items&) { root.newest = ~std::uint64_t{0}; });
}

// Items.

TEST_F(hostile_redis, a_kind_that_there_is_not) {
  for (const std::uint64_t kind : {std::uint64_t{0}, item_kinds + 1, ~std::uint64_t{0}})
    expect_refused([&](stored_keys&, items& all) { all[item_kind::list]->kind = kind; });
}
// Any first bytes can be those of a short text, and a hash is a set whose nodes have room behind
// their texts: harmless, and not told apart.
TEST_F(hostile_redis, a_value_of_another_kind) {
  for (const item_kind kind :
       {item_kind::string, item_kind::list, item_kind::set, item_kind::sorted_set})
    for (const item_kind other : {item_kind::hash, item_kind::list, item_kind::sorted_set})
      if (other != kind)
        expect_refused(
            [&](stored_keys&, items& all) { all[kind]->kind = static_cast<std::uint64_t>(other); });
}
TEST_F(hostile_redis, a_name_longer_than_the_pool) {
  for (const std::size_t size : {std::size_t{1} << 20, std::size_t{1} << 40, std::size_t{1} << 55})
    expect_refused([&](stored_keys&, items& all) {
      *word_of(&all[item_kind::list]->key, 0) = size << 8 | 255;
      *word_of(&all[item_kind::list]->key, 16) = size;
    });
}
TEST_F(hostile_redis, two_names_in_one_block) {
  expect_refused([](stored_keys&, items& all) {
    *link_of(&all[item_kind::list]->key, 8) = link_of(&all[item_kind::hash]->key, 8)->load();
  });
}
TEST_F(hostile_redis, a_text_in_a_block_that_is_free) {
  expect_refused([](stored_keys&, items& all) {
    links const text = link_of(&as<stored_text>(all[item_kind::string]).value, 8);
    void* const block = text->load();
    pool_memory::deallocate(block);
  });
}
TEST_F(hostile_redis, a_text_in_a_smaller_block) {
  expect_refused([](stored_keys&, items& all) {
    auto& value = as<stored_text>(all[item_kind::string]).value;
    *word_of(&value, 16) = 4000;
    *word_of(&value, 0) = std::uint64_t{4000} << 8 | 255;
  });
}

// Lists: first, last, size; a block: next, previous, used.

TEST_F(hostile_redis, a_list_with_a_wrong_size) {
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{many - 1}, std::uint64_t{many + 1}, std::uint64_t{1} << 60})
    expect_refused(
        [&](stored_keys&, items& all) { *word_of(all[item_kind::list], behind_item + 16) = size; });
}
TEST_F(hostile_redis, a_list_in_a_circle) {
  expect_refused([](stored_keys&, items& all) {
    void* const first = link_of(all[item_kind::list], behind_item)->load();
    *link_of(first, 0) = first;
    *word_of(all[item_kind::list], behind_item + 16) = std::uint64_t{1} << 60;
  });
}
TEST_F(hostile_redis, a_block_of_a_list_with_texts_behind_its_end) {
  for (const std::uint64_t used : {std::uint64_t{3} << 32 | 31 << 16, std::uint64_t{31} << 32,
                                   std::uint64_t{31} << 32 | 5 << 16 | 6, ~std::uint64_t{0},
                                   std::uint64_t{0x7FFF} << 32 | 0x7FFF << 16})
    expect_refused([&](stored_keys&, items& all) {
      *word_of(link_of(all[item_kind::list], behind_item)->load(), 16) = used;
    });
}
TEST_F(hostile_redis, a_list_that_ends_elsewhere) {
  expect_refused([](stored_keys&, items& all) {
    *link_of(all[item_kind::list], behind_item + 8) =
        link_of(all[item_kind::list], behind_item)->load();
  });
}
TEST_F(hostile_redis, a_list_without_texts) {
  expect_refused(
      [](stored_keys&, items& all) { as<stored_sequence>(all[item_kind::list]).content.clear(); });
}

// Hashes and sets: count, and a map: its sizes, its segments.

TEST_F(hostile_redis, a_hash_or_a_set_with_a_wrong_count) {
  for (const item_kind kind : {item_kind::hash, item_kind::set})
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{many + 1}, ~std::uint64_t{0}})
      expect_refused([&](stored_keys&, items& all) { *word_of(all[kind], behind_item) = count; });
}
TEST_F(hostile_redis, more_buckets_than_a_map_has) {
  for (const item_kind kind : {item_kind::hash, item_kind::set})
    for (const std::uint64_t sizes :
         {std::uint64_t{0x2003}, std::uint64_t{0xFF03}, std::uint64_t{0x0403}, ~std::uint64_t{0}})
      expect_refused(
          [&](stored_keys&, items& all) { *word_of(all[kind], behind_item + 8) = sizes; });
}
TEST_F(hostile_redis, a_chain_in_a_circle) {
  expect_refused([](stored_keys&, items& all) {
    auto& map = as<stored_hash>(all[item_kind::hash]).content;
    // An item's node begins with the link to the next.
    void* const node = reinterpret_cast<std::byte*>(&*map.begin()) - 8;
    *link_of(node, 0) = node;
  });
}
TEST_F(hostile_redis, a_name_of_a_hash_longer_than_the_pool) {
  for (const std::uint64_t size : {std::uint64_t{1} << 20, std::uint64_t{1} << 55})
    expect_refused([&](stored_keys&, items& all) {
      auto& map = as<stored_hash>(all[item_kind::hash]).content;
      *word_of(&*map.begin(), 0) = size << 8 | 255;
    });
}

// Sorted sets: a map of 33 words, then the tree's root, height and size.

constexpr std::size_t tree = behind_item + sizeof(hash_map<stele::string, double>);

TEST_F(hostile_redis, a_tree_with_another_height) {
  for (const std::uint64_t height :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{33}, ~std::uint64_t{0}})
    expect_refused(
        [&](stored_keys&, items& all) { *word_of(all[item_kind::sorted_set], tree + 8) = height; });
}
TEST_F(hostile_redis, a_sorted_set_with_a_wrong_size) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{many + 1}, ~std::uint64_t{0}})
    expect_refused(
        [&](stored_keys&, items& all) { *word_of(all[item_kind::sorted_set], tree + 16) = size; });
}
TEST_F(hostile_redis, a_node_without_an_order) {
  for (const std::uint64_t order : {std::uint64_t{0}, ~std::uint64_t{0}})
    expect_refused([&](stored_keys&, items& all) {
      *word_of(link_of(all[item_kind::sorted_set], tree)->load(), 0) = order;
    });
}
TEST_F(hostile_redis, a_tree_that_is_its_own_child) {
  expect_refused([](stored_keys&, items& all) {
    void* const root = link_of(all[item_kind::sorted_set], tree)->load();
    // Behind the order: a slot's score, item, count, child.
    for (std::size_t slot = 0; slot < slot_order::slots; ++slot)
      *link_of(root, 8 + 32 * slot + 24) = root;
  });
}
TEST_F(hostile_redis, a_score_that_is_no_number) {
  expect_refused([](stored_keys&, items& all) {
    void* const root = link_of(all[item_kind::sorted_set], tree)->load();
    void* const leaf = link_of(root, 8 + 24)->load();
    *word_of(leaf, 8) = ~std::uint64_t{0};
  });
}

}  // namespace
}  // namespace stele::redis
