// Shared by the tests of the measured evaluations: a very short sweep, and checks for every figure.
#pragma once

#include <bench/figures/chart.h>
#include <bench/figures/sweep.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace stele::bench {

inline sweep_options tiny_sweep() {
  sweep_options o;
  o.dir = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : testing::TempDir();
  o.runs = 1;
  o.seeds = 1;
  o.seconds = 0.005;
  return o;
}

// Expects a complete figure of this name, with panels whose series are as long as their axes. Call
// it in ASSERT_NO_FATAL_FAILURE.
inline void expect_whole(const result<chart>& c, const std::string& name) {
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->name, name);
  EXPECT_TRUE(c->complete);
  ASSERT_FALSE(c->panels.empty());
  for (const panel& p : c->panels) {
    ASSERT_FALSE(p.lines.empty()) << p.name;
    for (const series& s : p.lines)
      ASSERT_THAT(s.points, testing::SizeIs(p.xs.size())) << p.name << ", " << s.name;
  }
}

// Checks measured series only: a text need not state a number for each place.
inline void expect_every_point(const chart& c) {
  for (const panel& p : c.panels)
    for (const series& s : p.lines)
      for (const auto& point : s.points) EXPECT_TRUE(point || s.stated) << p.name << ", " << s.name;
}

inline void expect_every_answer(const chart& c) {
  for (const claim& k : c.claims) EXPECT_FALSE(k.measured.empty()) << k.what;
}

// Of the architecture-aware evaluation, with a host.
inline sweep_options tiny_hosted_sweep(const std::string& host) {
  sweep_options o = tiny_sweep();
  o.host = host;
  o.spare_bytes = std::size_t{8} << 20;
  o.archapt_keys = 512;
  o.archapt_threads = 2;
  o.archapt_crashes = 20;
  o.traced_operations = 300;
  o.traced_keys = 256;
  return o;
}

// Expects an error for an unknown figure; the error names the figure.
inline void expect_unknown(const result<chart>& c, const std::string& figure) {
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, errc::invalid_argument);
  EXPECT_THAT(c.error().message, testing::HasSubstr("'" + figure + "'"));
}

}  // namespace stele::bench
