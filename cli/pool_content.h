// The content of pools whose layout the command knows: the key-value store's and that of documents
// (Python's). Of others it knows the blocks.
#pragma once

#include <stele/error.h>
#include <tx/runtime.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stele::cli {

// Whether there is anything to know.
bool is_known_layout(const std::string& layout);

// Takes a pool in use, its root not looked at. Errors: corrupt, by the structure's own invariants;
// those of reading.
[[nodiscard]] result<> check_content(std::unique_ptr<detail::runtime> pool,
                                     const std::string& layout);
[[nodiscard]] result<nlohmann::json> content_of(std::unique_ptr<detail::runtime> pool,
                                                const std::string& layout);

}  // namespace stele::cli
