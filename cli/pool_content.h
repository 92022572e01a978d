// Checks and shows the content of pools whose layout the command knows: the key-value store and
// documents (of the Python package). For other layouts the command shows only the blocks in use.
#pragma once

#include <stele/error.h>
#include <stele/kv.h>
#include <stele/leaks.h>
#include <tx/runtime.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stele::cli {

// Text as JSON; bytes that are not UTF-8 become {"hex": ...}.
nlohmann::json text_or_hex(std::string_view bytes);
// {"key": K, "value": V}, and "expires_at_ms", since the begin of 1970, of an item that expires.
nlohmann::json json_of_item(std::string_view key, std::string_view value,
                            const std::optional<kv_time>& expires);

// Whether check_content and content_of can read this layout.
bool is_known_layout(const std::string& layout);

// Both take a running pool; they check the root themselves. Errors: corrupt, when an invariant of
// the structure does not hold; errors of reading. check_content returns the blocks that are leaked,
// content_of an object: "content", and "stores" when a store has others beside it.
[[nodiscard]] result<std::vector<pool_block>> check_content(std::unique_ptr<detail::runtime> pool,
                                                            const std::string& layout);
[[nodiscard]] result<nlohmann::json> content_of(std::unique_ptr<detail::runtime> pool,
                                                const std::string& layout);

}  // namespace stele::cli
