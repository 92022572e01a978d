// Atomicity and isolation of single transactions, on every mechanism and medium and under every
// policy: a committed transaction is complete, a failed one leaves no trace, and a transaction may
// have any size.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

struct counters {
  field<std::uint64_t> a, b;
};

struct table {
  // In words; 192 KiB, far larger than the logs of these pools.
  static constexpr std::size_t size = 24 * 1024;
  field<std::uint64_t> words[size];
};

struct pair_of_pools {
  explicit pair_of_pools(const setting& s)
      : first(open_pool<counters>(dir.file("one"), s.options())),
        second(open_pool<counters>(dir.file("two"), s.options())) {}
  scratch_directory dir;
  pool<counters> first, second;
};

class atomicity : public on_every_setting {};

std::uint64_t value_of_a(const pool<counters>& p) {
  auto got = p.read([](const counters& c) { return c.a.load(); });
  EXPECT_TRUE(succeeds(got));
  return got.value_or(~0u);
}

TEST_P(atomicity, an_update_commits_and_a_read_sees_it) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<counters>(dir.file("pool"), s.options());
    EXPECT_EQ(value_of_a(p), 0u) << "a fresh root is not zero";
    auto done = p.update([](counters& c) {
      c.a = 7;
      c.b = c.a + 1;  // sees its own store
      return c.b.load();
    });
    ASSERT_TRUE(succeeds(done));
    EXPECT_EQ(*done, 8u);
    EXPECT_EQ(value_of_a(p), 7u);
  });
}

TEST_P(atomicity, an_error_a_failure_a_cancel_and_an_exception_leave_nothing) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<counters>(dir.file("pool"), s.options());
    ASSERT_TRUE(succeeds(p.update([](counters& c) { c.a = 1; })));
    auto returned = p.update([](counters& c) -> result<int> {
      c.a = 2;
      return std::unexpected(error{errc::not_found, "mine"});
    });
    EXPECT_TRUE(fails_with(returned, errc::not_found));
    EXPECT_EQ(returned.error().message, "mine");
    EXPECT_EQ(value_of_a(p), 1u);
    EXPECT_TRUE(fails_with(p.update([](counters& c) { c.a = 3, throw failure({errc::io, "no"}); }),
                           errc::io));
    EXPECT_EQ(value_of_a(p), 1u);
    EXPECT_TRUE(
        fails_with(p.update([](counters& c) { c.a = 4, cancel("enough"); }), errc::cancelled));
    EXPECT_EQ(value_of_a(p), 1u);
    EXPECT_THROW((void)p.update([](counters& c) { c.a = 5, throw std::out_of_range("theirs"); }),
                 std::out_of_range);
    EXPECT_EQ(value_of_a(p), 1u);
    ASSERT_TRUE(succeeds(p.update([](counters& c) { c.a += 1; }))) << "the pool works on";
    EXPECT_EQ(value_of_a(p), 2u);
  });
}

TEST_P(atomicity, nested_updates_are_one_transaction) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<counters>(dir.file("pool"), s.options());
    auto lost = p.update([&](counters& c) -> result<> {
      c.a = 1;
      auto inner = p.update([](counters& again) { again.b = 2; });
      EXPECT_TRUE(succeeds(inner));
      EXPECT_EQ(c.b.load(), 2u);
      auto seen = p.read([](const counters& again) { return again.a.load(); });
      EXPECT_EQ(seen.value_or(0), 1u) << "a read inside an update sees its stores";
      return std::unexpected(error{errc::cancelled, "all of it"});
    });
    EXPECT_TRUE(fails_with(lost, errc::cancelled));
    EXPECT_EQ(value_of_a(p), 0u);
    ASSERT_TRUE(succeeds(p.update([&](counters& c) {
      c.a = 1;
      auto inner = p.update([](counters& again) -> result<> {
        again.b = 2;
        return std::unexpected(error{errc::io, "the outer body decides"});
      });
      EXPECT_FALSE(inner);
    })));
    EXPECT_EQ(p.read([](const counters& c) { return c.a + c.b; }).value_or(0), 3u);
  });
}

TEST_P(atomicity, a_read_refuses_to_store_allocate_or_destroy) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<counters>(dir.file("pool"), s.options());
    field<std::uint64_t>* object = nullptr;
    ASSERT_TRUE(succeeds(p.update([&](counters&) { object = make<field<std::uint64_t>>(); })));
    auto stores = p.read([](const counters& c) { const_cast<counters&>(c).a = 1; });
    EXPECT_TRUE(fails_with(stores, errc::read_only));
    EXPECT_TRUE(
        fails_with(p.read([&](const counters&) { (void)p.update([](counters& c) { c.a = 1; }); }),
                   errc::read_only));
    EXPECT_TRUE(
        fails_with(p.read([](const counters&) { (void)make<counters>(); }), errc::read_only));
    EXPECT_TRUE(fails_with(p.read([&](const counters&) { destroy(object); }), errc::read_only));
    EXPECT_EQ(value_of_a(p), 0u);
  });
}

TEST_P(atomicity, a_transaction_on_another_pool_is_refused_and_several_pools_are_apart) {
  under_each_policy([](const setting& s) {
    pair_of_pools pools(s);
    ASSERT_TRUE(succeeds(pools.first.update([&](counters& c) {
      c.a = 1;
      EXPECT_TRUE(
          fails_with(pools.second.update([](counters& other) { other.a = 9; }), errc::nested));
      EXPECT_TRUE(fails_with(
          pools.second.read([](const counters& other) { return other.a.load(); }), errc::nested));
    })));
    ASSERT_TRUE(succeeds(pools.second.update([](counters& c) { c.a = 2; })));
    EXPECT_EQ(value_of_a(pools.first), 1u);
    EXPECT_EQ(value_of_a(pools.second), 2u);
  });
}

// Logs of 4 KiB hold about 440 words; each of two transactions changes 24 K words.
TEST_P(atomicity, a_transaction_may_be_larger_than_every_log) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto options = s.options(4u << 20);
    options.engine.log_size = 4096, options.engine.log_count = 2;
    auto p = open_pool<table>(dir.file("pool"), options);
    for (std::uint64_t round : {1u, 2u}) {
      ASSERT_TRUE(succeeds(p.update([&](table& t) {
        for (std::size_t i = 0; i < table::size; ++i) t.words[i] = round * i;
      })));
    }
    const auto before = audit(p);
    EXPECT_TRUE(fails_with(p.update([&](table& t) {
      for (std::size_t i = 0; i < table::size; ++i) t.words[i] = 77;
      cancel("not this");
    }),
                           errc::cancelled));
    auto wrong = p.read([](const table& t) {
      std::size_t n = 0;
      for (std::size_t i = 0; i < table::size; ++i) n += t.words[i] != 2 * i;
      return n;
    });
    EXPECT_EQ(wrong.value_or(~0u), 0u);
    EXPECT_EQ(audit(p).used_bytes, before.used_bytes);
    EXPECT_GE(p.counters().log_spills, spills(s.mechanism) ? 2u : 0u);
    ASSERT_TRUE(succeeds(p.close()));
  });
}

// Single bytes in separate words are the worst case for a record: a header and a word each. Every
// count near the log's size is tried.
TEST_P(atomicity, scattered_bytes_near_the_size_of_a_log_are_kept) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto options = s.options(2u << 20);
    options.engine.log_size = 4096, options.engine.log_count = 2;
    struct bytes {
      field<std::uint8_t> at[64 * 80];
    };
    auto p = open_pool<bytes>(dir.file("pool"), options);
    for (std::size_t lines = 10; lines <= 80; ++lines) {
      const auto value = static_cast<std::uint8_t>(lines);
      auto done = p.update([&](bytes& b) {
        for (std::size_t i = 0; i < lines * 64; i += 8) b.at[i] = value;
      });
      ASSERT_TRUE(succeeds(done)) << lines;
      if (lines % 8 == 0) {
        ASSERT_TRUE(succeeds(p.close())) << lines;
        p = open_pool<bytes>(dir.file("pool"), options);
      }
    }
    auto right = p.read([](const bytes& b) {
      for (std::size_t i = 0; i < 64 * 80; ++i)
        if (b.at[i] != (i % 8 == 0 ? 80 : 0)) return false;
      return true;
    });
    EXPECT_TRUE(right.value_or(false));
  });
}

TEST_P(atomicity, reads_log_and_write_nothing) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto options = s.options();
    options.engine.background = false;
    auto p = open_pool<counters>(dir.file("pool"), options);
    ASSERT_TRUE(succeeds(p.update([](counters& c) { c.a = 1; })));
    const auto before = p.counters();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(value_of_a(p), 1u);
    ASSERT_TRUE(succeeds(p.update([](counters& c) { return c.a.load(); })))
        << "an update that stores nothing";
    const auto after = p.counters();
    EXPECT_EQ(after.reads - before.reads, 100u);
    EXPECT_EQ(after.fences, before.fences);
    EXPECT_EQ(after.flushed_lines, before.flushed_lines);
    EXPECT_EQ(after.streamed_bytes, before.streamed_bytes);
    EXPECT_EQ(after.stored_bytes, before.stored_bytes);
  });
}

INSTANTIATE_TEST_SUITE_P(all, atomicity,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::ValuesIn(all_media())),
                         setting_name);

}  // namespace
}  // namespace stele::testing
