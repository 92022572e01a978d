// A key-value store with contradictory content and repaired checksums. Reads and writes must return
// errors or answers; no signals, endless walks or stores outside the heap.
#include <containers/content_copy.h>
#include <fmt/format.h>
#include <format/kv_layout.h>
#include <stele/kv.h>
#include <tests/format/specimens.h>
#include <tests/fuzz/target.h>

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

bytes make_store(const std::string& mechanism, std::size_t size) {
  const std::string path = scratch() + "/kv-seed";
  std::filesystem::remove(path);
  auto store = kv::open(
      path, {.create_size = size, .mechanism = mechanism, .media = "process", .background = false});
  for (unsigned i = 0; store && i < keys; ++i)
    if (!store->put(key_of(i), std::string(i % 90, 'v'))) break;
  for (unsigned i = 0; store && i < keys; i += 7) (void)store->erase(key_of(i));
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

std::string read_all(const kv& store) {
  for (unsigned i = 0; i < keys; i += 3)
    if (auto bad = judged("get", store.get(key_of(i))); !bad.empty()) return bad;
  if (auto bad = judged("range", store.range("a", {}, 40)); !bad.empty()) return bad;
  if (auto bad = judged("range", store.range({}, {}, 1 << 20)); !bad.empty()) return bad;
  if (auto bad = judged("size", store.size()); !bad.empty()) return bad;
  auto cursor = store.walk({}, {});
  for (auto more = cursor.next();; more = cursor.next())
    if (!more || !*more) return judged("a cursor", more);
}
std::string change_all(kv& store) {
  for (unsigned i = 0; i < keys; i += 5) {
    if (auto bad = judged("put", store.put(key_of(i), std::string(i % 90, 'w'))); !bad.empty())
      return bad;
    if (auto bad = judged("put", store.put(key_of(i + 1), std::string(200, 'x'))); !bad.empty())
      return bad;
    if (auto bad = judged("put", store.put(key_of(i) + "new", "y")); !bad.empty()) return bad;
    if (auto bad = judged("erase", store.erase(key_of(i + 2))); !bad.empty()) return bad;
  }
  return "";
}

// What is left of the store makes a sound store, whatever the content is.
std::string salvage(const std::string& path) {
  const std::string saved = path + "-saved";
  std::filesystem::remove(saved);
  const auto copied = detail::copy_content(path, saved, {.allow_losses = true});
  if (!copied) return judged("salvage", copied);
  const auto store = kv::open(saved, {.media = "process", .background = false});
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
  auto store =
      kv::open(path, {.media = "process", .verify = verification::never, .background = false});
  if (!store) return judged("opening", store.error());
  (void)store->check();
  if (auto bad = read_all(*store); !bad.empty()) return bad;
  if (auto bad = change_all(*store); !bad.empty()) return bad;
  if (auto bad = read_all(*store); !bad.empty()) return bad;
  return judged("closing", store->close());
}

std::vector<bytes> kv_seeds() {
  return {make_store("default", 256 << 10), make_store("log_structured", 128 << 10)};
}

}  // namespace stele::fuzz
