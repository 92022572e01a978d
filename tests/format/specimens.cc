// Makes specimens: creates an empty pool with the fixed id, then uses the public API.
#include <cli/pool_content.h>
#include <fmt/format.h>
#include <stele/archapt_options.h>
#include <stele/document.h>
#include <stele/kv.h>
#include <stele/log_structured_options.h>
#include <tests/format/specimens.h>
#include <tests/fuzz/repair.h>
#include <tests/fuzz/target.h>
#include <tx/inspect.h>
#include <tx/mechanism/catalog.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace stele::testing {

namespace {

constexpr std::uint64_t fixed_id = 0x5EC1'0000'57E1'E000;
constexpr std::size_t pool_size = 64 << 10;

std::string layout_of(const specimen& s) {
  if (s.what == content::plain) return "stele.specimen";
  return std::string(s.what == content::store ? kv::layout : document_layout);
}

struct plain_root {
  field<std::uint64_t> words[8];
};

[[noreturn]] void give_up(const specimen& s, const error& e) {
  fmt::print(stderr, "the specimen {} cannot be made: {}\n", s.name, e.message);
  std::abort();
}
template <class Result>
auto sure(const specimen& s, Result r) {
  if (!r) give_up(s, r.error());
  if constexpr (!std::is_void_v<typename Result::value_type>) return std::move(*r);
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// An empty pool with the fixed id. Pools for archapt have room for checksums, and for a checkpoint
// copy.
void create(const specimen& s, const std::string& path) {
  storage::pool_geometry shape{
      .size = pool_size, .log_size = 4096, .log_count = 2, .layout = layout_of(s), .sums = s.sums};
  if (s.mechanism.starts_with("archapt")) shape.size *= s.checkpoint_commits != 0 ? 4 : 2;
  if (s.mechanism == "log_structured") shape.log_size = 1024;
  const auto* const mechanism = sure(s, detail::find_mechanism(s.mechanism));
  sure(s, storage::pool_file::create(
              path, mechanism->geometry_for(
                        shape, archapt_options{.checkpoint_commits = s.checkpoint_commits})));
  std::vector<std::byte> bytes = bytes_of(path);
  const fuzz::image pool(bytes);
  auto h = pool.header();
  h.id = fixed_id;
  pool.put_header(0, h);
  fuzz::repair_pool(pool);
  fuzz::write_file(path, bytes);
}

pool_options options_of(const specimen& s) {
  pool_options o;
  o.engine.mechanism = s.mechanism;
  o.engine.media = "process";
  o.engine.tuning = {archapt_options{.checkpoint_commits = s.checkpoint_commits},
                     log_structured_options{.separate_logs = true, .level_wear = false}};
  o.engine.background = false;
  o.engine.defer_ordered = deferral::always;
  return o;
}

// Changes a pool in some transactions, reads the file before the close if it is to be left open,
// and closes the pool.
template <class Pool, class Change>
std::vector<std::byte> run(const specimen& s, Pool p, const std::string& path, Change&& change) {
  change(p);
  if (s.grown_to != 0) sure(s, p.grow(s.grown_to)), change(p);
  std::vector<std::byte> now = s.left_open ? bytes_of(path) : std::vector<std::byte>();
  sure(s, p.close());
  return s.left_open ? now : bytes_of(path);
}

void change_store(const specimen& s, kv& store) {
  for (int i = 0; i < 5; ++i)
    sure(s, store.put(fmt::format("key {}", i),
                      std::string(static_cast<std::size_t>(5 * i), static_cast<char>('a' + i))));
  sure(s, store.erase("key 3"));
  if (s.outgrows_log) sure(s, store.put("large", std::string(6000, 'L')));
  const auto d = s.ordered ? durability::ordered : durability::durable;
  for (int i = 0; i < 3; ++i)
    sure(s, store.put(fmt::format("key {}", i), fmt::format("last {}", i), d));
}

// Beside the store without a name: another one, one that was dropped; items that expire long after
// 2100, of which one is changed afterwards and one gets a value without a time.
void change_stores(const specimen& s, kv& store) {
  const auto when = [](int n) { return kv_time(std::chrono::hours(1'200'000 + n)); };
  change_store(s, store);
  sure(s, store.put_until("late", "with a time", when(0)));
  for (const char* name : {"dropped", "users"}) {
    auto other = sure(s, store.open_store(name));
    for (int i = 0; i < 3; ++i)
      sure(s, other.put_until(fmt::format("{} {}", name, i), "first", when(i)));
    sure(s, other.put(fmt::format("{} {}", name, 0), "for ever"));
    sure(s, other.modify(fmt::format("{} {}", name, 1),
                         [](std::optional<std::string>& value) { value = "changed"; }));
  }
  sure(s, store.drop_store("dropped"));
}

void change_document(const specimen& s, pool<document_dict>& p) {
  sure(s, p.update([](document_dict& d) {
    d["name"].assign("a document of some length, in a block of its own");
    d["number"].assign(-7);
    d["share"].assign(0.5);
    document_list& list = d["list"].make_list();
    for (int i = 0; i < 9; ++i) list.append(i);
    d["inner"].make_dict()[5].assign(true);
  }));
  sure(s, p.update([](document_dict& d) {
    d.erase("share"), d["bytes"].assign(scalar::bytes("\x01\x02\xFF"));
  }));
}

void change_plain(const specimen& s, pool<plain_root>& p) {
  for (std::uint64_t i = 0; i < 8; ++i)
    sure(s, p.update([&](plain_root& r) { r.words[i] = i * 0x0101'0101'0101'0101; }));
}

std::vector<std::byte> make_raw(const specimen& s, const std::string& path) {
  create(s, path);
  const pool_options o = options_of(s);
  if (s.what == content::store)
    return run(s, sure(s, kv::open(path, o)), path,
               [&](kv& p) { s.stores ? change_stores(s, p) : change_store(s, p); });
  if (s.what == content::document)
    return run(s, sure(s, pool<document_dict>::open(path, o)), path,
               [&](auto& p) { change_document(s, p); });
  return run(s, sure(s, pool<plain_root>::open(path, o)), path,
             [&](auto& p) { change_plain(s, p); });
}

std::vector<specimen> all_specimens() {
  std::vector<specimen> all;
  for (const char* m : {"default", "base", "redo", "redo-async", "xil", "vcbp", "blurred", "undo",
                        "archapt-undo", "archapt-redo", "log_structured"})
    for (const bool open : {false, true})
      all.push_back({.name = fmt::format("{}-{}", m, open ? "open" : "closed"),
                     .mechanism = m,
                     .left_open = open});
  all.push_back({.name = "stores", .mechanism = "default", .sums = true, .stores = true});
  all.push_back({.name = "sums-open", .mechanism = "default", .left_open = true, .sums = true});
  all.push_back(
      {.name = "sums-blocks-open", .mechanism = "blurred", .left_open = true, .sums = true});
  all.push_back({.name = "sums-covered", .mechanism = "archapt-redo", .sums = true});
  all.push_back(
      {.name = "ordered-open", .mechanism = "default", .left_open = true, .ordered = true});
  all.push_back(
      {.name = "spilled-open", .mechanism = "default", .left_open = true, .outgrows_log = true});
  all.push_back({.name = "spilled-blocks-open",
                 .mechanism = "blurred",
                 .left_open = true,
                 .outgrows_log = true});
  all.push_back({.name = "grown", .mechanism = "default", .sums = true, .grown_to = 96 << 10});
  all.push_back({.name = "grown-open",
                 .mechanism = "default",
                 .left_open = true,
                 .sums = true,
                 .grown_to = 96 << 10});
  all.push_back({.name = "checkpoint-open",
                 .mechanism = "archapt-redo",
                 .left_open = true,
                 .checkpoint_commits = 4});
  all.push_back(
      {.name = "document", .mechanism = "default", .what = content::document, .sums = true});
  all.push_back({.name = "document-log-structured",
                 .mechanism = "log_structured",
                 .what = content::document});
  all.push_back({.name = "plain", .mechanism = "default", .what = content::plain, .sums = true});
  return all;
}

std::string words_of(const std::string& path) {
  auto r = detail::open_copy_of(path, verification::automatic);
  if (!r) return r.error().message;
  auto handle = detail::pool_handle::from_runtime(std::move(*r), sizeof(plain_root));
  if (!handle) return handle.error().message;
  const pool<plain_root> p(std::move(*handle));
  std::string text;
  const auto read = p.read([&](const plain_root& root) {
    text.clear();
    for (const auto& w : root.words) text += fmt::format(" {:x}", w.load());
  });
  return read ? text.substr(1) : read.error().message;
}

}  // namespace

const std::vector<specimen>& specimens() {
  static const std::vector<specimen> all = all_specimens();
  return all;
}

std::vector<std::byte> make(const specimen& s, const std::string& dir) {
  const std::string path = dir + "/specimen-" + s.name;
  std::filesystem::remove(path);
  std::vector<std::byte> bytes = make_raw(s, path);
  std::filesystem::remove(path);
  fuzz::image(bytes).put(format::owner_offset, 0);
  fuzz::image(bytes).put(format::generation_offset, 0);
  fuzz::image(bytes).put(format::reader_socket_offset, 0);
  return bytes;
}

result<std::string> content_text(const std::string& path) {
  auto copy = detail::open_copy_of(path, verification::automatic);
  if (!copy) return std::unexpected(copy.error());
  const std::string layout = (*copy)->state().file.header().layout.data();
  if (!cli::is_known_layout(layout)) {
    copy->reset();
    return words_of(path);
  }
  const auto content = cli::content_of(std::move(*copy), layout);
  if (!content) return std::unexpected(content.error());
  return content->size() == 1 ? content->at("content").dump() : content->dump();
}

}  // namespace stele::testing
