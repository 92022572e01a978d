// Charging rules beside closed forms: a charge is a function of the lines, so no test here measures
// time.
#include <gtest/gtest.h>
#include <lab_media/delayed.h>
#include <media/adr.h>

#include <array>

namespace stele::media {
namespace {

struct alignas(64) lines {
  std::byte bytes[64 * 64] = {};
  std::byte* at(std::size_t line) { return bytes + 64 * line; }
};

charge charge_of(const delay& cost, std::size_t flushed, std::size_t streamed) {
  lines memory;
  uncharged_lines all(cost);
  for (std::size_t i = 0; i < flushed; ++i) all.flush(memory.at(2 * i), 64);
  for (std::size_t i = 0; i < streamed; ++i) all.stream(memory.at(32 + 2 * i), 64);
  return all.take();
}

// B10
TEST(charging, each_line_pays_the_latency_where_nothing_else_is_said) {
  for (std::size_t f = 0; f < 4; ++f)
    for (std::size_t s = 0; s < 4; ++s) {
      const charge c = charge_of({.latency_ns = 150}, f, s);
      EXPECT_EQ(c.latencies, f + s);
      EXPECT_DOUBLE_EQ(c.own_ns, 150.0 * static_cast<double>(f + s));
      EXPECT_EQ(c.transfer_ns, 0);
    }
}

// B10
TEST(charging, streamed_lines_of_a_fence_pay_one_latency_together) {
  for (std::size_t f = 0; f < 4; ++f)
    for (std::size_t s = 0; s < 4; ++s) {
      const charge c = charge_of({.latency_ns = 150, .rule = charging::streams_once}, f, s);
      EXPECT_EQ(c.latencies, f + (s == 0 ? 0 : 1));
      EXPECT_DOUBLE_EQ(c.own_ns, 150.0 * static_cast<double>(c.latencies));
    }
}

// L11
TEST(charging, with_a_bandwidth_a_fence_pays_the_latency_or_the_transfer) {
  for (const std::size_t n : {1u, 7u, 8u, 20u}) {
    const charge c = charge_of({.latency_ns = 500, .bytes_per_ns = 1}, n, 0);
    EXPECT_EQ(c.latencies, 1u);
    EXPECT_DOUBLE_EQ(c.own_ns, std::max<double>(500, 64.0 * static_cast<double>(n)));
    EXPECT_DOUBLE_EQ(c.transfer_ns, 64.0 * static_cast<double>(n));
  }
}

// L11
TEST(charging, each_run_of_adjacent_lines_pays_by_itself) {
  lines memory;
  for (const bool backwards : {false, true}) {
    uncharged_lines all({.latency_ns = 500, .bytes_per_ns = 1, .rule = charging::each_run});
    // Three runs: 0 to 2, 5, and 20 to 29, which takes longer than the latency.
    std::vector<std::size_t> order = {0, 1, 2, 5, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
    if (backwards) std::ranges::reverse(order);
    for (const std::size_t line : order)
      line % 2 == 0 ? all.stream(memory.at(line), 64) : all.flush(memory.at(line) + 8, 8);
    EXPECT_FALSE(all.none());
    const charge c = all.take();
    EXPECT_EQ(c.latencies, 3u);
    EXPECT_DOUBLE_EQ(c.own_ns, 500 + 500 + 640);
    EXPECT_DOUBLE_EQ(c.transfer_ns, 14 * 64);
    EXPECT_TRUE(all.none());
    EXPECT_EQ(all.take().latencies, 0u) << "charged twice";
  }
}

TEST(charging, a_line_that_is_written_twice_is_in_one_run_and_transferred_twice) {
  lines memory;
  uncharged_lines all({.latency_ns = 10, .bytes_per_ns = 1, .rule = charging::each_run});
  for (int i = 0; i < 2; ++i) all.flush(memory.at(3), 64);
  all.flush(memory.at(1), 0);
  const charge c = all.take();
  EXPECT_EQ(c.latencies, 1u);
  EXPECT_DOUBLE_EQ(c.own_ns, 128);
}

TEST(charging, runs_without_a_bandwidth_pay_the_latency) {
  const charge c = charge_of({.latency_ns = 500, .rule = charging::each_run}, 3, 2);
  EXPECT_EQ(c.latencies, 5u);
  EXPECT_DOUBLE_EQ(c.own_ns, 2500);
}

// A transaction of write-ahead logging, by hand: `log` streamed lines of log, a fence, `home` lines
// of home apart from each other, a fence, and the whole of it again through bulk_persist().
struct transaction {
  std::size_t log, home;
};
std::uint64_t latencies_of(const delay& cost, const transaction& t) {
  lines memory;
  const lines source;
  delayed<adr>::shared shared{{}, cost};
  delayed<adr> m(shared, 0);
  m.stream(memory.bytes, source.bytes, 64 * t.log);
  m.fence();
  for (std::size_t i = 0; i < t.home; ++i) m.flush(memory.at(20 + 2 * i), 8);
  m.fence();
  m.fence();  // of nothing
  const range all[] = {{memory.at(20), 64 * t.home}};
  m.bulk_persist(all);
  return m.charged_latencies();
}

// B10, L11
TEST(delayed, says_how_many_latencies_it_charged) {
  for (const transaction& t : {transaction{1, 1}, transaction{3, 2}, transaction{8, 5}}) {
    EXPECT_EQ(latencies_of({.latency_ns = 1}, t), t.log + 2 * t.home);
    EXPECT_EQ(latencies_of({.latency_ns = 1, .rule = charging::streams_once}, t), 1 + 2 * t.home);
    EXPECT_EQ(latencies_of({.latency_ns = 1, .bytes_per_ns = 64}, t), 3u);
    EXPECT_EQ(latencies_of({.latency_ns = 1, .bytes_per_ns = 64, .rule = charging::each_run}, t),
              1 + t.home + 1);
    EXPECT_EQ(latencies_of({.latency_ns = 1, .cache_bytes_per_ns = 64}, t), t.log + t.home + 1)
        << "the whole cache takes one";
  }
}

}  // namespace
}  // namespace stele::media
