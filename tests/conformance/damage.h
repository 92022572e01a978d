// Damages a small pool in every possible place, and classifies the outcomes.
//
// A target_pool is a pool of one mechanism, either closed or as a process leaves it that is killed
// after its last commit. A damage changes some bytes of its image. The image is opened with the
// steps that open a file, and the content read from it is compared with the original content. This
// runs in child processes, so that a signal or a hang is an outcome too.
#pragma once

#include <lab_media/image.h>
#include <lab_media/lab_medium.h>
#include <stele/hash_map.h>
#include <stele/map.h>
#include <stele/string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <tests/conformance/pools.h>
#include <tx/open.h>

#include <fstream>
#include <iterator>

namespace stele::testing {

struct damaged_content {
  using pool_resident = void;
  hash_map<string, string> texts;
  map<std::uint64_t, std::uint64_t> numbers;
};

// The whole content of the pool as text.
inline std::string content_of(const damaged_content& c) {
  std::string all;
  c.numbers.for_each([&](const auto& k, const auto& v) {
    all += std::to_string(k) + "=" + std::to_string(v) + "\n";
  });
  c.texts.for_each([&](const auto& k, const auto& v) { all += k.str() + "=" + v.str() + "\n"; });
  return all;
}

enum class damage_outcome : std::uint8_t {
  refused,      // opening returns an error
  detected,     // the check of the open pool returns an error
  harmless,     // the content is the original one
  newest_lost,  // the content is the one before the newest commit
  wrong,
  signal,
  hang,
};
inline constexpr unsigned outcomes = 7;

struct tally {
  std::uint64_t of[outcomes] = {};
  std::uint64_t first_bad = ~std::uint64_t{0};  // the first damage with a bad outcome
  std::uint64_t operator[](damage_outcome o) const { return of[static_cast<unsigned>(o)]; }
  std::uint64_t bad() const {
    return (*this)[damage_outcome::wrong] + (*this)[damage_outcome::signal] +
           (*this)[damage_outcome::hang];
  }
  void count(damage_outcome o, std::uint64_t damage) {
    ++of[static_cast<unsigned>(o)];
    if (o >= damage_outcome::wrong) first_bad = std::min(first_bad, damage);
  }
};

struct target_pool {
  std::string mechanism, media;
  bool killed;
  std::vector<std::byte> bytes;
  std::string content, before;  // the content, and the content before the newest commit

  std::string name() const {
    return mechanism + (media == "process" ? "" : " on " + media) +
           (killed ? ", killed" : ", closed");
  }
};

inline std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline target_pool make_target_pool(const std::string& path, const std::string& mechanism,
                                    const std::string& media, bool killed,
                                    checksums sums = checksums::automatic) {
  const auto& m = **detail::find_mechanism(mechanism);
  target_pool v{mechanism, media, killed, {}, {}, {}};
  pool_options o{.create_size = m.has_parity ? 131072u : 69632u,
                 .engine = {.mechanism = mechanism, .media = media, .block_checksums = sums}};
  if (m.home == format::home_kind::log) o.engine.log_size = 1024;
  o.engine.background = false;
  auto p = open_pool<damaged_content>(path, o);
  for (std::uint64_t i = 0; i < 120; ++i)
    EXPECT_TRUE(succeeds(p.update([&](damaged_content& c) {
      c.texts.insert("key " + std::to_string(i), std::string(i, static_cast<char>('a' + i % 26)));
      c.numbers.insert(i, i * i);
    })));
  EXPECT_TRUE(succeeds(p.update([](damaged_content& c) {
    for (std::uint64_t i = 0; i < 120; i += 3) c.numbers.erase(i);
  })));
  for (std::uint64_t i = 0; i < 6; ++i) {
    v.before = *p.read(content_of);
    EXPECT_TRUE(succeeds(p.update([&](damaged_content& c) {
      c.numbers.insert_or_assign(i, 1000 + i), c.texts.erase("key " + std::to_string(100 + i));
    })));
  }
  v.content = *p.read(content_of);
  if (killed) v.bytes = bytes_of_file(path);
  EXPECT_TRUE(succeeds(p.close()));
  if (!killed) v.bytes = bytes_of_file(path);
  return v;
}

// An image of a target_pool that can be damaged and restored.
class damaged_image {
 public:
  explicit damaged_image(const target_pool& v)
      : target_(v),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, v.bytes.size())), std::free),
        view_(memory_.get(), v.bytes.size()) {
    std::memcpy(memory_.get(), v.bytes.data(), v.bytes.size());
  }
  std::byte* bytes() { return memory_.get(); }

  // The outcome for the current bytes; restores them.
  damage_outcome classify() {
    const damage_outcome o = classify_once();
    view_.undo();
    return o;
  }

 private:
  [[nodiscard]] result<std::unique_ptr<detail::runtime>> open() {
    auto file = storage::pool_file::adopt(view_.base, view_.size);
    if (!file) return std::unexpected(file.error());
    const detail::media_choice media = media::on_image(view_, {.background = false});
    return detail::open_on(std::make_unique<detail::pool_state>(std::move(*file)), media,
                           **detail::find_mechanism(target_.mechanism),
                           {.engine = {.background = false}});
  }
  [[nodiscard]] result<std::string> read_all() {
    auto opened = open();
    if (!opened) return std::unexpected(opened.error());
    auto handle = detail::pool_handle::from_runtime(std::move(*opened), sizeof(damaged_content));
    if (!handle) return std::unexpected(handle.error());
    const pool<damaged_content> p(std::move(*handle));
    return p.read(content_of);
  }
  // Checks the bytes as they were before opening changed them.
  bool check_finds_it() {
    view_.undo();
    auto opened = open();
    return !opened || !detail::check_storage(**opened);
  }
  damage_outcome classify_once() {
    const auto said = read_all();
    if (!said) return damage_outcome::refused;
    if (*said == target_.content) return damage_outcome::harmless;
    if (check_finds_it()) return damage_outcome::detected;
    return *said == target_.before ? damage_outcome::newest_lost : damage_outcome::wrong;
  }

  const target_pool& target_;
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
  media::image_view view_;
};

// Applies damage(bytes, n) for n = 0 .. count - 1, each to an undamaged image, in child processes.
template <class Damage>
tally damage_all(const target_pool& v, std::uint64_t count, Damage&& damage) {
  struct progress {
    std::uint64_t next;
    tally so_far;
  };
  auto* const shared = static_cast<progress*>(
      ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  new (shared) progress{};
  while (shared->next < count) {
    const pid_t child = ::fork();
    if (child == 0) {
      damaged_image p(v);
      if (p.classify() != damage_outcome::harmless) ::_exit(2);  // before any damage
      for (; shared->next < count; ++shared->next) {
        const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 500'000}};
        ::setitimer(ITIMER_PROF, &limit, nullptr);
        damage(p.bytes(), shared->next);
        try {
          shared->so_far.count(p.classify(), shared->next);
        } catch (...) {
          ::abort();
        }
        std::memcpy(p.bytes(), v.bytes.data(), v.bytes.size());
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    if (WIFEXITED(status)) {
      ADD_FAILURE() << v.name() << ": the pool is not sound before it is damaged";
      break;
    }
    shared->so_far.count(
        WTERMSIG(status) == SIGPROF ? damage_outcome::hang : damage_outcome::signal,
        shared->next++);
  }
  const tally all = shared->so_far;
  ::munmap(shared, sizeof(progress));
  return all;
}

inline void report(const target_pool& v, const tally& t) {
  std::printf(
      "%-28s refused %7lu  found %5lu  harmless %7lu  newest lost %5lu  WRONG %5lu  signal %3lu  "
      "hang %3lu",
      v.name().c_str(), t[damage_outcome::refused], t[damage_outcome::detected],
      t[damage_outcome::harmless], t[damage_outcome::newest_lost], t[damage_outcome::wrong],
      t[damage_outcome::signal], t[damage_outcome::hang]);
  if (t.bad() != 0) std::printf("  first bad %lu", t.first_bad);
  std::printf("\n");
}

}  // namespace stele::testing
