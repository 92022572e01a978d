// Maps addresses to places and back; refuses contradictory configurations.
#include <sim/controller/memory_fixture.h>

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
  c.banks = 32;
  c.capacity_bytes = 1 << 20;
  expect_refused(c, "at most 64");
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
