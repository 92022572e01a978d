// Objects and pointers in a pool: made, destroyed, pointed to, at any address where the pool is
// mapped.
#include <sys/mman.h>
#include <tests/conformance/pools.h>

#include <optional>
#include <set>

namespace stele::testing {
namespace {

struct node {
  field<std::uint64_t> value;
  field<node*> next;
  field<node*> self;
};
struct root {
  field<node*> first;
  field<root*> home;
  field<std::uint64_t> sum;
};

class objects : public on_every_setting {};

TEST_P(objects, are_zero_when_made_and_gone_when_their_transaction_is_rolled_back) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<root>(dir.file("pool"), s.options());
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(succeeds(p.update([](root& r) {
        node* const n = make<node>();
        EXPECT_EQ(n->value, 0u);
        EXPECT_EQ(n->next.load(), nullptr);
        n->value = 77, n->next = n;
        r.first = n;
      })));
      EXPECT_EQ(audit(p).used_blocks, 2u);
      EXPECT_FALSE(p.update([](root& r) {
        for (int i = 0; i < 100; ++i) (void)make<node>();
        destroy(r.first.load());
        cancel("none of it");
      }));
      EXPECT_EQ(audit(p).used_blocks, 2u);
      ASSERT_TRUE(succeeds(p.update([](root& r) {
        EXPECT_EQ(r.first->value, 77u);
        destroy(r.first.load());
        r.first = nullptr;
      })));
      EXPECT_EQ(audit(p).used_blocks, 1u);
    }
  });
}

TEST_P(objects, are_destroyed_once_and_nothing_else_is) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<root>(dir.file("pool"), s.options());
    auto other = open_pool<root>(dir.file("other"), s.options());
    node* theirs = nullptr;
    ASSERT_TRUE(succeeds(other.update([&](root&) { theirs = make<node>(); })));
    ASSERT_TRUE(
        succeeds(p.update([](root& r) { r.first = make<node>(), destroy<node>(nullptr); })));
    EXPECT_TRUE(
        fails_with(p.update([](root& r) { destroy(r.first.load()), destroy(r.first.load()); }),
                   errc::invalid_argument));
    EXPECT_TRUE(
        fails_with(p.update([](root& r) { destroy(&r.first->next); }), errc::invalid_argument))
        << "the inside of an object";
    EXPECT_TRUE(fails_with(p.update([&](root&) { destroy(theirs); }), errc::invalid_argument))
        << "another pool's object";
    node mine{};
    EXPECT_TRUE(fails_with(p.update([&](root&) { destroy(&mine); }), errc::invalid_argument))
        << "ordinary memory";
    EXPECT_EQ(audit(p).used_blocks, 2u);
    node* former = nullptr;
    ASSERT_TRUE(
        succeeds(p.update([&](root& r) { former = r.first, destroy(former), r.first = nullptr; })));
    EXPECT_TRUE(fails_with(p.update([&](root&) { destroy(former); }), errc::invalid_argument))
        << "destroyed by an earlier transaction";
    EXPECT_EQ(audit(p).used_blocks, 1u);
  });
}

TEST_P(objects, point_at_each_other_at_any_address) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    std::vector<std::pair<void*, std::size_t>> fillers;
    std::set<const void*> addresses;
    for (std::uint64_t session = 1; session <= 4; ++session) {
      std::optional<pool<root>> opened = open_pool<root>(dir.file("pool"), s.options());
      pool<root>& p = *opened;
      addresses.insert(p.core().base());
      ASSERT_TRUE(succeeds(p.update([&](root& r) {
        EXPECT_EQ(r.home.load(), session == 1 ? nullptr : &r)
            << "a pointer at itself or into its own object";
        r.home = &r;
        node* const n = make<node>();
        n->value = session, n->next = r.first, n->self = n;
        r.first = n;
        r.sum += session;
      })));
      auto sum = p.read([](const root& r) {
        std::uint64_t total = 0;
        for (const node* n = r.first; n != nullptr; n = n->next)
          total += n->self.load() == n ? n->value.load() : 1000;
        return total == r.sum;
      });
      EXPECT_TRUE(sum.value_or(false));
      const auto& file = p.core().state().file;
      // The size of its address range.
      const std::size_t size =
          file.header().home_size != 0 ? file.header().home_size : file.reserved_bytes();
      opened.reset();
      // So that it is mapped elsewhere next time.
      fillers.emplace_back(::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                           size);
    }
    EXPECT_EQ(addresses.size(), 4u) << "the pool was mapped at one address twice";
    for (const auto& [at, size] : fillers) ::munmap(at, size);
  });
}

// A pointer field that points to its own object, and fields of every width side by side.
TEST_P(objects, hold_values_of_every_width) {
  struct odd {
    std::uint8_t bytes[3];
    bool operator==(const odd&) const = default;
  };
  struct wide {
    std::uint64_t words[5];
    bool operator==(const wide&) const = default;
  };
  struct mixed {
    field<mixed*> self;
    field<std::uint8_t> a, b;
    field<odd> c;
    field<std::uint16_t> d;
    field<float> e;
    field<bool> f;
    field<wide> g;
    field<double> h;
    field<std::int32_t> i;
  };
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    for (int session = 0; session < 2; ++session) {
      auto p = open_pool<mixed>(dir.file("pool"), s.options());
      for (int k = session == 0 ? 1 : 6; k < 6; ++k)
        ASSERT_TRUE(succeeds(p.update([&](mixed& m) {
          m.self = &m;
          m.a = 1, m.b = 2, m.c = odd{{3, 4, 5}}, m.d = 6, m.e = 7.5f, m.f = true,
          m.g = wide{{8, 9, 10, 11, 12}}, m.h = -13.25, m.i = -14;
          m.b += 1, ++m.d, --m.i;
          EXPECT_EQ(m.b, 3) << "its own partial store is seen";
          EXPECT_TRUE(m.c.load() == (odd{{3, 4, 5}}));
        })));
      auto right = p.read([](const mixed& m) {
        return m.self.load() == &m && m.a == 1 && m.b == 3 && m.c.load() == odd{{3, 4, 5}} &&
               m.d == 7 && m.e == 7.5f && m.f && m.g.load() == wide{{8, 9, 10, 11, 12}} &&
               m.h == -13.25 && m.i == -15;
      });
      EXPECT_TRUE(right.value_or(false)) << "session " << session;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(all, objects,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::ValuesIn(all_media())),
                         setting_name);

// A store that would bypass every transaction ends the program with a sentence.
TEST(objects, a_store_to_a_pool_outside_its_transaction_ends_the_program) {
  scratch_directory dir;
  auto p = open_pool<root>(dir.file("pool"), setting{"default", "process"}.options());
  root* raw = nullptr;
  ASSERT_TRUE(succeeds(p.update([&](root& r) { raw = &r; })));
  EXPECT_DEATH(raw->sum = 1, "outside a transaction");
  EXPECT_THROW((void)make<node>(), failure);
  root ordinary{};
  ordinary.sum = 5;
  EXPECT_EQ(ordinary.sum, 5u) << "a field in ordinary memory is an ordinary variable";
}

template <template <class> class Field>
struct numbers {
  Field<std::uint32_t> whole;
  Field<double> real;
  Field<std::uint8_t> small;
};

// Does each operator to a field and to an ordinary variable.
template <class Numbers>
void calculate(Numbers& n) {
  std::uint32_t whole = 40;
  double real = 2.5;
  std::uint8_t small = 255;
  n.whole = whole, n.real = real, n.small = small;
  EXPECT_EQ(n.whole++, whole++);
  EXPECT_EQ(++n.whole, ++whole);
  EXPECT_EQ(n.whole--, whole--);
  EXPECT_EQ(--n.whole, --whole);
  EXPECT_EQ(++n.small, ++small);  // wraps
  EXPECT_EQ(--n.small, --small);
  EXPECT_EQ(n.whole += 7, whole += 7);
  EXPECT_EQ(n.whole -= 2, whole -= 2);
  EXPECT_EQ(n.whole *= 6, whole *= 6);
  EXPECT_EQ(n.whole /= 4, whole /= 4);
  EXPECT_EQ(n.whole %= 48, whole %= 48);
  EXPECT_EQ(n.whole <<= 5, whole <<= 5);
  EXPECT_EQ(n.whole |= 9, whole |= 9);
  EXPECT_EQ(n.whole ^= 1023, whole ^= 1023);
  EXPECT_EQ(n.whole &= 0xFFF0, whole &= 0xFFF0);
  EXPECT_EQ(n.whole >>= 2, whole >>= 2);
  EXPECT_EQ(n.real += 1, real += 1);
  EXPECT_EQ(n.real *= 3, real *= 3);
  EXPECT_EQ(n.real -= 0.25, real -= 0.25);
  EXPECT_EQ(n.real /= 2, real /= 2);
}

TEST(fields, have_the_operators_of_their_values) {
  scratch_directory dir;
  auto p = open_pool<numbers<field>>(dir.file("pool"), {.create_size = 1 << 20});
  ASSERT_TRUE(succeeds(p.update([](numbers<field>& n) { calculate(n); })));
  numbers<plain_field> n{};
  calculate(n);
}

TEST(plain_members, are_no_part_of_a_transaction) {
  struct counted {
    field<int> n;
    plain<int> tries;
  };
  scratch_directory dir;
  auto p = open_pool<counted>(
      dir.file("pool"), {.create_size = 1 << 20, .engine = {.block_checksums = checksums::off}});
  EXPECT_FALSE(p.update([](counted& c) {
    c.n = 1, c.tries = c.tries + 1;
    cancel("only tries");
  }));
  EXPECT_EQ(p.read([](const counted& c) { return c.n.load() * 10 + c.tries; }).value(), 1);
  EXPECT_TRUE(succeeds(p.check()));
}

}  // namespace
}  // namespace stele::testing
