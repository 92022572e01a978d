// Uses a pool while something fails: everything that makes system calls or allocates memory, and a
// check of the content afterwards.
//
// use() puts numbered texts in order. Each update also moves a marker from the previous text to its
// own, so a state in which the two disagree is torn. A refused update is tried once more. After one
// failure that passes it must then succeed, unless the pool is poisoned. A refusal is an error or
// std::bad_alloc.
#pragma once

#include <stele/hash_map.h>
#include <stele/string.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <new>
#include <optional>

namespace stele::testing {

struct texts_root {
  using pool_resident = void;
  hash_map<std::uint64_t, string> texts;
  hash_map<std::uint64_t, std::uint64_t> newest;  // holds the last text's number only
  field<std::uint64_t> updates;
};
// Some texts are longer than a log of 4 KiB.
inline std::string text_of(std::uint64_t n) {
  return std::string(n % 11 == 5 ? 5000 : 40 + n % 200, static_cast<char>('a' + n % 26));
}

struct outcome {
  std::uint64_t acknowledged = 0, tried = 0;  // counts of texts
  bool opened = false, refused_twice = false, closed = false;
};

// Returns false when `work` was refused. A refusal must be an error with a sentence, or
// std::bad_alloc.
template <class Work>
bool done(Work&& work) {
  try {
    const auto r = work();
    EXPECT_TRUE(r.has_value() || !r.error().message.empty());
    return r.has_value();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

inline void put_text(texts_root& r, std::uint64_t n) {
  r.texts.insert(n, text_of(n));
  r.newest.insert(n, n);
  if (n != 0) r.newest.erase(n - 1);
  r.updates += 1;
}

// An update that is cancelled.
inline void put_and_cancel(pool<texts_root>& p, std::uint64_t n) {
  const bool kept = done([&] {
    return p.update([&](texts_root& r) -> result<> {
      put_text(r, n);
      return std::unexpected(error{errc::cancelled, "taken back"});
    });
  });
  EXPECT_FALSE(kept);
}

// An ordered commit counts as acknowledged when the next durable commit does.
inline bool put_next(pool<texts_root>& p, outcome& o, bool ordered) {
  const std::uint64_t n = o.tried;
  const auto put = [&] {
    return p.update(
        [&](texts_root& r) {
          if (!r.texts.contains(n)) put_text(r, n);
        },
        ordered ? durability::ordered : durability::durable);
  };
  const bool kept = done(put) || done(put);
  o.tried = n + 1;
  if (!kept) o.refused_twice = true;
  if (kept && !ordered) o.acknowledged = n + 1;
  return kept;
}

// Asks to be told when the newest commit is durable or can no longer become durable.
inline bool ask(pool<texts_root>& p, std::atomic<unsigned>& told) {
  return done([&]() -> result<> {
    p.when_durable(p.committed(), [&told](const result<>&) { ++told; });
    return {};
  });
}

// Opens a pool of `before` texts, puts `count` more, grows, backs up, checks, closes. Calls
// `at_the_end()` before the last text.
template <class End>
outcome use(const std::string& path, const pool_options& options, std::uint64_t before,
            unsigned count, End&& at_the_end) {
  outcome o{.acknowledged = before, .tried = before};
  unsigned asked = 0;
  std::atomic<unsigned> told{0};
  std::optional<pool<texts_root>> p;
  o.opened = done([&]() -> result<> {
    auto opened = pool<texts_root>::open(path, options);
    if (!opened) return std::unexpected(opened.error());
    p.emplace(std::move(*opened));
    return {};
  });
  if (!o.opened) return o;
  const auto read = [&] {
    return p->read([&](const texts_root& r) { EXPECT_EQ(r.texts.size(), before); });
  };
  if (!done(read) && !done(read)) o.refused_twice = true;
  for (unsigned i = 0; i + 1 < count && !o.refused_twice; ++i) {
    if (i % 4 == 1) put_and_cancel(*p, o.tried);
    (void)put_next(*p, o, i % 5 == 3);
    if (ask(*p, told)) ++asked;
  }
  (void)done([&] { return p->sync(); });
  (void)done([&] { return p->grow(p->space().size_bytes + (64 << 10)); });
  (void)done([&] { return p->backup(path + ".copy"); });
  (void)done([&] { return p->check(); });
  at_the_end();
  if (!o.refused_twice) (void)put_next(*p, o, false);
  o.closed = done([&] { return p->close(); });
  p.reset();
  EXPECT_EQ(told, asked) << "who waits for a commit is told once";
  return o;
}
inline outcome use(const std::string& path, const pool_options& options, std::uint64_t before) {
  return use(path, options, before, 24, [] {});
}

// Checks the texts: all acknowledged ones, in order, and all or nothing of the one in flight.
[[nodiscard]] inline result<std::uint64_t> whole_texts(const texts_root& r) {
  const auto damage = [](const std::string& what) {
    return std::unexpected(error{errc::corrupt, what});
  };
  if (auto sound = r.texts.check(); !sound) return std::unexpected(sound.error());
  if (auto sound = r.newest.check(); !sound) return std::unexpected(sound.error());
  const std::uint64_t count = r.texts.size();
  for (std::uint64_t n = 0; n < count; ++n)
    if (auto found = r.texts.find(n); found == r.texts.end() || !found->second.equal(text_of(n)))
      return damage("text " + std::to_string(n) + " is not what was put");
  if (r.newest.size() != (count != 0) || (count != 0 && !r.newest.contains(count - 1)) ||
      r.updates != count)
    return damage("the marker is not at the last text");
  return count;
}
// Returns how many texts there are.
inline std::uint64_t expect_whole(const std::string& path, const pool_options& options,
                                  const outcome& o) {
  auto p = pool<texts_root>::open(path, options);
  if (!p && o.acknowledged == 0 && !std::filesystem::exists(path)) return 0;
  EXPECT_TRUE(succeeds(p));
  if (!p) return 0;
  EXPECT_TRUE(succeeds(p->check()));
  const auto read = p->read(whole_texts);
  EXPECT_TRUE(succeeds(read));
  if (!read) return 0;
  EXPECT_GE(*read, o.acknowledged);
  EXPECT_LE(*read, o.tried);
  return *read;
}

}  // namespace stele::testing
