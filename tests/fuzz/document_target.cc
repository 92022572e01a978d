// A document with contradictory content, with repaired checksums or without any. Reads and changes
// must return errors or answers; no signals, endless walks or stores outside the heap.
#include <containers/content_copy.h>
#include <fmt/format.h>
#include <stele/document.h>
#include <stele/leaks.h>
#include <tests/fuzz/target.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::fuzz {

namespace {

constexpr unsigned keys = 60, numbers = 40;
constexpr unsigned most_nesting = 20;

std::string key_of(unsigned i) {
  return i % 2 == 0 ? fmt::format("k{}", i)
                    : fmt::format("a key that has a block of its own, number {}", i);
}

void fill(document_dict& d) {
  for (unsigned i = 0; i < keys; ++i) d[key_of(i)] = std::string(i % 40, 't');
  for (unsigned i = 0; i < keys; i += 7) d.erase(key_of(i));
  auto& list = d["list"].make_list();
  for (unsigned i = 0; i < numbers; ++i) list.append(i * 1.5);
  list.insert(3, "a text in the middle of a list");
  list.at(5).make_list().append(scalar::bytes("bytes"));
  auto& inner = d["dict"].make_dict();
  for (int i = 0; i < 30; ++i) inner[i] = i;
  inner[7].make_dict()["deep"].make_list().append(true);
}

bytes make_document(const std::string& mechanism, const std::string& media) {
  const std::string path = scratch() + "/document-seed";
  std::filesystem::remove(path);
  pool_options options{.create_size = 128 << 10,
                       .engine = {.mechanism = mechanism, .media = media}};
  options.engine.background = false, options.layout = document_layout;
  auto made = pool<document_dict>::open(path, options);
  if (!made || !made->update([](document_dict& d) { fill(d); }) || !made->close()) return {};
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  const auto* const from = reinterpret_cast<const std::byte*>(all.data());
  return {from, from + all.size()};
}

// The only allowed outcome for damaged content is an error with a sentence.
template <class Result>
std::string judged(const char* what, const Result& r) {
  if (r || r.error().message.size() >= 12) return "";
  return fmt::format("{} says '{}', which is no sentence", what, r.error().message);
}

// Ends at a depth, and after as many values as the pool has room for.
class reader {
 public:
  explicit reader(std::size_t most) : left_(most) {}
  void read(const document_value& v, unsigned depth = 0) {
    if (left_ == 0 || depth == most_nesting) return;
    --left_;
    (void)v.load();
    (void)v.equal("a text in the middle of a list");
    if (v.kind() == value_kind::list) read(v.list(), depth + 1);
    if (v.kind() == value_kind::dict) read(v.dict(), depth + 1);
  }
  void read(const document_list& l, unsigned depth) {
    (void)l.id();
    if (l.size() > 3) (void)l.at(l.size() / 2).load();
    l.for_each([&](const document_value& v) { read(v, depth); });
  }
  void read(const document_dict& d, unsigned depth) {
    (void)d.last_key();
    for (unsigned i = 0; i < keys; i += 5)
      if (const auto* const found = d.find(key_of(i))) (void)found->load();
    d.for_each([&](const document_value& k, const document_value& v) {
      (void)k.load();
      read(v, depth);
    });
  }

 private:
  std::size_t left_;
};

std::string read_all(pool<document_dict>& p, std::size_t bytes) {
  const auto all = p.read([&](const document_dict& d) { reader(bytes / 16).read(d, 0); });
  if (auto bad = judged("a read", all); !bad.empty()) return bad;
  const auto blocks = p.read([](const document_dict& d) { d.visit_blocks([](const void*) {}); });
  return judged("visit_blocks", blocks);
}

// Each change in a transaction of its own, since a refused one rolls back.
std::string change_all(pool<document_dict>& p) {
  const std::function<void(document_dict&)> changes[] = {
      [](document_dict& d) { d["new"] = "a new text that takes a block of its own"; },
      [](document_dict& d) { d[key_of(2)] = std::string(2, 'u'); },
      [](document_dict& d) { d[key_of(33)] = std::string(33, 'u'); },
      [](document_dict& d) { d["list"].list().append(7); },
      [](document_dict& d) { d["list"].list().insert(1, "near the begin"); },
      [](document_dict& d) { d["list"].list().erase(0, 4); },
      [](document_dict& d) { d["dict"].dict()[3].make_list().append(1); },
      [](document_dict& d) { d["dict"].dict().erase(7); },
      [](document_dict& d) { d.erase(key_of(4)); },
      [](document_dict& d) { d["list"].list().clear(); },
      [](document_dict& d) { d["dict"] = 1; },
      [](document_dict& d) { d["list"] = 1; },
      [](document_dict& d) {
        for (int i = 0; i < 80; ++i) d[i] = i;
      },
      [](document_dict& d) { d.clear(); },
      [](document_dict& d) { fill(d); }};
  for (const auto& change : changes)
    if (auto bad = judged("a change", p.update(change)); !bad.empty()) return bad;
  return "";
}

// What is left of the document makes a sound one, whatever the content is.
std::string salvage(const std::string& path) {
  const std::string saved = path + "-saved";
  std::filesystem::remove(saved);
  const auto copied = detail::copy_content(path, saved, {.allow_losses = true});
  if (!copied) return judged("salvage", copied);
  auto p = pool<document_dict>::open(saved, {.engine = {.media = "process", .background = false}});
  if (!p) return "what was salvaged does not open: " + p.error().message;
  if (const auto sound = p->check(); !sound)
    return "what was salvaged is not sound: " + sound.error().message;
  return "";
}

}  // namespace

std::string run_document(std::span<const std::byte> input) {
  if (input.size() < format::front_size) return "";
  const std::string path = scratch() + "/document";
  write_file(path, input);
  if (auto bad = salvage(path); !bad.empty()) return bad;
  pool_options options{
      .engine = {.media = "process", .verify = verification::never, .background = false}};
  options.layout = document_layout;
  auto p = pool<document_dict>::open(path, options);
  if (!p) return judged("opening", p);
  (void)p->check();
  if (auto bad = read_all(*p, input.size()); !bad.empty()) return bad;
  if (auto bad = change_all(*p); !bad.empty()) return bad;
  if (auto bad = read_all(*p, input.size()); !bad.empty()) return bad;
  return judged("closing", p->close());
}

std::vector<bytes> document_seeds() {
  return {make_document("default", "process"), make_document("default", "adr"),
          make_document("log_structured", "process")};
}

}  // namespace stele::fuzz
