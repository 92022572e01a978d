// An object's memory is reused by the library itself, for states of a slab or the payload of a long
// record, while an older transaction may still read the object. The transaction must see the object
// or be retried.
#include <base/rng.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace stele::testing {
namespace {

struct large {
  field<std::uint64_t> words[1024];  // two chunks of a 1 MiB pool: an extent
};
struct wide {
  field<std::uint64_t> words[4096];
};
struct root {
  field<large*> object;
  field<wide*> other;
};

constexpr std::uint64_t mark = 0x1111'2222'3333'4444;

pool<root> pool_with_object(const scratch_directory& dir, const char* mechanism) {
  auto options = setting{mechanism, "process"}.options(1u << 20);
  options.engine.log_size = 4096, options.engine.log_count = 4;
  auto p = open_pool<root>(dir.file("pool"), options);
  auto made = p.update([](root& r) {
    auto* l = make<large>();
    for (auto& w : l->words) w = mark;
    r.object = l;
    r.other = make<wide>();
  });
  if (!made) throw std::runtime_error(made.error().message);
  return p;
}

// A read that has the object's address, but none of its words yet, when `meanwhile` destroys and
// reuses the object in another thread.
template <class Meanwhile>
void read_across(pool<root>& p, Meanwhile&& meanwhile) {
  std::once_flag once;
  auto wrong = p.read([&](const root& r) {
    const large* const l = r.object;
    std::call_once(once, [&] { std::thread([&] { meanwhile(); }).join(); });
    std::size_t n = 0;
    if (l != nullptr)
      for (const auto& w : l->words) n += w != mark;
    return n;
  });
  EXPECT_EQ(wrong.value_or(~0u), 0u) << "a read saw what was never its object's";
}

void destroy_object(pool<root>& p) {
  ASSERT_TRUE(succeeds(p.update([](root& r) {
    destroy(r.object.load());
    r.object = nullptr;
  })));
}

class reused_memory : public ::testing::TestWithParam<std::string> {};

TEST_P(reused_memory, a_reader_does_not_take_block_states_for_its_object) {
  scratch_directory dir;
  auto p = pool_with_object(dir, GetParam().c_str());
  read_across(p, [&] {
    destroy_object(p);
    ASSERT_TRUE(succeeds(p.update([](root&) {
      for (int i = 0; i < 400; ++i) (void)make<field<std::uint64_t>>();
    })));
  });
}

TEST_P(reused_memory, a_reader_does_not_take_a_log_payload_for_its_object) {
  scratch_directory dir;
  auto p = pool_with_object(dir, GetParam().c_str());
  read_across(p, [&] {
    destroy_object(p);
    ASSERT_TRUE(succeeds(p.update([](root& r) {
      for (auto& w : r.other->words) w = 7;
    })));
    EXPECT_GE(p.counters().log_spills, spills(GetParam()) ? 1u : 0u);
  });
}

INSTANTIATE_TEST_SUITE_P(all, reused_memory, ::testing::ValuesIn(all_mechanisms()), plain_name);

// Threads that write into objects, against a thread that replaces the objects: a late store of a
// writer that lost the race must not hit the new content.
TEST(reused_memory, late_stores_do_not_reach_what_came_after) {
  struct slot_root {
    field<large*> slot[4];
  };
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  scratch_directory dir;
  const std::string mechanism = known_of({"default", "redo-async"}).back();
  auto p = open_pool<slot_root>(dir.file("pool"), setting{mechanism, "process"}.options(1u << 20));
  ASSERT_TRUE(succeeds(p.update([](slot_root& r) {
    for (auto& s : r.slot) s = make<large>();
  })));
  std::atomic<bool> done{false};
  std::thread writers[2];
  for (unsigned t = 0; t < 2; ++t)
    writers[t] = std::thread([&, t] {
      base::rng random(seed + t);
      while (!done) {
        const std::uint64_t choice = random();
        EXPECT_TRUE(succeeds(p.update([&](slot_root& r) {
          large* const l = r.slot[choice % 4];
          for (unsigned i = 0; i < 64; ++i) l->words[i] = choice;
        })));
      }
    });
  base::rng random(seed + 9);
  for (int i = 0; i < 3000; ++i) {
    const auto which = random.below(4);
    EXPECT_TRUE(succeeds(p.update([&](slot_root& r) {
      destroy(r.slot[which].load()), r.slot[which] = nullptr, r.slot[which] = make<large>();
    })));
    field<std::uint64_t>* small[300];
    const auto size_class = random.below(8);
    auto grown = p.update([&](slot_root&) {
      for (auto& s : small)
        s = size_class % 2 == 0 ? make_array<field<std::uint64_t>>(1 + size_class)
                                : make_array<field<std::uint64_t>>(2 + size_class);
    });
    ASSERT_TRUE(succeeds(grown));
    EXPECT_TRUE(succeeds(p.update([&](slot_root&) {
      for (auto* s : small) destroy(s);
    })));
    if (i % 100 == 0) {
      EXPECT_TRUE(
          fails_with(p.update([](slot_root&) { (void)make_array<field<std::uint64_t>>(1u << 20); }),
                     errc::full));  // reclaims retired memory
    }
  }
  done = true;
  for (auto& t : writers) t.join();
  EXPECT_EQ(audit(p).used_blocks, 5u);
}

}  // namespace
}  // namespace stele::testing
