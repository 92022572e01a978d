// Kills writers with SIGKILL at random moments, again and again on one pool. Every time the pool
// opens with a prefix of each thread's commits that contains all acknowledged ones.
//
// Each thread has its own chain of objects. Its k-th commit makes the chain a function of k, so the
// whole content is checked against two numbers. The policy and the number of threads change from
// kill to kill. After most kills the test inspects the pool; after the others the next writer
// recovers it, and may be killed while it does. STELE_KILLS sets the number of kills of all
// settings together; STELE_SEED repeats the choices.
#include <base/rng.h>
#include <sys/mman.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::uint64_t keys = 64;
constexpr std::size_t most_threads = 2;

struct object {
  field<std::uint64_t> key, commit;
  field<object*> next;
  field<std::uint64_t> bulk[24];
};
struct alignas(64) chain {
  field<std::uint64_t> commit;
  field<object*> first;
};
struct root {
  chain chains[most_threads];
};

struct step {
  std::uint64_t key;
  std::uint64_t objects;  // this many keys from `key` on are renewed; 0: `key` is dropped
};
step step_of(std::size_t of, std::uint64_t commit) {
  base::rng random(commit * 77 + of);
  return {random.below(keys),
          random.below(8) == 0 ? 0 : 1 + random.below(random.below(16) == 0 ? 40 : 3)};
}

field<object*>* link_to(chain& c, std::uint64_t key) {
  auto* link = &c.first;
  while (link->load() != nullptr && (*link)->key < key) link = &(*link)->next;
  return link;
}
void renew(chain& c, std::uint64_t key, std::uint64_t commit, bool keep) {
  auto* link = link_to(c, key);
  object* next = *link;
  if (next != nullptr && next->key == key) {
    object* const old = next;
    next = old->next;
    destroy(old);
  }
  if (keep) {
    auto* o = make<object>();
    o->key = key, o->commit = commit, o->next = next;
    for (auto& b : o->bulk) b = commit;
    next = o;
  }
  *link = next;
}

void run_commit(chain& c, std::size_t of, std::uint64_t commit) {
  const step s = step_of(of, commit);
  c.commit = commit;
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(s.objects, 1); ++i)
    renew(c, (s.key + i) % keys, commit, s.objects != 0);
}

using content = std::map<std::uint64_t, std::uint64_t>;  // maps a key to the commit that renewed it

// The content of a chain after so many commits; the number only grows.
class expected {
 public:
  explicit expected(std::size_t of) : of_(of) {}
  const content& after(std::uint64_t commits) {
    while (at_ < commits) apply(++at_);
    return content_;
  }

 private:
  void apply(std::uint64_t commit) {
    const step s = step_of(of_, commit);
    for (std::uint64_t i = 0; i < s.objects; ++i) content_[(s.key + i) % keys] = commit;
    if (s.objects == 0) content_.erase(s.key);
  }
  std::size_t of_;
  std::uint64_t at_ = 0;
  content content_;
};

// What writers have acknowledged, kept for later writers.
struct words {
  std::atomic<std::uint64_t> acknowledged[most_threads];
  std::atomic<std::uint64_t> wrong;  // checks that failed in a writer
};
class shared_words {
 public:
  shared_words()
      : words_(::mmap(nullptr, sizeof(words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0)) {
    if (words_ == MAP_FAILED) std::abort();
  }
  ~shared_words() { ::munmap(words_, sizeof(words)); }
  shared_words(const shared_words&) = delete;
  shared_words& operator=(const shared_words&) = delete;
  words* operator->() const noexcept { return static_cast<words*>(words_); }

 private:
  void* words_;
};

class trial {
 public:
  trial(std::string mechanism, std::string media)
      : mechanism_(std::move(mechanism)), media_(std::move(media)) {}

  // Kills the writer after a random time, or after a random number of commits.
  void kill_a_writer(base::rng& random) {
    const concurrency policy = random.below(2) != 0 ? concurrency::stm : concurrency::single_writer;
    const std::size_t threads = 1 + random.below(most_threads);
    const std::uint64_t so_far = acknowledged();
    child writer([&](const word_sender&) { write(policy, threads); });
    if (random.below(2) != 0)
      ::usleep(static_cast<useconds_t>(random.below(std::uint64_t{64} << random.below(6))));
    else
      wait_for(so_far + 1 + random.below(40));
    writer.kill_and_drain(0);
    idle_ += acknowledged() == so_far;
  }

  // What is wrong with the pool after the kills; empty: nothing.
  std::string look() {
    if (words_->wrong != 0) return "a writer did not find what was acknowledged, or failed";
    auto p = open_pool<root>(dir_.file("pool"), options(concurrency::stm));
    return problem(p);
  }
  // look() in a child process, for pools that may kill it.
  bool looks_sound() {
    child looker([&](const word_sender& send) {
      ::alarm(5);
      if (look().empty()) send(1);
    });
    return looker.drain(0) == 1;
  }

  std::uint64_t acknowledged() const { return words_->acknowledged[0] + words_->acknowledged[1]; }
  std::uint64_t idle() const { return idle_; }  // kills before any commit was acknowledged
  // Recovered commits that had not been acknowledged.
  std::uint64_t beyond() const { return beyond_; }

 private:
  pool_options options(concurrency policy) const {
    auto o = setting{mechanism_, media_, policy}.options(512 << 10);
    o.engine.log_size = 4096, o.engine.log_count = most_threads;
    return o;
  }

  void wait_for(std::uint64_t commits) const {
    // It may have died by itself.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (acknowledged() < commits && words_->wrong == 0 &&
           std::chrono::steady_clock::now() < deadline)
      ::usleep(1);
  }

  // Each chain must hold all acknowledged commits, and may hold the one in flight.
  std::string problem(const pool<root>& p) {
    std::size_t objects = 0;
    for (std::size_t c = 0; c < most_threads; ++c) {
      const std::uint64_t before = words_->acknowledged[c];
      content found;
      bool whole = true;
      const auto commit = p.read([&](const root& r) {
        found.clear();
        for (const object* o = r.chains[c].first; o != nullptr && found.size() <= keys;
             o = o->next) {
          found[o->key] = o->commit;
          for (const auto& b : o->bulk) whole = whole && b == o->commit;
        }
        return r.chains[c].commit.load();
      });
      if (!commit) return commit.error().message;
      if (*commit < before || *commit > before + 1)
        return std::to_string(*commit) + " commits were found, " + std::to_string(before) +
               " had been acknowledged";
      if (!whole || found != expected_[c].after(*commit))
        return "the content is not that after " + std::to_string(*commit) + " commits";
      words_->acknowledged[c] = *commit;  // it was recovered, so it must stay
      beyond_ += *commit - before;
      objects += found.size();
    }
    const auto sum = p.core().state().heap.audit();
    if (!sum) return sum.error().message;
    return sum->used_blocks == objects + 1 ? "" : "blocks are lost, or used twice";
  }

  // Runs in the writer's process.
  void write(concurrency policy, std::size_t threads) try {
    auto p = open_pool<root>(dir_.file("pool"), options(policy));
    if (const std::string wrong = problem(p); !wrong.empty()) throw std::runtime_error(wrong);
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        for (std::uint64_t n = words_->acknowledged[t] + 1; words_->wrong == 0; ++n) {
          if (!p.update([&](root& r) { run_commit(r.chains[t], t, n); })) ++words_->wrong;
          words_->acknowledged[t] = n;
        }
      });
  } catch (const std::exception&) {
    ++words_->wrong;
    throw;
  }

  std::string mechanism_, media_;
  scratch_directory dir_;
  shared_words words_;
  std::array<expected, most_threads> expected_ = {expected(0), expected(1)};
  std::uint64_t idle_ = 0, beyond_ = 0;
};

const std::vector<std::string> media = {"process", "adr", "file"};

class killed_writer : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(killed_writer, loses_nothing_acknowledged_and_leaves_no_half) {
  const std::size_t settings = durable_mechanisms().size() * media.size();
  const std::uint64_t seed = seed_from("STELE_SEED"),
                      kills = (count_from("STELE_KILLS", 6000) + settings - 1) / settings;
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  trial t(std::get<0>(GetParam()), std::get<1>(GetParam()));
  for (std::uint64_t k = 1; k <= kills; ++k) {
    t.kill_a_writer(random);
    if (k < kills && random.below(3) == 0) continue;  // the next writer recovers
    const std::string wrong = t.look();
    ASSERT_TRUE(wrong.empty()) << "after " << k << " kills: " << wrong;
  }
  std::printf(
      "  %lu kills, %lu of them before the first commit; %lu commits, %lu found that nobody had "
      "acknowledged; "
      "STELE_SEED=%lu\n",
      kills, t.idle(), t.acknowledged(), t.beyond(), seed);
}

TEST(killed_writer, that_protects_nothing_is_found_out) {
  base::rng random(seed_from("STELE_SEED"));
  trial t("none", "process");
  bool sound = true;
  for (int k = 0; k < 500 && sound; ++k) {
    t.kill_a_writer(random);
    sound = t.looks_sound();
  }
  EXPECT_FALSE(sound);
}

INSTANTIATE_TEST_SUITE_P(all, killed_writer,
                         ::testing::Combine(::testing::ValuesIn(durable_mechanisms()),
                                            ::testing::ValuesIn(media)),
                         setting_name);

}  // namespace
}  // namespace stele::testing
