// Walking a store or a document from the shell.
#include <cli/pool_content.h>
#include <fmt/format.h>
#include <stele/document.h>
#include <stele/kv.h>

#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using nlohmann::json;

// Bytes that are no text as {"hex": ...}.
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

json json_of(const document_value& v);

json json_of(const document_dict& d) {
  json items = json::array();  // keys may be integers, and their order counts
  d.for_each([&](const document_value& key, const document_value& value) { items.push_back({{"key", json_of(key)}, {"value", json_of(value)}}); });
  return {{"dict", items}};
}

json json_of(const document_value& v) {
  switch (v.kind()) {
    case value_kind::none: return nullptr;
    case value_kind::boolean: return v.boolean();
    case value_kind::integer: return v.integer();
    case value_kind::real: return v.real();
    case value_kind::text: return text_or_hex(v.text());
    case value_kind::bytes: return {{"bytes", text_or_hex(v.bytes())}};
    case value_kind::dict: return json_of(v.dict());
    case value_kind::list: break;
  }
  json items = json::array();
  v.list().for_each([&](const document_value& one) { items.push_back(json_of(one)); });
  return items;
}

result<json> items_of(const kv& store) {
  return store.read([](const kv::view& v) {
    json items = json::array();
    v.for_each({}, {}, [&](std::string_view key, std::string_view value) {
      items.push_back({{"key", text_or_hex(key)}, {"value", text_or_hex(value)}});
      return true;
    });
    return items;
  });
}

result<pool<document_dict>> as_document(std::unique_ptr<detail::runtime> r) {
  auto handle = detail::pool_handle::over(std::move(r), sizeof(document_dict));
  if (!handle) return std::unexpected(handle.error());
  return pool<document_dict>(std::move(*handle));
}
result<kv> as_store(std::unique_ptr<detail::runtime> r) {
  auto handle = detail::pool_handle::over(std::move(r), kv::root_size());
  if (!handle) return std::unexpected(handle.error());
  return kv::over(std::move(*handle));
}

}  // namespace

bool knows_layout(const std::string& layout) { return layout == kv::layout || layout == document_layout; }

result<> check_content(std::unique_ptr<detail::runtime> r, const std::string& layout) {
  if (layout == kv::layout) {
    const auto store = as_store(std::move(r));
    return store ? store->check() : std::unexpected(store.error());
  }
  const auto document = as_document(std::move(r));
  if (!document) return std::unexpected(document.error());
  return document->read([](const document_dict& d) { return d.check(); });
}

result<json> content_of(std::unique_ptr<detail::runtime> r, const std::string& layout) {
  if (layout == kv::layout) {
    const auto store = as_store(std::move(r));
    return store ? items_of(*store) : std::unexpected(store.error());
  }
  const auto document = as_document(std::move(r));
  if (!document) return std::unexpected(document.error());
  return document->read([](const document_dict& d) { return json_of(d); });
}

}  // namespace stele::cli
