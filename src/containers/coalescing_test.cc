// coalescing_memory: no object is on more lines than its size needs; texts are in the block of
// their object, others are separate; data beside an object never outlives it and never belongs to
// another object.
#include <stele/coalescing.h>

#include <containers/map_model.h>
#include <gmock/gmock.h>

namespace stele::testing {
namespace {

using ::testing::SizeIs;

std::uintptr_t address_of(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}
std::size_t lines_from(std::uintptr_t at, std::size_t size) {
  return (at % 64 + size + 63) / 64;
}
std::size_t lines_for(std::size_t size) {
  return (size + 63) / 64;
}

template <std::size_t N>
struct object {
  field<blob<N>> bytes;
};
using memory = coalescing_memory;

template <std::size_t N>
void make_or_destroy(std::vector<object<N>*>& held, bool make) {
  if (!make && !held.empty()) {
    memory::destroy(held.back());
    held.pop_back();
    return;
  }
  held.push_back(memory::make<object<N>>());
  EXPECT_EQ(lines_from(address_of(held.back()), N), lines_for(N)) << N;
  const std::uintptr_t end = address_of(held.back()) + (N + 7) / 8 * 8;
  EXPECT_TRUE(N <= 64 || end % 64 == 0) << "ends with a line: " << N;
}

// Makes and destroys objects of one size, in transactions of which some are rolled back.
template <std::size_t N>
void churn(bed<object<8>, memory>& b, base::rng& random) {
  std::vector<object<N>*> held;
  for (int round = 0; round < 40; ++round) {
    auto now = held;
    const bool keep = random.below(4) != 0;
    (void)b.pool().update([&](object<8>&) {
      for (int i = 0; i < 12; ++i) make_or_destroy<N>(now, random.below(3) != 0);
      if (!keep) cancel("on purpose");
    });
    if (keep) held = std::move(now);
  }
  b.update([&](object<8>&) {
    for (auto* o : held) memory::destroy(o);
  });
}

template <std::size_t... N>
void churn_all(bed<object<8>, memory>& b, base::rng& random) {
  (churn<N>(b, random), ...);
}

// A8
TEST(coalescing, no_object_is_on_more_lines_than_its_size_needs) {
  bed<object<8>, memory> b;
  const std::size_t before = b.pool().space().used_bytes;
  base::rng random(1);
  churn_all<8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 100, 104, 112, 120, 128, 136, 144, 200, 264,
            1000, 4000, 5000>(b, random);
  EXPECT_EQ(b.pool().space().used_bytes, before) << "every block is given back";
}

TEST(coalescing, a_text_behind_others_is_on_no_more_lines_than_it_needs) {
  for (std::size_t end = 16; end < 400; ++end)
    for (std::size_t size = 1; size < 400; ++size) {
      const std::size_t at = detail::offset_after(end, size);
      ASSERT_GE(at, end);
      ASSERT_EQ(at % 8, 0u);
      ASSERT_EQ(lines_from(at, size), lines_for(size)) << end << ", " << size;
      ASSERT_LE(at, (end + 63) / 64 * 64) << "no line is left out";
    }
}

TEST(coalescing, arrays_and_texts_of_their_own_have_lines_of_their_own) {
  bed<object<8>, memory> b;
  b.update([](object<8>&) {
    std::set<std::uintptr_t> lines;
    for (std::size_t size = 1; size < 300; size += 7)
      for (const auto at : {address_of(memory::allocate(size, 1)),
                            address_of(memory::make_array<object<8>>((size + 7) / 8))}) {
        EXPECT_EQ(at % 64, 0u);
        for (std::size_t line = at / 64; line <= (at + size - 1) / 64; ++line)
          EXPECT_TRUE(lines.insert(line).second) << size;
      }
  });
}

template <std::size_t N>
void expect_line_padded() {
  using element = line_padded_in<object<N>, memory>;
  static_assert(std::is_same_v<line_padded_in<object<N>, pool_memory>, object<N>>);
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_EQ(lines_from(i * sizeof(element), N), lines_for(N)) << N;
  EXPECT_TRUE(sizeof(element) == sizeof(object<N>) ||
              lines_from(64 - alignof(object<N>), N) > lines_for(N))
      << "no padding where none is needed: " << N;
}

TEST(coalescing, spaced_elements_are_on_no_more_lines_than_their_size_needs) {
  expect_line_padded<8>(), expect_line_padded<16>(), expect_line_padded<24>(),
      expect_line_padded<32>(), expect_line_padded<48>(), expect_line_padded<56>();
  expect_line_padded<64>(), expect_line_padded<72>(), expect_line_padded<96>(),
      expect_line_padded<100>(), expect_line_padded<120>(), expect_line_padded<136>(),
      expect_line_padded<1000>();
}

using texts = coalescing_hash_map<coalescing_string, coalescing_string>;

std::string text_of(std::uint64_t n, std::size_t size) {
  std::string text(size, static_cast<char>('a' + n % 26));
  return text.replace(0, 1, std::to_string(n % 10));
}

// A8
TEST(coalescing, a_node_its_key_and_its_value_are_one_block) {
  bed<texts, memory> b;
  b.update([](texts& t) { t.reserve(64); });
  std::size_t number = 0;
  for (const std::size_t key_size : {8, 24, 40, 100, 200})
    for (const std::size_t value_size : {8, 24, 30, 64, 100, 1000, 3000})
      b.update([&](texts& t) {
        ++number;
        const std::string key = text_of(number, key_size) + std::to_string(number),
                          value = text_of(number, value_size);
        t.insert(key, value);
        EXPECT_EQ(t.find(key)->second.str(), value);
        EXPECT_THAT(blocks_of(t), SizeIs(1 + number)) << "buckets and nodes";
      });
}

TEST(coalescing, a_nodes_value_of_whole_lines_begins_with_one) {
  bed<coalescing_hash_map<std::uint64_t, blob<64>>, memory> hashed;
  bed<coalescing_map<std::uint64_t, blob<192>>, memory> ordered;
  for (std::uint64_t n = 0; n < 50; ++n) {
    hashed.update([&](auto& m) {
      EXPECT_EQ(address_of(&m.insert(n, sample<blob<64>>::of(n)).first->second) % 64, 0u);
    });
    ordered.update([&](auto& m) {
      EXPECT_EQ(address_of(&m.insert(n, sample<blob<192>>::of(n)).first->second) % 64, 0u);
    });
  }
}

TEST(coalescing, a_text_that_outgrows_its_place_moves_out_and_everything_is_given_back) {
  bed<texts, memory> b;
  const std::size_t before = b.pool().space().used_bytes;
  base::rng random(7);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = text_of(random.below(60), 20 + random.below(3)),
                      value = text_of(random(), random.below(300));
    b.update([&](texts& t) {
      const auto choice = random.below(4);
      if (choice == 0) {
        t.erase(key), model.erase(key);
      } else if (choice == 1 && t.contains(key)) {
        t.find(key)->second.append(value), model[key] += value;
      } else {
        t.insert_or_assign(key, value), model[key] = value;
      }
      if (i % 500 == 499) t.clear(), model.clear();
    });
    if (i % 16 != 0) continue;
    b.read([&](const texts& t) {
      ASSERT_EQ(t.size(), model.size());
      for (const auto& [k, v] : model) {
        ASSERT_EQ(t.find(k)->second.str(), v);
        const result<> status = t.find(k)->second.check();
        ASSERT_TRUE(status) << status.error().message;
      }
    });
  }
  b.update([](texts& t) { t.clear(); });
  EXPECT_EQ(b.pool().space().used_bytes, before);
}

TEST(coalescing, an_update_of_a_text_stays_in_its_place) {
  bed<texts, memory> b;
  b.update([](texts& t) {
    t.insert("key", std::string(100, 'a'));
    const auto blocks = blocks_of(t);
    t.find("key")->second = std::string(90, 'b');
    // Below a quarter of the capacity: the rest belongs to the object's block and cannot be freed.
    t.find("key")->second = std::string(24, 'c');
    t.find("key")->second = std::string(100, 'd');
    EXPECT_EQ(blocks_of(t), blocks);
    EXPECT_EQ(t.find("key")->second.str(), std::string(100, 'd'));
  });
}

// What a constructor may do besides setting its own members.
struct diary {
  using pool_resident = void;
  coalescing_string name;
  field<diary*> inner;
  coalescing_string last;

  diary(std::string_view n, coalescing_string& elsewhere, std::string_view note)
      : name(n), inner(nullptr), last(note) {
    elsewhere.append(note);
  }
  diary(std::string_view n, std::string_view of_inner, coalescing_string& elsewhere)
      : name(n), inner(memory::make<diary>(of_inner, elsewhere, of_inner)), last(n) {}
  ~diary() {
    run_destructor([&] {
      if (diary* const i = inner) memory::destroy(i);
    });
  }
};
struct shelf {
  using pool_resident = void;
  coalescing_string log;
  field<diary*> first;
};

TEST(coalescing, a_constructor_gives_no_room_to_texts_of_others) {
  bed<shelf, memory> b;
  const std::size_t before = b.pool().space().used_bytes;
  const std::string note(50, 'n');
  b.update([&](shelf& s) {
    auto* const d = memory::make<diary>(std::string(40, 'x'), s.log, note);
    EXPECT_EQ(d->last.str(), note);
    memory::destroy(d);
    EXPECT_EQ(s.log.str(), note) << "not gone with the object";
    s.first = memory::make<diary>(std::string(30, 'y'), std::string(60, 'z'), s.log);
  });
  b.reopen();
  b.update([&](shelf& s) {
    EXPECT_EQ(s.first->last.str(), std::string(30, 'y'));
    EXPECT_EQ(s.first->inner->name.str(), std::string(60, 'z'));
    EXPECT_EQ(s.log.str(), note + std::string(60, 'z'));
    memory::destroy(s.first.load());
    s.first = nullptr;
    s.log.clear();
  });
  EXPECT_EQ(b.pool().space().used_bytes, before);
}

TEST(coalescing, a_constructor_that_ends_by_an_exception_leaves_no_room_behind) {
  bed<shelf, memory> small(std::size_t{1} << 20);
  const std::string page(60'000, 'v');
  result<> outcome;
  for (int n = 0; outcome; ++n) {
    ASSERT_LT(n, 1000);
    outcome = small.pool().update([&](shelf& s) { memory::make<diary>("a name", s.log, page); });
  }
  EXPECT_EQ(outcome.error().code, errc::full);
  EXPECT_EQ(detail::this_construction.object, nullptr);
}

struct both {
  using pool_resident = void;
  texts one;
  hash_map<string, string> other;
};

TEST(coalescing, shares_a_pool_with_other_memory) {
  bed<both, memory> b;
  const auto key_of = [](std::uint64_t n) { return text_of(n, 30) + std::to_string(n); };
  b.update([&](both& r) {
    for (std::uint64_t n = 0; n < 200; ++n) {
      r.one.insert(key_of(n), text_of(n, n));
      r.other.insert(key_of(n), text_of(n, n));
    }
    for (std::uint64_t n = 0; n < 200; n += 2) r.one.erase(key_of(n));
  });
  b.read([](const both& r) {
    EXPECT_TRUE(r.one.check() && r.other.check());
    EXPECT_EQ(r.one.size(), 100u);
    EXPECT_EQ(r.other.size(), 200u);
  });
}

}  // namespace
}  // namespace stele::testing
