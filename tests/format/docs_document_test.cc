// docs/format/document.md describes what the program writes: what its tables place where is there
// in values, lists and dicts of a pool, and its example is what assignments leave in a fresh pool.
#include <gtest/gtest.h>
#include <stele/document.h>
#include <tests/conformance/pools.h>
#include <tests/format/page.h>

#include <algorithm>
#include <set>

namespace stele::testing {
namespace {

struct root {
  using pool_resident = void;
  document_value values[3];
};

// A fresh pool for each test, and memory read at places that the page names.
class format_docs_document : public ::testing::Test {
 protected:
  using bytes = const std::byte*;

  format_docs_document()
      : pool_(open_pool<root>(dir_.file("p"), [] {
          pool_options o{.create_size = 64 << 10};
          o.engine.mechanism = "default", o.engine.media = "process";
          return o;
        }())) {}

  template <class Body>
  void update(Body&& body) {
    ASSERT_TRUE(succeeds(pool_.update(std::forward<Body>(body))));
  }
  // Runs the body on the values in a transaction; it may read their memory.
  template <class Body>
  void read(Body&& body) {
    ASSERT_TRUE(succeeds(pool_.read([&](const root& r) { body(r.values); })));
  }

  static std::uint64_t word(bytes at) {
    std::uint64_t w = 0;
    std::memcpy(&w, at, 8);
    return w;
  }
  // Follows a link: the signed distance from itself, 0 for null.
  static bytes target(bytes link) { return word(link) == 0 ? nullptr : link + word(link); }
  static bytes of(const auto& object) { return reinterpret_cast<bytes>(&object); }

  // The table under a heading, or a later one there. All its rows together are this many bytes.
  static places table(const std::string& heading, std::uint64_t size, unsigned skipped = 0) {
    const auto rows =
        page("document.md").section("## " + heading).table("| offset | size | field |", skipped);
    expect_places(rows, places_in(rows), size);
    return places_in(rows);
  }

  scratch_directory dir_;
  pool<root> pool_;
};

TEST_F(format_docs_document, a_value_is_as_its_table_has_it) {
  const auto at = table("Value, 16 bytes, aligned to 8", sizeof(document_value));
  update([](root& r) {
    r.values[0].assign("fourteen bytes");
    r.values[1].assign(scalar::bytes("fifteen bytes.."));
    r.values[2].assign(0.5);
  });
  read([&](const document_value* v) {
    const char* const text = reinterpret_cast<const char*>(v);
    EXPECT_EQ(of(v[0])[at.at("kind").offset], std::byte(4 | 14 << 4));
    EXPECT_EQ(std::string(text + at.at("first_bytes").offset, 7), "fourtee");
    EXPECT_EQ(std::string(text + at.at("word").offset, 7), "n bytes");
    EXPECT_EQ(of(v[1])[at.at("kind").offset], std::byte(5 | 15 << 4));
    EXPECT_EQ(word(of(v[1])) >> 8 * at.at("first_bytes").offset, 15u) << "the size, of 56 bits";
    const auto* const block =
        reinterpret_cast<const char*>(target(of(v[1]) + at.at("word").offset));
    EXPECT_EQ(std::string(block, 15), "fifteen bytes..");
    EXPECT_EQ(word(of(v[2]) + at.at("word").offset), std::bit_cast<std::uint64_t>(0.5));
  });
  const std::map<std::uint64_t, std::string> kinds = {
      {std::uint64_t(value_kind::none), "none"},
      {std::uint64_t(value_kind::boolean), "boolean"},
      {std::uint64_t(value_kind::integer), "integer"},
      {std::uint64_t(value_kind::real), "real"},
      {std::uint64_t(value_kind::text), "text"},
      {std::uint64_t(value_kind::bytes), "bytes"},
      {std::uint64_t(value_kind::list), "list"},
      {std::uint64_t(value_kind::dict), "dict"}};
  const auto rows = page("document.md").table("| offset | size | field |");
  EXPECT_EQ(names_in(rows.at(0).at(3)), kinds);
}

TEST_F(format_docs_document, the_example_is_what_assignments_leave) {
  update([](root& r) {
    r.values[0].assign("hi");
    r.values[1].assign(-7);
    r.values[2].assign("a text of 20 letters");
  });
  const page p("document.md");
  const auto lines = p.example();
  ASSERT_EQ(lines.size(), std::size(root{}.values));
  read([&](const document_value* v) {
    for (std::size_t i = 0; i < lines.size(); ++i) expect_bytes(lines[i], "", v + i, 16);
    EXPECT_EQ(number_in(p.between("which begin ", " bytes behind offset 8")), word(of(v[2]) + 8));
  });
}

TEST_F(format_docs_document, a_list_is_as_its_table_has_it) {
  const auto at = table("List, 40 bytes", sizeof(document_list));
  constexpr std::size_t count = 20;
  update([](root& r) {
    document_list& list = r.values[0].make_list();
    for (std::size_t i = 0; i < count; ++i) list.append(static_cast<int>(i));
  });
  read([&](const document_value* v) {
    const document_list& list = v[0].list();
    EXPECT_EQ(target(of(v[0]) + 8), of(list)) << "a value links to its list";
    EXPECT_EQ(word(of(list) + at.at("name").offset), list.id());
    EXPECT_EQ(list.id() % 2, 1u);
    EXPECT_EQ(word(of(list) + at.at("count").offset), count);
    const std::uint64_t layout = word(of(list) + at.at("layout").offset);
    const std::size_t first_slots = std::size_t{1} << (layout & 0xFF),
                      all_slots = std::size_t{1} << (layout >> 8);
    EXPECT_GE(all_slots, count);
    EXPECT_GT(all_slots, first_slots) << "the test needs several segments";
    const bytes directory = target(of(list) + at.at("directory").offset);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t later =  // the number of the segment, 0: the first
          i < first_slots ? 0 : static_cast<std::size_t>(std::bit_width(i / first_slots));
      const std::size_t start = later == 0 ? 0 : first_slots << (later - 1);
      const bytes segment = later == 0 ? target(of(list) + at.at("first").offset)
                                       : target(directory + 8 * (later - 1));
      EXPECT_EQ(segment + sizeof(document_value) * (i - start), of(list.at(i))) << i;
    }
  });
}

// Walks a dict by the page's tables: in order, backwards, and by the chains of its nodes.
TEST_F(format_docs_document, a_dict_and_its_nodes_are_as_their_tables_have_them) {
  const auto at = table("Dict, 296 bytes", sizeof(document_dict));
  const auto in_node = table("Dict, 296 bytes", 56, 1);
  constexpr int count = 40;
  update([](root& r) {
    document_dict& dict = r.values[0].make_dict();
    for (int i = 0; i < count; ++i) dict[i].assign(100 + i);
  });
  read([&](const document_value* v) {
    const document_dict& dict = v[0].dict();
    EXPECT_EQ(word(of(dict) + at.at("name").offset), dict.id());
    EXPECT_EQ(word(of(dict) + at.at("count").offset), std::uint64_t{count});
    const std::uint64_t layout = word(of(dict) + at.at("layout").offset);
    const auto segments = (layout >> 8) - (layout & 0xFF) + 1;
    ASSERT_LE(segments, 32u);
    for (std::uint64_t s = 0; s < 32; ++s)
      EXPECT_EQ(target(of(dict) + at.at("segments").offset + 8 * s) != nullptr, s < segments) << s;

    const std::uint64_t key_offset = in_node.at("key").offset;
    std::set<bytes> nodes;
    bytes before = nullptr, key = target(of(dict) + at.at("first").offset);
    for (int i = 0; i < count; ++i) {
      ASSERT_NE(key, nullptr);
      const bytes node = key - key_offset;
      nodes.insert(node);
      EXPECT_EQ(word(key + 8), std::uint64_t(i)) << "the key is an integer";
      EXPECT_EQ(target(node + in_node.at("before").offset), before);
      EXPECT_EQ(node + in_node.at("value").offset, of(*dict.find(i)));
      before = key;
      key = target(node + in_node.at("after").offset);
    }
    EXPECT_EQ(key, nullptr);
    EXPECT_EQ(target(of(dict) + at.at("last").offset), before);
    std::set<bytes> next;  // what the chains of the buckets lead to, beyond their first nodes
    for (const bytes node : nodes) next.insert(target(node + in_node.at("next").offset));
    next.erase(nullptr);
    EXPECT_FALSE(next.empty()) << "the test needs a chain of two nodes";
    EXPECT_TRUE(std::ranges::includes(nodes, next));
  });
}

}  // namespace
}  // namespace stele::testing
