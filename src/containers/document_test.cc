// document's values, lists and dicts, compared with a model in ordinary C++ by random operations,
// on ordinary memory and on pools; and their edge cases.
#include <stele/document.h>

#include <base/rng.h>
#include <containers/test_bed.h>

#include <map>
#include <variant>

namespace stele::testing {
namespace {

// The model: a value, and lists and dicts of values.
struct plain;
struct plain_list {
  std::vector<plain> items;
};
struct plain_dict {
  std::vector<std::pair<scalar_copy, plain>> items;  // in order of insertion
};
struct plain {
  std::variant<scalar_copy, plain_list, plain_dict> held;
};

template <class Memory>
plain plain_of(const basic_value<Memory>& v);

template <class Memory>
plain plain_of(const basic_list<Memory>& l) {
  plain_list to;
  l.for_each([&](const basic_value<Memory>& v) { to.items.push_back(plain_of(v)); });
  return {to};
}
template <class Memory>
plain plain_of(const basic_dict<Memory>& d) {
  plain_dict to;
  d.for_each([&](const basic_value<Memory>& k, const basic_value<Memory>& v) {
    to.items.emplace_back(k.load(), plain_of(v));
  });
  return {to};
}
template <class Memory>
plain plain_of(const basic_value<Memory>& v) {
  if (v.kind() == value_kind::list) return plain_of(v.list());
  if (v.kind() == value_kind::dict) return plain_of(v.dict());
  return {v.load()};
}

bool operator==(const plain& a, const plain& b);
bool operator==(const plain_list& a, const plain_list& b) {
  return a.items == b.items;
}
bool operator==(const plain_dict& a, const plain_dict& b) {
  return a.items == b.items;
}
bool operator==(const plain& a, const plain& b) {
  return a.held == b.held;
}

// Random operations on a tree of values and on its model, at the same position in both.
template <class Memory>
class play {
  using value = basic_value<Memory>;
  using list = basic_list<Memory>;
  using dict = basic_dict<Memory>;

 public:
  explicit play(std::uint64_t seed) : random_(seed) {}

  void step(dict& d, plain_dict& m, unsigned depth = 0) {
    const scalar_copy key = key_of(random_.below(12));
    auto at =
        std::find_if(m.items.begin(), m.items.end(), [&](const auto& i) { return i.first == key; });
    value* const found = d.find(key);
    ASSERT_EQ(found != nullptr, at != m.items.end());
    const std::uint64_t choice = random_.below(12);
    if (found != nullptr && choice < 6 && descend(*found, at->second, depth)) return;
    if (choice == 11 && random_.below(40) == 0) return d.clear(), m.items.clear();
    if (choice >= 9) {
      ASSERT_EQ(d.erase(key), at != m.items.end());
      if (at != m.items.end()) m.items.erase(at);
      return;
    }
    if (at == m.items.end()) at = m.items.insert(m.items.end(), {key, plain{}});
    set(d[key], at->second);
  }

  void step(list& l, plain_list& m, unsigned depth) {
    const std::size_t size = m.items.size(), i = random_.below(size + 1);
    const auto here = m.items.begin() + static_cast<std::ptrdiff_t>(i);
    const std::uint64_t choice = random_.below(12);
    if (i < size && choice < 5 && descend(l.at(i), *here, depth)) return;
    if (i < size && choice < 7) return set(l.at(i), *here);
    if (i < size && choice < 8) return l.erase(i), void(m.items.erase(here));
    if (size > 40)
      return l.erase(5, 30), void(m.items.erase(m.items.begin() + 5, m.items.begin() + 30));
    if (choice == 11) return set(l.append({}), m.items.emplace_back());
    set(l.insert(i, {}), *m.items.insert(here, plain{}));
  }

 private:
  bool descend(value& v, plain& m, unsigned depth) {
    if (!v.is_container() || depth > 4) return false;
    if (v.kind() == value_kind::list)
      step(v.list(), std::get<plain_list>(m.held), depth + 1);
    else
      step(v.dict(), std::get<plain_dict>(m.held), depth + 1);
    return true;
  }
  void set(value& v, plain& m) {
    const std::uint64_t choice = random_.below(10);
    if (choice == 0) return v.make_list(), void(m.held = plain_list{});
    if (choice <= 2) return v.make_dict(), void(m.held = plain_dict{});
    const scalar_copy s = any();
    v = s;
    m.held = s;
    ASSERT_EQ(v.load(), s);
    ASSERT_TRUE(v.equal(s));
  }
  static scalar_copy key_of(std::uint64_t n) {
    if (n % 3 == 0) return scalar_copy(scalar(static_cast<std::int64_t>(n) - 6));
    return scalar_copy(scalar(std::string(n * n / 2, 'k') + std::to_string(n)));
  }
  scalar_copy any() {
    std::string chars(random_.below(4) == 0 ? random_.below(300) : random_.below(20), '\0');
    for (char& c : chars) c = static_cast<char>(random_.below(256));
    const scalar all[] = {
        {},        true, false,         static_cast<std::int64_t>(random_.below(1000)) - 500,
        INT64_MIN, 1.5,  scalar(chars), scalar::bytes(chars)};
    return scalar_copy(all[random_.below(std::size(all))]);
  }

  base::rng random_;
};

template <class Memory>
class document_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory>;
TYPED_TEST_SUITE(document_on, memories);

TYPED_TEST(document_on, behaves_as_plain_values) {
  using dict = basic_dict<TypeParam>;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    bed<dict, TypeParam> b;
    play<TypeParam> p(seed);
    plain_dict model;
    for (int i = 0; i < 600; ++i) {
      b.update([&](dict& d) {
        for (int n = 0; n < 3; ++n) p.step(d, model);
      });
      if (i % 20 == 0 || i > 580)
        b.read([&](const dict& d) {
          const result<> status = d.check();
          ASSERT_TRUE(status) << status.error().message;
          ASSERT_TRUE(plain_of(d) == plain{model});
          ASSERT_EQ(d.size(), model.items.size());
          blocks_of(d);
        });
      ASSERT_FALSE(this->HasFailure());
    }
  }
}

TYPED_TEST(document_on, zeroed_memory_is_none_and_empty) {
  bed<basic_value<TypeParam>, TypeParam> v;
  bed<basic_dict<TypeParam>, TypeParam> d;
  bed<basic_list<TypeParam>, TypeParam> l;
  v.read([](const basic_value<TypeParam>& none) {
    EXPECT_EQ(none.kind(), value_kind::none);
    EXPECT_TRUE(none.check());
  });
  d.read([](const basic_dict<TypeParam>& empty) {
    EXPECT_TRUE(empty.empty());
    EXPECT_EQ(empty.find("a"), nullptr);
    EXPECT_FALSE(empty.last_key());
    EXPECT_TRUE(empty.check());
  });
  l.read([](const basic_list<TypeParam>& empty) {
    EXPECT_TRUE(empty.empty());
    EXPECT_TRUE(empty.check());
  });
}

TYPED_TEST(document_on, texts_up_to_14_bytes_need_no_block) {
  bed<basic_value<TypeParam>, TypeParam> b;
  for (std::size_t n = 0; n <= 30; ++n) {
    b.update([&](basic_value<TypeParam>& v) { v = std::string(n, 'a'); });
    b.read([&](const basic_value<TypeParam>& v) {
      EXPECT_EQ(blocks_of(v).size(), n <= 14 ? 0u : 1u);
      EXPECT_EQ(v.text(), std::string(n, 'a'));
    });
  }
}

TYPED_TEST(document_on, items_keep_the_order_of_insertion) {
  using dict = basic_dict<TypeParam>;
  bed<dict, TypeParam> b;
  b.update([](dict& d) {
    for (int i = 0; i < 100; ++i) d[i * 37 % 100] = i;
    d[0] = "keeps its place";
    d.erase(37);
    d[37] = "comes last";
  });
  b.read([](const dict& d) {
    std::vector<std::int64_t> keys;
    d.for_each([&](const auto& k, const auto&) { keys.push_back(k.integer()); });
    ASSERT_EQ(keys.size(), 100u);
    EXPECT_EQ(keys.front(), 0);
    EXPECT_EQ(keys[1], 74);
    EXPECT_EQ(keys.back(), 37);
    EXPECT_EQ(static_cast<std::int64_t>(d.last_key()->word()), 37);
  });
}

TYPED_TEST(document_on, a_text_and_an_integer_are_different_keys) {
  using dict = basic_dict<TypeParam>;
  bed<dict, TypeParam> b;
  b.update([](dict& d) {
    d["1"] = "text";
    d[1] = "integer";
    EXPECT_EQ(d.size(), 2u);
    EXPECT_EQ(d.find(1)->text(), "integer");
    for (const scalar& key : {scalar(), scalar(true), scalar(1.0), scalar::bytes("1")})
      EXPECT_THROW(d[key], failure);
    EXPECT_THROW((void)d.find("1")->integer(), failure);
  });
}

// A changed id tells the holder of an old address that another container is there now.
TYPED_TEST(document_on, a_container_that_took_anothers_place_has_another_name) {
  using dict = basic_dict<TypeParam>;
  bed<dict, TypeParam> b;
  std::set<std::uint64_t> names;
  for (int i = 0; i < 200; ++i)
    b.update([&](dict& d) { EXPECT_TRUE(names.insert(d["x"].make_list().id()).second); });
  EXPECT_FALSE(names.contains(0));
}

TYPED_TEST(document_on, nests_deeper_than_a_stack) {
  using dict = basic_dict<TypeParam>;
  using list = basic_list<TypeParam>;
  bed<dict, TypeParam> b;
  constexpr int depth = 100'000;
  b.update([](dict& d) {
    list* l = &d["deep"].make_list();
    for (int i = 0; i < depth; ++i) l = &l->append({}).make_list();
  });
  b.read([](const dict& d) {
    EXPECT_TRUE(d.check());
    EXPECT_GE(blocks_of(d).size(), std::size_t{depth});
  });
  b.update([](dict& d) { d.erase("deep"); });
  b.read([](const dict& d) {
    EXPECT_TRUE(d.empty());
    EXPECT_LE(blocks_of(d).size(), 1u);
  });
}

TYPED_TEST(document_on, a_lists_bounds_hold) {
  bed<basic_list<TypeParam>, TypeParam> b;
  b.update([](basic_list<TypeParam>& l) {
    l.append(1);
    EXPECT_THROW((void)l.at(1), failure);
    EXPECT_THROW(l.insert(2, 5), failure);
    EXPECT_THROW(l.erase(1), failure);
    EXPECT_THROW(l.erase(0, 2), failure);
    l.erase(1, 1);
    EXPECT_EQ(l.size(), 1u);
  });
}

TEST(document_on_a_pool, frees_all_that_it_took) {
  bed<document_dict, pool_memory> b(std::size_t{16} << 20);
  const auto fill = [&] {
    b.update([](document_dict& d) {
      for (int i = 0; i < 300; ++i) {
        document_list& l = d[std::to_string(i)].make_list();
        for (int n = 0; n < 10; ++n)
          l.append({}).make_dict()["a key that is longer than inline"] = std::string(100, 'x');
      }
    });
  };
  b.update([](document_dict&) {});
  const std::size_t empty = b.pool().space().used_bytes;
  for (int round = 0; round < 8; ++round) {
    fill();
    EXPECT_GT(b.pool().space().used_bytes, empty + 300'000);
    b.update([](document_dict& d) { d.clear(); });
    EXPECT_EQ(b.pool().space().used_bytes, empty);
  }
}

TEST(document_on_a_pool, is_there_after_reopening_and_not_after_roll_back) {
  bed<document_dict, pool_memory> b;
  b.update([](document_dict& d) { d["list"].make_list().append("kept"); });
  const auto undone = b.pool().update([](document_dict& d) {
    d["list"].list().append("undone");
    d["more"].make_dict();
    cancel("no");
  });
  EXPECT_EQ(undone.error().code, errc::cancelled);
  b.reopen();
  b.read([](const document_dict& d) {
    EXPECT_EQ(d.size(), 1u);
    EXPECT_EQ(d.find("list")->list().size(), 1u);
    EXPECT_EQ(d.find("list")->list().at(0).text(), "kept");
  });
}

}  // namespace
}  // namespace stele::testing
