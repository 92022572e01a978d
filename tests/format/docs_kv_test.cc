// docs/format/kv.md describes what the program writes: its tables have the places and bits of the
// store's structures, and its example is what kv::put leaves in a fresh pool.
#include <containers/kv_store.h>
#include <gtest/gtest.h>
#include <stele/kv.h>
#include <tests/conformance/pools.h>
#include <tests/format/page.h>

#include <bit>

namespace stele::testing {
namespace {

constexpr std::uint64_t reference_bits = format::kv_reference_mask;

// The bytes of a word that a field takes, given the word with only this field, all ones.
place bytes_of(std::uint64_t word) {
  const auto from = static_cast<std::uint64_t>(std::countr_zero(word)),
             to = static_cast<std::uint64_t>(std::bit_width(word));
  return {from / 8, (to - from) / 8};
}

// The bits that a cell names: "bits 0-43 a reference, bit 63: split".
std::vector<std::uint64_t> bits_named_in(const std::string& cell) {
  std::vector<std::uint64_t> masks;
  for (std::size_t at = cell.find("bit"); at != cell.npos; at = cell.find("bit", at + 1)) {
    std::istringstream in(cell.substr(at));
    std::string word, bits;
    if (in >> word >> bits && (word == "bits" || word == "bit") && std::isdigit(bits[0]) != 0)
      masks.push_back(bits_in(bits));
  }
  return masks;
}

TEST(format_docs_kv, the_table_of_the_root_is_the_store) {
  using index = detail::kv_hash<pool_memory>;
  using tree = detail::kv_radix<pool_memory>;
  const place segments{16, 8 * format::kv_segments};
  expect_places(page("kv.md").table("| root offset | size | field |"),
                {{"version", {0, 8}},
                 {"buckets", {8, 8}},
                 {"segments", segments},
                 {"expiry", {8 + sizeof(index), 8}},
                 {"stores", {16 + sizeof(index), 8}},
                 {"tree", {24 + sizeof(index), sizeof(tree)}}},
                kv::root_size());
  EXPECT_EQ(segments.size + 8, sizeof(index));
  EXPECT_EQ(page("kv.md").between("A pool of the layout `stele.kv`", " Its root"),
            " has key-value stores.");
}

TEST(format_docs_kv, the_table_of_a_record_is_its_header) {
  using header = format::kv_record_header;
  auto rows = page("kv.md").section("## Record").table("| offset | size | field |");
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[2], (std::vector<std::string>{"8", "pad(k)", "key", rows[2].at(3)}));
  EXPECT_EQ(rows[3], (std::vector<std::string>{"8 + pad(k)", "pad(v)", "value", rows[3].at(3)}));
  rows.resize(2);
  expect_places(rows,
                {{"key_bytes", bytes_of(header{~std::uint32_t{0}, 0, true}.pack())},
                 {"value_bytes", bytes_of(header{0, ~std::uint32_t{0}}.pack())}},
                8);
  for (const std::uint32_t k : {1u, 8u, 9u}) {
    const std::uint64_t padded = (k + 7) / 8 * 8;
    EXPECT_EQ((header{k, 3}.value_offset()), 8 + padded);
    EXPECT_EQ((header{k, 3}.bytes()), 8 + padded + 8);
    EXPECT_EQ((header{k, 3, true}.bytes()), 8 + padded + 8 + 8);
  }
  EXPECT_EQ(bits_named_in(rows[0][3]),
            (std::vector{~std::uint64_t{0} >> 33, header{0, 0, true}.pack()}));
  EXPECT_NE(rows[0][3].find("1 to 65,536"), std::string::npos);
  EXPECT_NE(rows[1][3].find("0 to 2^30"), std::string::npos);
  EXPECT_EQ(format::kv_max_key_size, 65'536u);
  EXPECT_EQ(format::kv_max_value_size, 1u << 30);
}

TEST(format_docs_kv, the_table_of_a_bucket) {
  const auto rows = page("kv.md").section("## Hash index").table("| offset | size | field |");
  constexpr std::uint64_t slots = 8 * format::kv_bucket_slots;
  expect_places(rows, {{"slots", {0, slots}}, {"link", {slots, 8}}}, format::kv_bucket_bytes);
  EXPECT_EQ(bits_named_in(rows.at(0).at(3)), (std::vector{reference_bits, ~reference_bits}));
  EXPECT_EQ(bits_named_in(rows.at(1).at(3)),
            (std::vector{reference_bits, format::kv_bucket_split_bit}));
  const auto first = page("kv.md").between("Segment 0 has ", " buckets");
  EXPECT_EQ(number_in(first), format::kv_first_buckets);
}

TEST(format_docs_kv, the_table_of_a_node) {
  using header = format::kv_node_header;
  const page part = page("kv.md").section("## Radix tree");
  auto rows = part.table("| offset | size | field |");
  ASSERT_EQ(rows.size(), 8u);
  const auto by_kind = numbers_in(rows[6].at(1)), kinds = numbers_in(rows[0].at(3));
  ASSERT_EQ(by_kind.size(), std::size(format::kv_node_kinds));
  ASSERT_EQ(kinds.size(), 2 * by_kind.size());
  for (std::size_t i = 0; i < by_kind.size(); ++i) {
    const format::kv_node_kind k = format::kv_node_kinds[i];
    EXPECT_EQ(kinds[i], i);
    EXPECT_EQ(kinds[by_kind.size() + i], k.children);
    EXPECT_EQ(by_kind[i], 8 * k.byte_words);
    EXPECT_EQ(k.bytes(), number_in(rows[6][0]) + by_kind[i] + 8 * k.children);
  }
  EXPECT_EQ(rows[7][0] + ' ' + rows[7][1], "then 8 each");
  rows.resize(6);
  expect_places(rows,
                {{"kind", bytes_of(header{.kind = 0xFF}.pack())},
                 {"count", bytes_of(header{.count = 0xFFFF}.pack())},
                 {"skip", bytes_of(header{.skip = ~std::uint32_t{0}}.pack())},
                 {"path", {8, 8}},
                 {"own_record", {16, 8}}},
                24);
  EXPECT_EQ(number_in(part.between("A reference with bit ", " set")),
            std::uint64_t(std::countr_zero(format::kv_record_bit)));
}

// A store in a pool of its own, and where its root is in memory.
struct store_in_scratch {
  scratch_directory dir;
  result<kv> store =
      kv::open(dir.file("p"),
               {.create_size = 64 << 10, .engine = {.mechanism = "default", .media = "process"}});

  const std::byte* root() const {
    const auto& file = store->core().state().file;
    std::uint64_t offset = 0;
    std::memcpy(&offset, file.at(file.header().home_offset), 8);
    return file.at(offset);
  }
};

// Path, own record, child bytes and children of a node that a store has made: "ab" is a node's own
// record, "abc" and "abd" are its children.
TEST(format_docs_kv, a_node_is_as_its_table_has_it) {
  store_in_scratch kept;
  ASSERT_TRUE(succeeds(kept.store));
  for (const char* key : {"ab", "abc", "abd"}) ASSERT_TRUE(kept.store->put(key, ""));
  std::uint64_t tree = 0;
  const std::byte* const base = kept.root() + 336;
  std::memcpy(&tree, base, 8);
  ASSERT_EQ(tree & format::kv_record_bit, 0u);
  const char* const node = format::kv_decode_reference(base, tree);
  const auto word = [&](std::size_t offset) {
    std::uint64_t w = 0;
    std::memcpy(&w, node + offset, 8);
    return w;
  };
  const auto key_at = [&](std::uint64_t reference) {
    EXPECT_NE(reference & format::kv_record_bit, 0u);
    const char* const record = format::kv_decode_reference(base, reference);
    return std::string(record + 8, static_cast<std::size_t>(record[0]));
  };
  EXPECT_EQ(word(0), (format::kv_node_header{.kind = 0, .count = 2, .skip = 2}.pack()));
  EXPECT_EQ(std::string(node + 8, 8), std::string("ab\0\0\0\0\0\0", 8));
  EXPECT_EQ(key_at(word(16)), "ab");
  EXPECT_EQ(std::string(node + 24, 2), "cd");
  EXPECT_EQ(key_at(word(32)), "abc");
  EXPECT_EQ(key_at(word(40)), "abd");
}

TEST(format_docs_kv, the_example_is_what_a_put_leaves) {
  store_in_scratch kept;
  ASSERT_TRUE(succeeds(kept.store));
  ASSERT_TRUE(kept.store->put("ab", "xyz"));
  const std::byte* const root = kept.root();

  std::map<std::uint64_t, std::uint64_t> told;  // words by their offset
  for (const std::string& line : page("kv.md").example()) {
    const std::string label = line.substr(0, line.find("  "));
    ASSERT_TRUE(label.starts_with("root + 0x")) << line;
    const auto bytes = bytes_in(line, label);
    ASSERT_TRUE(!bytes.empty() && bytes.size() % 8 == 0) << line;
    const std::uint64_t offset = number_in(label.substr(7));
    expect_bytes(line, label, root + offset, bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
      told[offset + i / 8 * 8] |= std::uint64_t{bytes[i]} << i % 8 * 8;
  }
  EXPECT_GE(told.size(), 7u);
  for (const std::uint64_t begin : {0x0, 0x2000})  // the other words are 0
    for (std::uint64_t at = begin; at < begin + (begin == 0 ? kv::root_size() : 512); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, root + at, 8);
      EXPECT_EQ(word, told[at]) << "root + 0x" << std::hex << at << ": " << word;
    }
}

}  // namespace
}  // namespace stele::testing
