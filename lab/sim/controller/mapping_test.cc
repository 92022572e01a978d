// Maps addresses to places and back; refuses contradictory configurations.
#include <fmt/ranges.h>
#include <sim/controller/memory_fixture.h>

#include <bit>
#include <filesystem>
#include <set>

namespace stele::sim {
namespace {

memory_config small(const std::string& fields) {
  memory_config c;
  c.controllers = c.channels = c.ranks = c.bank_groups = c.banks = 2;
  c.row_bytes = 256;
  c.capacity_bytes = 1 << 16;
  c.mapping = fields;
  return c;
}

TEST(mapping, every_line_has_its_own_place_and_finds_back) {
  for (const bool hash : {false, true})
    for (const char* fields : {"row-rank-bank-column-channel", "channel-row-column-bank-rank",
                               "row-bank-rank-column-bank_group-channel"}) {
      memory_config c = small(fields);
      c.bank_hash = hash;
      const mapping m = *mapping::parse(c);
      std::set<std::tuple<unsigned, unsigned, std::uint32_t, unsigned>> seen;
      for (std::uint64_t a = 0; a < 1 << 16; a += 64) {
        const device_address p = m.locate(a);
        EXPECT_LT(p.channel, 4u);
        EXPECT_LT(p.bank, 8u);
        for (unsigned column = 0; column < 4; ++column)
          if (m.address_of(p, column) == a) seen.insert({p.channel, p.bank, p.row, column});
        EXPECT_EQ(m.locate(a + volatile_memory_at).row, p.row);
      }
      EXPECT_EQ(seen.size(), (1u << 16) / 64) << fields;
    }
}

// The place of an address as one number, of as many bits as the capacity has.
std::uint64_t place_of(const mapping& m, const memory_config& c, std::uint64_t address) {
  const device_address p = m.locate(address);
  const std::uint64_t banks = std::uint64_t{c.ranks} * c.bank_groups * c.banks;
  const std::uint64_t row = (p.row * banks + p.bank) * c.controllers * c.channels + p.channel;
  return row * c.row_bytes + m.column_of(address) * line_bytes + address % line_bytes;
}

// A mapping is linear: exclusive or of addresses is that of their places. So no two addresses have
// the same place if the places of the single bits are independent, which elimination decides.
bool gives_each_line_its_own_place(const mapping& m, const memory_config& c) {
  std::vector<std::uint64_t> reduced;
  for (std::uint64_t bit = line_bytes; bit < c.capacity_bytes; bit *= 2) {
    std::uint64_t place = place_of(m, c, bit);
    for (const std::uint64_t other : reduced) place = std::min(place, place ^ other);
    if (place == 0 || place >= c.capacity_bytes) return false;
    reduced.push_back(place);
  }
  std::uint64_t x = 7;
  for (int i = 0; i < 8; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t a = x % c.capacity_bytes / line_bytes * line_bytes,
                        b = std::rotl(x, 32) % c.capacity_bytes / line_bytes * line_bytes;
    if (place_of(m, c, a ^ b) != (place_of(m, c, a) ^ place_of(m, c, b))) return false;
    if (m.address_of(m.locate(a), m.column_of(a)) != a) return false;
  }
  return true;
}

std::map<std::string, memory_config> memories_of_presets() {
  std::map<std::string, memory_config> all;
  for (const auto& file : std::filesystem::directory_iterator(STELE_SOURCE_DIR "/lab/configs")) {
    const machine_config m = machine_of(file.path().stem());
    all.emplace(m.name + ", nonvolatile", m.nonvolatile_memory);
    all.emplace(m.name + ", volatile", m.volatile_memory);
  }
  return all;
}

TEST(mapping, of_every_preset_and_every_order_of_fields_gives_each_line_its_own_place) {
  for (const auto& [name, memory] : memories_of_presets())
    for (const bool groups_named : {true, false}) {
      memory_config c = memory;
      std::vector<std::string> fields = {"bank", "channel", "column", "rank", "row"};
      if (groups_named) fields.insert(fields.begin() + 1, "bank_group");
      do {
        c.mapping = fmt::format("{}", fmt::join(fields, "-"));
        for (const bool hash : {false, true}) {
          c.bank_hash = hash;
          EXPECT_TRUE(gives_each_line_its_own_place(*mapping::parse(c), c)) << name << c.mapping;
        }
      } while (std::ranges::next_permutation(fields).found);
    }
}

// As many lines as a channel has banks, a power of two apart.
TEST(mapping, of_every_preset_spreads_lines_that_are_a_power_of_two_apart_with_a_hash) {
  for (const auto& [name, memory] : memories_of_presets()) {
    memory_config c = memory;
    const std::uint64_t banks = std::uint64_t{c.ranks} * c.bank_groups * c.banks;
    unsigned of_rows_alone = 0;
    for (std::uint64_t stride = line_bytes; stride * banks <= c.capacity_bytes; stride *= 2) {
      std::set<std::uint64_t> plain, hashed, rows;
      for (std::uint64_t n = 0; n < banks; ++n) {
        c.bank_hash = false;
        const device_address p = mapping::parse(c)->locate(n * stride);
        plain.insert(p.channel * banks + p.bank), rows.insert(p.row);
        c.bank_hash = true;
        const device_address h = mapping::parse(c)->locate(n * stride);
        hashed.insert(h.channel * banks + h.bank);
      }
      EXPECT_GE(hashed.size(), plain.size()) << name << ", " << stride;
      if (rows.size() < banks) continue;
      EXPECT_EQ(plain.size(), 1u) << name << ", " << stride;
      EXPECT_EQ(hashed.size(), banks) << name << ", " << stride;
      ++of_rows_alone;
    }
    EXPECT_GT(of_rows_alone, 3u) << name;
  }
}

TEST(mapping, fields_come_in_the_order_of_the_name) {
  const mapping m = *mapping::parse(small("row-rank-bank-column-channel"));
  EXPECT_EQ(m.locate(64).channel, 1u);
  EXPECT_EQ(m.locate(256).bank, 0u);   // the next column
  EXPECT_EQ(m.locate(1024).bank, 2u);  // the other group: the group is the lowest bit of bank
  EXPECT_EQ(m.locate(2048).bank, 1u);
  EXPECT_EQ(m.locate(4096).bank, 4u);
  EXPECT_EQ(m.locate(8192).row, 1u);
}

TEST(mapping, a_hash_spreads_lines_that_are_a_power_of_two_apart) {
  memory_config c = plain_memory();
  c.row_bytes = 64;
  for (std::uint64_t stride = 64; stride < c.capacity_bytes / c.banks; stride *= 2) {
    std::set<unsigned> plain, hashed;
    for (std::uint64_t n = 0; n < c.banks; ++n) {
      c.bank_hash = false;
      plain.insert(mapping::parse(c)->locate(n * stride).bank);
      c.bank_hash = true;
      hashed.insert(mapping::parse(c)->locate(n * stride).bank);
    }
    EXPECT_EQ(hashed.size(), c.banks) << stride;
    EXPECT_TRUE(stride != 4096 || plain.size() == 1);
  }
}

void expect_refused(const memory_config& c, const std::string& sentence) {
  event_queue events;
  const auto made = make_memory(events, c);
  ASSERT_FALSE(made) << sentence;
  EXPECT_EQ(made.error().code, errc::invalid_argument);
  EXPECT_NE(made.error().message.find(sentence), std::string::npos) << made.error().message;
}

TEST(mapping, wrong_mappings_are_refused) {
  expect_refused(small("row-rank-bank-column"), "lacks a field");
  expect_refused(small("row-rank-bank-bank-column-channel"), "repeats field \"bank\"");
  expect_refused(small("row-rank-bank-colunm-channel"), "unknown field \"colunm\"");
  expect_refused(small(""), "lacks a field");
}

TEST(configuration, sizes_that_cannot_be_are_refused) {
  memory_config c = small("row-rank-bank-column-channel");
  c.banks = 3;
  expect_refused(c, "banks is 3");
  c.banks = 512;
  expect_refused(c, "hold no row");
  c.banks = 256;
  c.capacity_bytes = 1 << 24;
  expect_refused(c, "at most 256");
}

TEST(configuration, queues_times_and_names_that_cannot_be_are_refused) {
  const auto with = [](auto change) {
    memory_config c = plain_memory();
    change(c);
    return c;
  };
  expect_refused(with([](memory_config& c) { c.write_queue_entries = 0; }), "0 entries");
  expect_refused(with([](memory_config& c) { c.write_drain_to = 0.9; }), "write_drain_to");
  expect_refused(with([](memory_config& c) { c.technology = "tape"; }), "technology \"tape\"");
  expect_refused(with([](memory_config& c) { c.read_latency_ns = -1; }), "negative");
  expect_refused(with([](memory_config& c) { c.refresh_interval_ns = c.refresh_time_ns = 5; }),
                 "refresh_time_ns");
  expect_refused(with([](memory_config& c) { c.technology = "pcm"; }), "retention table");
}

}  // namespace
}  // namespace stele::sim
