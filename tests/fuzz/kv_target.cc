// A key-value store with contradictory content, with repaired checksums or without any. Reads and
// writes must return errors or answers; no signals, endless walks or stores outside the heap.
#include <containers/content_copy.h>
#include <fmt/format.h>
#include <format/kv_layout.h>
#include <stele/kv.h>
#include <tests/format/specimens.h>
#include <tests/fuzz/target.h>

#include <chrono>
#include <filesystem>

namespace stele::fuzz {

namespace {

constexpr unsigned keys = 260;

// Keys of 8 bytes, where many nodes of the ordered index fork, and long keys with common prefixes,
// one of which other keys extend.
std::string key_of(unsigned i) {
  if (i % 3 == 0) return fmt::format("{:08}", i * 7);
  if (i % 3 == 1) return std::string(i % 40 + 1, 'p') + static_cast<char>(i % 256);
  return fmt::format("a key that begins as many do, number {}", i);
}

void fill(kv& store) {
  for (unsigned i = 0; i < keys; ++i)
    if (!store.put(key_of(i), std::string(i % 90, 'v'))) return;
  for (unsigned i = 0; i < keys; i += 7) (void)store.erase(key_of(i));
}
// Items that expire, and named stores.
void fill_more(kv& store) {
  using namespace std::chrono_literals;
  for (unsigned i = 1; i < keys; i += 9) (void)store.put_for(key_of(i), "timed", 1h);
  for (const char* name : {"one", "two"})
    if (auto named = store.open_store(name))
      for (unsigned i = 0; i < 20; ++i) (void)named->put_for(key_of(i), "v", 1h * (i + 1));
  (void)store.add("sum", 7);
}

bytes make_store(const std::string& mechanism, std::size_t size, const std::string& media,
                 bool more) {
  const std::string path = scratch() + "/kv-seed";
  std::filesystem::remove(path);
  auto store =
      kv::open(path, {.create_size = size,
                      .engine = {.mechanism = mechanism, .media = media, .background = false}});
  if (store) fill(*store);
  if (store && more) fill_more(*store);
  if (!store || !store->close()) return {};
  std::FILE* const f = std::fopen(path.c_str(), "rb");
  bytes all(std::filesystem::file_size(path));
  const std::size_t read = std::fread(all.data(), 1, all.size(), f);
  std::fclose(f);
  all.resize(read);
  return all;
}

// The only allowed outcome for damaged content is an error with a sentence.
std::string judged(const char* what, const error& e) {
  if (e.message.size() < 12)
    return fmt::format("{} says '{}', which is no sentence", what, e.message);
  return "";
}
template <class Result>
std::string judged(const char* what, const Result& r) {
  return r ? "" : judged(what, r.error());
}

// Both ways to walk a store end.
std::string walk(const kv& store, bool backward) {
  auto cursor = store.walk({}, {});
  for (;;) {
    const auto more = backward ? cursor.prev() : cursor.next();
    if (!more || !*more) return judged("a cursor", more);
  }
}
std::string read_all(const kv& store) {
  for (unsigned i = 0; i < keys; i += 3)
    if (auto bad = judged("get", store.get(key_of(i))); !bad.empty()) return bad;
  std::vector<std::string> names;
  for (unsigned i = 0; i < keys; i += 4) names.push_back(key_of(i));
  const std::vector<std::string_view> wanted(names.begin(), names.end());
  if (auto bad = judged("get_many", store.get_many(wanted, [](auto, auto) {})); !bad.empty())
    return bad;
  if (auto bad = judged("range", store.range("a", {}, 40)); !bad.empty()) return bad;
  if (auto bad = judged("range", store.range({}, {}, 1 << 20)); !bad.empty()) return bad;
  if (auto bad = judged("size", store.size()); !bad.empty()) return bad;
  if (auto bad = judged("statistics", store.statistics()); !bad.empty()) return bad;
  const auto expiry = store.read([](const kv::view& v) { return v.expiry(key_of(1)); });
  if (auto bad = judged("expiry", expiry); !bad.empty()) return bad;
  const auto blocks = store.read([&](const kv::view&) { store.visit_blocks([](const void*) {}); });
  if (auto bad = judged("visit_blocks", blocks); !bad.empty()) return bad;
  if (auto bad = walk(store, false); !bad.empty()) return bad;
  return walk(store, true);
}
std::string change_all(kv& store) {
  for (unsigned i = 0; i < keys; i += 5) {
    if (auto bad = judged("put", store.put(key_of(i), std::string(i % 90, 'w'))); !bad.empty())
      return bad;
    if (auto bad = judged("put", store.put(key_of(i + 1), std::string(200, 'x'))); !bad.empty())
      return bad;
    if (auto bad = judged("put", store.put(key_of(i) + "new", "y")); !bad.empty()) return bad;
    if (auto bad = judged("erase", store.erase(key_of(i + 2))); !bad.empty()) return bad;
    const auto modified = store.modify(key_of(i + 3), [](auto& v) { v = v.value_or("") + "z"; });
    if (auto bad = judged("modify", modified); !bad.empty()) return bad;
    const auto timed = store.put_for(key_of(i + 4), "t", std::chrono::hours(1));
    if (auto bad = judged("put_for", timed); !bad.empty()) return bad;
  }
  if (auto bad = judged("add", store.add("sum", 1)); !bad.empty()) return bad;
  return judged("remove_expired", store.remove_expired(8));
}
// The store without a name and the named ones.
std::string use_all(kv& store) {
  if (auto bad = read_all(store); !bad.empty()) return bad;
  if (auto bad = change_all(store); !bad.empty()) return bad;
  const auto names = store.stores();
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    if (auto named = store.open_store(name, kv::if_missing::refuse)) {
      if (auto bad = read_all(*named); !bad.empty()) return bad;
      if (auto bad = change_all(*named); !bad.empty()) return bad;
    }
    if (auto bad = judged("drop_store", store.drop_store(name)); !bad.empty()) return bad;
  }
  return read_all(store);
}

// What is left of the store makes a sound store, whatever the content is.
std::string salvage(const std::string& path) {
  const std::string saved = path + "-saved";
  std::filesystem::remove(saved);
  const auto copied = detail::copy_content(path, saved, {.allow_losses = true});
  if (!copied) return judged("salvage", copied);
  const auto store = kv::open(saved, {.engine = {.media = "process", .background = false}});
  if (!store) return "what was salvaged does not open: " + store.error().message;
  if (const auto sound = store->check(); !sound)
    return "what was salvaged is not sound: " + sound.error().message;
  return "";
}

}  // namespace

std::string run_kv(std::span<const std::byte> input) {
  if (input.size() < format::front_size) return "";
  const std::string path = scratch() + "/kv";
  write_file(path, input);
  if (auto bad = salvage(path); !bad.empty()) return bad;
  auto store = kv::open(
      path, {.engine = {.media = "process", .verify = verification::never, .background = false}});
  if (!store) return judged("opening", store.error());
  (void)store->check();
  if (auto bad = use_all(*store); !bad.empty()) return bad;
  return judged("closing", store->close());
}

std::vector<bytes> kv_seeds() {
  return {make_store("default", 256 << 10, "process", false),
          make_store("log_structured", 128 << 10, "process", false),
          make_store("default", 256 << 10, "adr", true)};
}

}  // namespace stele::fuzz
