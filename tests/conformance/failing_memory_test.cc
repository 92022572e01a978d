// Every allocation of ordinary memory fails in turn, alone or with all later ones. The call returns
// an error or throws std::bad_alloc, the pool stays intact, and it works again when there is
// memory. This program replaces operator new for that.
#include <base/check.h>
#include <stele/archapt_options.h>
#include <stele/kv.h>
#include <stele/log_structured_options.h>
#include <stele/stele.h>
#include <tests/conformance/child.h>
#include <tests/conformance/exercise.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

// First and last allocation number that fails; refuse_from 0: none is counted.
std::atomic<std::uint64_t> refuse_from{0}, refuse_to{0};
std::atomic<std::uint64_t> refuse_each{0};  // one in this many fails
std::atomic<std::uint64_t> taken{0};
std::atomic<std::int64_t> held{0};  // blocks that are not given back

void* take(std::size_t size, std::size_t alignment) noexcept {
  if (const std::uint64_t from = refuse_from.load(std::memory_order_relaxed); from != 0) {
    const std::uint64_t n = taken.fetch_add(1, std::memory_order_relaxed) + 1;
    if (n >= from && n <= refuse_to.load(std::memory_order_relaxed)) return nullptr;
    if (const std::uint64_t each = refuse_each.load(std::memory_order_relaxed);
        each != 0 && n % each == 0)
      return nullptr;
  }
  held.fetch_add(1, std::memory_order_relaxed);
  return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
             ? std::malloc(size)
             : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void give_back(void* p) noexcept {
  if (p != nullptr) held.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}
void* take_or_throw(std::size_t size, std::size_t alignment = 0) {
  if (void* const memory = take(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t n) {
  return take_or_throw(n);
}
void* operator new[](std::size_t n) {
  return take_or_throw(n);
}
void* operator new(std::size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return take(n, 0);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return take(n, 0);
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<std::size_t>(a));
}
// Not inlined: gcc would take the memory for that of another operator new.
[[gnu::noinline]] void operator delete(void* p) noexcept {
  give_back(p);
}
void operator delete[](void* p) noexcept {
  give_back(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  give_back(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  give_back(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  give_back(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  give_back(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  give_back(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  give_back(p);
}

namespace stele::testing {
namespace {

// While it lives, allocation k fails, or that one and all later ones until stop().
class allocation_failure {
 public:
  allocation_failure(std::uint64_t k, bool permanent) noexcept {
    taken = 0;
    refuse_to = permanent ? ~std::uint64_t{0} : k;
    refuse_from = k;
  }
  ~allocation_failure() { refuse_from = 0; }
  allocation_failure(const allocation_failure&) = delete;
  allocation_failure& operator=(const allocation_failure&) = delete;
  void stop() const noexcept { refuse_to = 0; }
  static std::uint64_t allocations() noexcept { return taken; }
};

struct memory_case {
  std::string mechanism, media;
  bool background = false;
  unsigned stride = 1;  // of k
};
pool_options options_of(const memory_case& c) {
  const bool sums = c.mechanism != "log_structured" && !c.mechanism.starts_with("archapt");
  return {.create_size = 384 << 10,
          .engine = {.mechanism = c.mechanism,
                     .media = c.media,
                     .log_size = 4096,
                     .log_count = 2,
                     .block_checksums = sums ? checksums::on : checksums::automatic,
                     .verify = verification::always,
                     .tuning = {log_structured_options{
                                    .clean_from = 0.1, .cleaners = 1, .recovery_threads = 2},
                                archapt_options{.cache_bytes = 4096,
                                                .skip = skipping::always,
                                                .checkpoint_commits = 7}},
                     .background = c.background}};
}

class failing_memory : public ::testing::TestWithParam<std::tuple<memory_case, bool>> {
 protected:
  // STELE_MEMORY_STRIDE=1 makes longer runs.
  static std::uint64_t stride(const memory_case& c) {
    return count_from("STELE_MEMORY_STRIDE", c.stride);
  }
};

// A pool that is missing, that was closed, or that a killed process left.
enum class found : std::uint8_t { missing, closed, left };
struct pool_files {
  explicit pool_files(const pool_options& o) : options(o) {
    closed_holds = use(path, options, 0, 20, [&] {
                     std::filesystem::copy_file(path, path + ".left");
                   }).acknowledged;
    std::filesystem::rename(path, path + ".closed");
    clear();
  }
  // Returns how many texts the pool has.
  std::uint64_t lay_out(found how) const {
    clear();
    if (how == found::missing) return 0;
    std::filesystem::copy_file(path + (how == found::closed ? ".closed" : ".left"), path);
    return how == found::closed ? closed_holds : closed_holds - 1;
  }
  void clear() const { std::filesystem::remove(path), std::filesystem::remove(path + ".copy"); }

  scratch_directory dir;
  const std::string path = dir.file("pool");
  const pool_options options;
  std::uint64_t closed_holds = 0;
};

// Returns false when fewer than k allocations were made.
bool fail_allocation(const pool_files& b, found how, std::uint64_t k, bool permanent) {
  const bool passes = !permanent || k % 2 == 0;  // memory is available again before the end
  const std::uint64_t texts = b.lay_out(how);
  outcome o;
  {
    const allocation_failure memory(k, permanent);
    o = use(b.path, b.options, texts, 20, [&] {
      if (passes) memory.stop();
    });
  }
  const bool hit = allocation_failure::allocations() >= k;
  EXPECT_FALSE(!permanent && o.refused_twice)
      << "one allocation failed, and the pool was not usable after it";
  EXPECT_FALSE(passes && o.opened && !o.refused_twice && !o.closed)
      << "there was memory again, and the pool could not be closed";
  if (std::filesystem::exists(b.path + ".copy"))
    (void)expect_whole(b.path + ".copy", b.options, {.acknowledged = texts, .tried = o.tried});
  (void)expect_whole(b.path, b.options, o);
  return hit;
}

bool fail_allocation_of_each(const pool_files& b, std::uint64_t k, bool permanent) {
  SCOPED_TRACE("allocation " + std::to_string(k) + " fails");
  bool hit = false;
  for (const found how : {found::missing, found::closed, found::left})
    hit = fail_allocation(b, how, k, permanent) || hit;
  return hit;
}

TEST_P(failing_memory, is_an_error_and_loses_nothing) {
  const auto& [c, permanent] = GetParam();
  const pool_files b(options_of(c));
  EXPECT_FALSE(fail_allocation_of_each(b, ~std::uint64_t{0}, permanent));
  const std::int64_t held_before = held;
  std::uint64_t k = 1;
  for (bool hit = true; hit && !HasFailure(); k += stride(c))
    hit = fail_allocation_of_each(b, k, permanent);
  EXPECT_EQ(held, held_before) << "memory that a failed call had taken was not given back";
  std::printf("%s on %s: every %llu-th of %llu allocations\n", c.mechanism.c_str(), c.media.c_str(),
              static_cast<unsigned long long>(stride(c)), static_cast<unsigned long long>(k));
  EXPECT_GT(k, 100u) << "there are more than that";
}

std::vector<memory_case> with_known_mechanisms(std::vector<memory_case> cases) {
  std::erase_if(cases, [](const memory_case& c) { return known_of({c.mechanism}).empty(); });
  return cases;
}

std::vector<memory_case> memory_cases() {
  std::vector<memory_case> all = {{"default", "file"},
                                  {"default", "process", true},
                                  {"log_structured", "process", true},
                                  {"redo-async", "process", true},
                                  {"archapt-undo", "process", true}};
  for (const std::string& m : durable_mechanisms()) all.push_back({m, "process"});
  return with_known_mechanisms(std::move(all));
}
std::string memory_case_name(const ::testing::TestParamInfo<std::tuple<memory_case, bool>>& one) {
  const auto& [c, permanent] = one.param;
  std::string name = c.mechanism + "_on_" + c.media + (c.background ? "_with_threads" : "") +
                     (permanent ? "_for_good" : "_once");
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(of, failing_memory,
                         ::testing::Combine(::testing::ValuesIn(memory_cases()), ::testing::Bool()),
                         memory_case_name);

// A body that catches std::bad_alloc and goes on: of its allocations and destructions, and of what
// it stored, all are committed or none.
struct fat {
  field<std::uint64_t> words[64];
};
struct fat_shelf {
  using pool_resident = void;
  static constexpr std::size_t places = 120;
  field<fat*> at[places];
};
class failing_memory_of_bodies : public ::testing::TestWithParam<std::string> {
 protected:
  // Each body catches.
  static void put_all(fat_shelf& s) {
    for (auto& place : s.at) try {
        if (place == nullptr) place = make<fat>();
      } catch (const std::bad_alloc&) {
      }
  }
  static void take_all(fat_shelf& s) {
    for (auto& place : s.at) try {
        if (place != nullptr) destroy(place.load());
        place = nullptr;
      } catch (const std::bad_alloc&) {
      }
  }
  static std::uint64_t blocks_reached(const pool<fat_shelf>& p) {
    return p
        .read([](const fat_shelf& s) {
          return static_cast<std::uint64_t>(
              std::ranges::count_if(s.at, [](const auto& a) { return a != nullptr; }));
        })
        .value_or(0);
  }
};

TEST_P(failing_memory_of_bodies, commits_no_half_of_an_allocation) {
  for (std::uint64_t k = 1, hits = 1; hits != 0 && !HasFailure(); ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " fails");
    scratch_directory dir;
    auto p = open_pool<fat_shelf>(dir.file("pool"), options_of({GetParam(), "process"}));
    std::uint64_t before = audit(p).used_blocks;
    hits = 0;
    for (const auto body : {put_all, take_all}) {
      if (body == take_all) {
        ASSERT_TRUE(succeeds(p.update(put_all)));
      }
      {
        const allocation_failure memory(k, false);
        (void)done([&] { return p.update(body); });
        hits += allocation_failure::allocations() >= k ? 1 : 0;
      }
      EXPECT_TRUE(succeeds(p.check()));
      // A block whose zeroing found no memory has its body's exception, and nobody points to it.
      const std::uint64_t lost = audit(p).used_blocks - blocks_reached(p) - before;
      EXPECT_LE(lost, body == put_all ? 1u : 0u);
      before += lost;
    }
    EXPECT_TRUE(succeeds(p.update(take_all)));
    EXPECT_EQ(audit(p).used_blocks, before);
  }
}
// The shared list of free blocks has no memory when a thread gives back what it has too much of.
struct cell {
  field<cell*> next;
};
TEST_P(failing_memory_of_bodies, takes_back_a_destruction_with_its_transaction) {
  constexpr unsigned cells = 8400, each = 600;  // a thread keeps 8192 free blocks of a size
  for (std::uint64_t k = 1, hits = 1; hits != 0 && !HasFailure(); ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " fails");
    scratch_directory dir;
    pool_options options = options_of({GetParam(), "process"});
    options.create_size = 4 << 20, options.engine.log_size = 0, options.engine.log_count = 1;
    options.engine.block_checksums = checksums::automatic;
    auto p = open_pool<cell>(dir.file("pool"), options);
    const auto add = [&](unsigned count) {
      return p.update([count](cell& root) {
        for (unsigned i = 0; i < count; ++i) {
          cell* const made = make<cell>();
          made->next = root.next;
          root.next = made;
        }
      });
    };
    const auto take = [&](unsigned count) {
      return p.update([count](cell& root) {
        for (unsigned i = 0; i < count; ++i) {
          cell* const old = root.next;
          root.next = old->next;
          destroy(old);
        }
      });
    };
    for (unsigned i = 0; i < cells; i += each) ASSERT_TRUE(succeeds(add(each)));
    for (unsigned i = 0; i < cells; i += each) ASSERT_TRUE(succeeds(take(each)));
    ASSERT_TRUE(succeeds(add(1)));
    const std::uint64_t before = audit(p).used_blocks;
    bool kept;
    {
      const allocation_failure memory(k, false);
      kept = done([&] { return take(1); });
      hits = allocation_failure::allocations() >= k ? 1 : 0;
    }
    EXPECT_EQ(audit(p).used_blocks, before - (kept ? 1 : 0));
    if (!kept) {
      EXPECT_TRUE(succeeds(take(1)));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(of, failing_memory_of_bodies,
                         ::testing::ValuesIn(known_of({"default", "redo", "log_structured"})),
                         plain_name);

// The pool stays open, and other processes were told that nobody serves them.
TEST(failing_memory_at_close, serves_readers_again) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  auto p = open_pool<texts_root>(path, {.create_size = 1 << 20, .engine = {.media = "process"}});
  {
    const allocation_failure memory(1, false);
    EXPECT_THROW((void)p.close(), std::bad_alloc);
  }
  EXPECT_TRUE(succeeds(pool<texts_root>::open_read_only(path)));
  EXPECT_TRUE(succeeds(p.update([](texts_root& r) { put_text(r, 0); })));
  EXPECT_TRUE(succeeds(p.close()));
}

// A reader of a pool that another process may open. Without memory to attach again it stayed in its
// transaction, and what pauses the reader's pool waited for it; without memory for the sentence
// that the writer has gone, the process ended.
class failing_memory_of_readers : public ::testing::Test {
 protected:
  void SetUp() override {
    write();
    auto opened = pool<texts_root>::open_read_only(path_);
    ASSERT_TRUE(succeeds(opened));
    reads_.emplace(std::move(*opened));
    ::alarm(60);
  }
  void TearDown() override { ::alarm(0); }
  void write() {
    writer_.emplace(
        open_pool<texts_root>(path_, {.create_size = 1 << 20, .engine = {.media = "process"}}));
    ASSERT_TRUE(succeeds(writer_->update([&](texts_root& r) { put_text(r, written_); })));
    ++written_;
  }
  std::uint64_t seen() {
    return reads_->read([](const texts_root& r) { return r.updates.load(); }).value_or(0);
  }
  void expect_seen_by_other_threads() {
    std::thread([&] { EXPECT_EQ(seen(), written_); }).join();
    EXPECT_EQ(seen(), written_);
  }

  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  std::uint64_t written_ = 0;
  std::optional<pool<texts_root>> writer_, reads_;
};

TEST_F(failing_memory_of_readers, lets_others_go_on) {
  for (std::uint64_t k = 1, hits = 1; hits != 0 && !HasFailure(); ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " fails");
    hits = 0;
    for (const bool is_open : {false, true}) {
      is_open ? write() : writer_.reset();
      {
        const allocation_failure memory(k, false);
        (void)done([&]() -> result<> {
          auto read = reads_->read([](const texts_root& r) { return r.updates.load(); });
          return read ? result<>{} : std::unexpected(std::move(read.error()));
        });
        hits += allocation_failure::allocations() >= k ? 1 : 0;
      }
      expect_seen_by_other_threads();
    }
  }
}

// A read that cannot run again keeps the moment of its begin, for which it needs memory.
TEST_F(failing_memory_of_readers, begins_at_a_moment_or_not_at_all) {
  writer_.reset();
  for (std::uint64_t k = 1; k < 8; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " fails");
    child writer([&](const word_sender& send) {
      auto p = pool<texts_root>::open(path_, {.engine = {.media = "process"}});
      if (!p || !p->update([&](texts_root& r) { put_text(r, written_); })) ::_exit(1);
      for (send(1);;) ::pause();
    });
    std::uint64_t word = 0;
    ASSERT_TRUE(writer.receive(word));
    ++written_;
    expect_seen_by_other_threads();  // this thread is attached
    bool began = false;
    {
      const allocation_failure memory(k, false);
      (void)done([&]() -> result<> {
        began = detail::begin_transaction(reads_->core(), false, durability::durable,
                                          detail::code_between::may_wait) ==
                detail::begin_status::started;
        return {};
      });
    }
    if (began) {
      EXPECT_EQ(detail::commit_transaction(), detail::commit_status::committed);
    }
    (void)writer.kill_and_drain(0);
    expect_seen_by_other_threads();
  }
}

// It ends the moment although the writer has gone.
TEST_F(failing_memory_of_readers, ends_a_moment_whose_writer_has_gone) {
  for (std::uint64_t k = 1; k < 8; ++k) {
    ASSERT_EQ(detail::begin_transaction(reads_->core(), false, durability::durable,
                                        detail::code_between::may_wait),
              detail::begin_status::started);
    EXPECT_EQ(seen(), written_);
    std::thread([&] { writer_.reset(); }).join();
    {
      const allocation_failure memory(k, k % 2 == 0);
      (void)done([&]() -> result<> { return detail::commit_transaction(), result<>{}; });
    }
    write();
    expect_seen_by_other_threads();
  }
}

// A held transaction in whose calls an allocation fails ends, or stays open or lost; nothing of it
// is left when its object is gone, and the thread is in no transaction.
struct texts_of_holder {
  using pool_resident = void;
  hash_map<std::uint64_t, string> texts;
};
class failing_memory_of_holders : public ::testing::TestWithParam<std::string> {};

bool commits_text(pool<texts_of_holder>& p, std::uint64_t n, durability d) {
  try {
    auto t = p.begin(d);
    if (!t) return false;
    p.root(*t).texts.insert(n, text_of(n));
    if (!t->retry()) return false;
    p.root(*t).texts.insert(n, text_of(n));
    return t->commit().has_value();
  } catch (const std::bad_alloc&) {
  } catch (const conflict&) {
  } catch (const failure&) {
  }
  return false;
}

TEST_P(failing_memory_of_holders, leaves_all_of_a_transaction_or_nothing) {
  for (const concurrency policy : all_policies) {
    scratch_directory dir;
    pool_options options = options_of({GetParam(), "process"});
    options.policy = policy, options.create_size = 4 << 20;
    auto p = open_pool<texts_of_holder>(dir.file("pool"), options);
    bool hit = true;
    for (std::uint64_t k = 1; hit; ++k) {
      bool committed = false;
      {
        const allocation_failure memory(k, k % 2 == 0);
        committed = commits_text(p, k, k % 3 == 0 ? durability::ordered : durability::durable);
        hit = allocation_failure::allocations() >= k;
      }
      EXPECT_FALSE(in_transaction());
      EXPECT_TRUE(hit || committed);
      EXPECT_EQ(p.read([&](const texts_of_holder& r) { return r.texts.contains(k); }).value(),
                committed);
    }
    EXPECT_TRUE(succeeds(p.check()));
    EXPECT_TRUE(succeeds(p.close()));
  }
}
INSTANTIATE_TEST_SUITE_P(of, failing_memory_of_holders, ::testing::ValuesIn(all_mechanisms()),
                         plain_name);

// Threads that run out of memory at any time go on: no lock stays held, and no thread waits for one
// that is gone.
struct crowd {
  using pool_resident = void;
  hash_map<std::uint64_t, string> texts;
  field<std::uint64_t> updates;
};
class failing_memory_of_threads
    : public ::testing::TestWithParam<std::tuple<memory_case, concurrency>> {};

void work_in_crowd(pool<crowd>& p, std::uint64_t writer, std::uint64_t rounds) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const auto move_on = [&] {
      return p.update(
          [&](crowd& r) {
            r.texts.insert(writer << 32 | i, text_of(i));
            if (i != 0) r.texts.erase(writer << 32 | (i - 1));
            r.updates += 1;
          },
          i % 3 == 1 ? durability::ordered : durability::durable);
    };
    unsigned tries = 1;
    while (!done(move_on) && tries != 1000) ++tries;
    if (tries == 1000) throw std::runtime_error("an update was refused again and again");
    if (i % 16 == 7)
      (void)done([&] { return p.read([](const crowd& r) { return r.texts.size(); }); });
    if (i % 64 == 9) (void)done([&] { return p.sync(); });
    if (i % 64 == 33) (void)done([&] { return p.check(); });
  }
}

TEST_P(failing_memory_of_threads, lets_them_go_on) {
  const auto& [c, policy] = GetParam();
  constexpr std::uint64_t writers = 3, rounds = 600;
  scratch_directory dir;
  pool_options options = options_of(c);
  options.policy = policy, options.create_size = 2 << 20;
  auto p = open_pool<crowd>(dir.file("pool"), options);
  {
    allocation_failure counting(~std::uint64_t{0}, false);
    std::vector<std::thread> threads;
    for (std::uint64_t w = 0; w < writers; ++w)
      threads.emplace_back([&p, w] { work_in_crowd(p, w, rounds); });
    refuse_each = 23;  // set after the threads have started
    for (auto& t : threads) t.join();
    refuse_each = 0;
  }
  EXPECT_TRUE(succeeds(p.close()));
  auto again = open_pool<crowd>(dir.file("pool"), options);
  EXPECT_TRUE(succeeds(again.check()));
  EXPECT_EQ(again.read([](const crowd& r) { return r.updates.load(); }).value(), writers * rounds);
  EXPECT_EQ(again.read([](const crowd& r) { return r.texts.size(); }).value(), writers);
}
INSTANTIATE_TEST_SUITE_P(
    of, failing_memory_of_threads,
    ::testing::Combine(::testing::ValuesIn(with_known_mechanisms({{"default", "process", true},
                                                                  {"default", "file", true},
                                                                  {"blurred", "process"},
                                                                  {"archapt-undo", "process", true},
                                                                  {"log_structured", "process",
                                                                   true}})),
                       ::testing::Values(concurrency::stm, concurrency::single_writer)),
    [](const auto& one) {
      return std::string(std::get<0>(one.param).mechanism == "archapt-undo"
                             ? "archapt"
                             : std::get<0>(one.param).mechanism) +
             "_on_" + std::get<0>(one.param).media + "_" + name_of(std::get<1>(one.param));
    });

// The C functions return a code and a sentence, and throw no exception.
struct c_store {
  stele_kv* kv = nullptr;
  std::uint64_t acknowledged = 0, tried = 0;
  bool unexpected = false;

  bool done(int code) {
    unexpected = unexpected ||
                 (code != STELE_OK && (code != STELE_NO_MEMORY || *stele_error_message() == 0));
    return code == STELE_OK;
  }
};
std::string key_of(std::uint64_t n) {
  return "key" + std::to_string(n);
}

int put_two(stele_tx*, stele_kv* kv, void* arg) {
  auto& s = *static_cast<c_store*>(arg);
  char key[32], twin[32];
  const auto size = static_cast<std::size_t>(
      std::snprintf(key, sizeof key, "key%llu", static_cast<unsigned long long>(s.tried)));
  const auto twin_size = static_cast<std::size_t>(
      std::snprintf(twin, sizeof twin, "twin%llu", static_cast<unsigned long long>(s.tried)));
  (void)stele_kv_put(kv, key, size, key, size, STELE_DURABLE);
  (void)stele_kv_put(kv, twin, twin_size, key, size, STELE_DURABLE);
  return 0;
}

void walk(c_store& s) {
  stele_kv_cursor* cursor = nullptr;
  if (!s.done(stele_kv_walk(s.kv, nullptr, 0, nullptr, 0, &cursor))) return;
  stele_kv_item item;
  for (int code = STELE_OK; code == STELE_OK;)
    if (code = stele_kv_next(cursor, &item); code != STELE_NOT_FOUND) (void)s.done(code);
  stele_kv_cursor_free(cursor);
}

void use_by_c(c_store& s, const char* path) {
  stele_options o = STELE_OPTIONS_INIT;
  o.create_size = 256 << 10, o.media = "process", o.no_background = 1, o.log_size = 4096,
  o.log_count = 2;
  if (!s.done(stele_kv_open(path, &o, &s.kv)) && !s.done(stele_kv_open(path, &o, &s.kv))) return;
  for (unsigned i = 0; i < 40; ++i) {
    const bool kept = s.done(stele_kv_update(s.kv, put_two, &s, STELE_DURABLE)) ||
                      s.done(stele_kv_update(s.kv, put_two, &s, STELE_DURABLE));
    ++s.tried;
    if (!kept) break;
    s.acknowledged = s.tried;
  }
  char value[32];
  std::size_t size = 0;
  if (s.acknowledged != 0) (void)s.done(stele_kv_get(s.kv, "key0", 4, value, sizeof value, &size));
  walk(s);
  (void)s.done(stele_kv_check(s.kv));
  (void)s.done(stele_kv_sync(s.kv));
  (void)s.done(stele_kv_close(s.kv));
}

void expect_pairs(const std::string& path, const c_store& s) {
  auto kv = kv::open(path, {.create_size = 256 << 10});
  ASSERT_TRUE(succeeds(kv));
  EXPECT_TRUE(succeeds(kv->check()));
  const std::size_t count = kv->size().value();
  EXPECT_EQ(count % 2, 0u) << "half of a transaction";
  EXPECT_GE(count / 2, s.acknowledged);
  EXPECT_LE(count / 2, s.tried);
  for (std::uint64_t n = 0; n < count / 2; ++n) EXPECT_EQ(kv->get(key_of(n)).value(), key_of(n));
}

class failing_memory_in_c : public ::testing::TestWithParam<bool> {};
TEST_P(failing_memory_in_c, is_a_code) {
  std::uint64_t k = 1;
  for (bool hit = true; hit && !HasFailure(); ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k) + " fails");
    scratch_directory dir;
    const std::string path = dir.file("store");
    c_store s;
    {
      const allocation_failure memory(k, GetParam());
      use_by_c(s, path.c_str());
      hit = allocation_failure::allocations() >= k;
    }
    EXPECT_FALSE(s.unexpected) << "another code than that of a shortage, or no sentence";
    EXPECT_TRUE(GetParam() || s.acknowledged == 40)
        << "one allocation failed, and the store was not usable after it";
    expect_pairs(path, s);
  }
  EXPECT_GT(k, 50u) << "there are more than that";
}
INSTANTIATE_TEST_SUITE_P(of, failing_memory_in_c, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "permanent" : "once"; });

}  // namespace
}  // namespace stele::testing
