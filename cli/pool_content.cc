// Walks a key-value store or a document from the shell.
//
// A structure is checked before it is walked. The structure's own check is bounded
// (stele/detail/bounded_memory.h). Each block that the check reaches must be a block that the heap
// has in use; otherwise the next change could allocate that block again.
#include <cli/pool_content.h>
#include <containers/claim_observer.h>
#include <containers/kv_limits.h>
#include <fmt/format.h>
#include <stele/document.h>
#include <stele/kv.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

namespace stele::cli {
namespace {

using nlohmann::json;

// The deepest nesting of lists and dicts that is shown. Limited because code that reads or frees
// JSON recurses.
constexpr unsigned max_json_depth = 1000;

json json_of(const document_value& v, unsigned depth);

json json_of(const document_dict& d, unsigned depth) {
  json items = json::array();  // pairs, because keys may be integers and their order matters
  d.for_each([&](const document_value& key, const document_value& value) {
    items.push_back({{"key", json_of(key, depth)}, {"value", json_of(value, depth + 1)}});
  });
  return {{"dict", items}};
}

json json_of(const document_value& v, unsigned depth) {
  if (depth > max_json_depth)
    throw failure(
        {errc::unsupported,
         fmt::format(
             "the document is nested more than {} levels deep, which is more than can be shown",
             max_json_depth)});
  switch (v.kind()) {
    case value_kind::none:
      return nullptr;
    case value_kind::boolean:
      return v.boolean();
    case value_kind::integer:
      return v.integer();
    case value_kind::real:
      return v.real();
    case value_kind::text:
      return text_or_hex(v.text());
    case value_kind::bytes:
      return {{"bytes", text_or_hex(v.bytes())}};
    case value_kind::dict:
      return json_of(v.dict(), depth);
    case value_kind::list:
      break;
  }
  json items = json::array();
  v.list().for_each([&](const document_value& one) { items.push_back(json_of(one, depth + 1)); });
  return items;
}

result<json> items_of(const kv& store) {
  return store.read([](const kv::view& v) {
    json items = json::array();
    v.for_each({}, {}, [&](std::string_view key, std::string_view value) {
      items.push_back(json_of_item(key, value, v.expiry(key)));
      return true;
    });
    return items;
  });
}

// {"content": the items of the store without a name, "stores": [{"store": name, "items": ...}]},
// without "stores" if there are no others.
result<json> all_items_of(kv& store) {
  const auto names = store.stores();
  if (!names) return std::unexpected(names.error());
  const auto own = items_of(store);
  if (!own) return own;
  json all = {{"content", *own}};
  for (const std::string& name : *names) {
    const auto named = store.open_store(name, kv::if_missing::refuse);
    if (!named) return std::unexpected(named.error());
    const auto items = items_of(*named);
    if (!items) return items;
    all["stores"].push_back({{"store", text_or_hex(name)}, {"items", *items}});
  }
  return all;
}

// Runs check(). Then each block that check() reached, and the root, must be a block that the heap
// has in use, with at least the size claimed. Returns the blocks in use that it did not reach.
template <class Check>
result<std::vector<pool_block>> check_with_heap(const detail::runtime& r, std::uint64_t root_size,
                                                Check&& check) {
  const auto& file = r.state().file;
  std::vector<pool_block> reached, used;
  {
    const detail::claim_observer listening(
        [&](std::uint64_t offset, std::size_t size) { reached.push_back({offset, size}); });
    if (auto sound = check(); !sound) return std::unexpected(sound.error());
  }
  reached.push_back({r.root_offset(), root_size});
  if (auto walked = r.state().heap.audit(
          [&](std::uint64_t offset, std::size_t size) { used.push_back({offset, size}); });
      !walked)
    return std::unexpected(walked.error());
  std::ranges::sort(used, {}, &pool_block::offset);
  std::ranges::sort(reached, {}, &pool_block::offset);
  const auto strays = std::ranges::count_if(reached, [&](const pool_block& b) {
    const auto at = std::ranges::lower_bound(used, b.offset, {}, &pool_block::offset);
    return at == used.end() || at->offset != b.offset || at->size_bytes < b.size_bytes;
  });
  if (strays == 0) {
    std::erase_if(used, [&](const pool_block& b) {
      return std::ranges::binary_search(reached, b.offset, {}, &pool_block::offset);
    });
    return used;
  }
  return std::unexpected(error{
      errc::corrupt, fmt::format("{}: the content leads to {} blocks that the heap does not have "
                                 "in use, or has as smaller ones; restore the pool from a copy",
                                 file.path(), strays)});
}

result<std::vector<pool_block>> check_store(const kv& store) {
  return check_with_heap(store.core(), kv::root_size(), [&] { return store.check(); });
}
result<std::vector<pool_block>> check_document(const pool<document_dict>& p) {
  return check_with_heap(p.core(), sizeof(document_dict),
                         [&] { return p.read([](const document_dict& d) { return d.check(); }); });
}

result<pool<document_dict>> as_document(std::unique_ptr<detail::runtime> r) {
  auto handle = detail::pool_handle::from_runtime(std::move(r), sizeof(document_dict));
  if (!handle) return std::unexpected(handle.error());
  return pool<document_dict>(std::move(*handle));
}
result<kv> as_store(std::unique_ptr<detail::runtime> r) {
  auto handle = detail::pool_handle::from_runtime(std::move(r), kv::root_size());
  if (!handle) return std::unexpected(handle.error());
  return kv::from_handle(std::move(*handle));
}

}  // namespace

json text_or_hex(std::string_view bytes) {
  const json text = bytes;
  try {
    (void)text.dump();
    return text;
  } catch (const json::exception&) {
    std::string hex;
    for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return {{"hex", hex}};
  }
}

json json_of_item(std::string_view key, std::string_view value,
                  const std::optional<kv_time>& expires) {
  json item = {{"key", text_or_hex(key)}, {"value", text_or_hex(value)}};
  if (expires) item["expires_at_ms"] = detail::milliseconds_of(*expires);
  return item;
}

bool is_known_layout(const std::string& layout) {
  return layout == kv::layout || layout == document_layout;
}

result<std::vector<pool_block>> check_content(std::unique_ptr<detail::runtime> r,
                                              const std::string& layout) {
  if (layout == kv::layout) {
    const auto store = as_store(std::move(r));
    if (!store) return std::unexpected(store.error());
    return check_store(*store);
  }
  const auto document = as_document(std::move(r));
  if (!document) return std::unexpected(document.error());
  return check_document(*document);
}

result<json> content_of(std::unique_ptr<detail::runtime> r, const std::string& layout) {
  if (layout == kv::layout) {
    auto store = as_store(std::move(r));
    if (!store) return std::unexpected(store.error());
    const auto sound = check_store(*store);
    return sound ? all_items_of(*store) : std::unexpected(sound.error());
  }
  const auto document = as_document(std::move(r));
  if (!document) return std::unexpected(document.error());
  if (auto sound = check_document(*document); !sound) return std::unexpected(sound.error());
  return document->read(
      [](const document_dict& d) -> json { return {{"content", json_of(d, 0)}}; });
}

}  // namespace stele::cli
