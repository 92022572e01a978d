// The settings of the conformance tests: every mechanism on every medium, under every policy.
//
// A setting names one combination. The suites are parameterised by mechanism and medium, and run
// each body under all three policies. `pool_dir` is a fresh directory in memory, or on a disk for
// file media where that matters. in_child() runs a child process that works on a pool and dies; the
// child reports acknowledged commits to its parent through a pipe.
#pragma once

#include <containers/test_bed.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stele/pool.h>
#include <sys/wait.h>
#include <tests/budget.h>
#include <tx/mechanism/catalog.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace stele::testing {

struct setting {
  std::string mechanism;
  std::string media;
  concurrency policy = concurrency::stm;

  pool_options options(std::size_t create_size = 1u << 20) const {
    pool_options o;
    o.create_size = create_size;
    o.engine.mechanism = mechanism;
    o.engine.media = media;
    o.policy = policy;
    o.engine.defer_ordered = deferral::always;
    return o;
  }
};

inline const std::vector<std::string>& all_mechanisms() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& m : detail::mechanisms()) all.push_back(m.name);
    return all;
  }();
  return names;
}
inline std::vector<std::string> durable_mechanisms() {
  auto names = all_mechanisms();
  std::erase(names, "none");
  return names;
}
// Whether its records may outgrow a log and spill to the heap.
inline bool spills(const std::string& mechanism) {
  return mechanism != "none" && mechanism != "log_structured";
}
// Whether both mechanisms can open the same pools; log_structured shares with none.
inline bool share_pools(const std::string& a, const std::string& b) {
  return (*detail::find_mechanism(a))->home == (*detail::find_mechanism(b))->home;
}
inline std::vector<std::string> all_media() {
  return {"adr", "eadr", "process", "file", "delayed:100"};
}

inline constexpr concurrency all_policies[] = {concurrency::stm, concurrency::single_writer,
                                               concurrency::external};
inline const char* name_of(concurrency c) {
  return c == concurrency::stm             ? "stm"
         : c == concurrency::single_writer ? "single_writer"
                                           : "external";
}

// Parameters: mechanism, medium. The test's body is called once for each policy.
class on_every_setting : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  template <class Body>
  void under_each_policy(Body&& body) {
    for (const concurrency policy : all_policies) {
      SCOPED_TRACE(name_of(policy));
      body(setting{std::get<0>(GetParam()), std::get<1>(GetParam()), policy});
      if (HasFatalFailure()) return;
    }
  }
};

inline std::string setting_name(
    const ::testing::TestParamInfo<std::tuple<std::string, std::string>>& info) {
  std::string name = std::get<0>(info.param) + "_on_" + std::get<1>(info.param);
  std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
inline std::string plain_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Opens the pool, or ends the test with the error's sentence.
template <class Root>
pool<Root> open_pool(const std::string& path, const pool_options& options) {
  auto opened = pool<Root>::open(path, options);
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::move(*opened);
}

// The heap's own account of its usage; fails the test when used and free blocks do not tile the
// heap.
template <class Root>
storage::heap::usage audit(const pool<Root>& p) {
  const auto sum = p.core().state().heap.audit();
  EXPECT_TRUE(sum.has_value()) << sum.error().message;
  return sum ? *sum : storage::heap::usage{};
}

template <class R>
::testing::AssertionResult succeeds(const R& r) {
  if (r) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << stele::name_of(r.error().code) << ": " << r.error().message;
}
template <class R>
::testing::AssertionResult fails_with(const R& r, errc code) {
  if (r) return ::testing::AssertionFailure() << "it was accepted";
  if (r.error().code == code) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "refused as " << stele::name_of(r.error().code) << ": " << r.error().message;
}

using budget::count_from;

inline std::uint64_t seed_from(const char* variable) {
  const std::uint64_t seed =
      count_from(variable, static_cast<std::uint64_t>(::getpid()) * 0x9E3779B9u +
                               static_cast<std::uint64_t>(::time(nullptr)));
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

}  // namespace stele::testing
