// Smaller copies of pools, and what is left of damaged ones.
#pragma once

#include <containers/content_copy.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stele::cli {

struct copy_request {
  std::string from, to;
  detail::copy_options options;
  bool prints = true;  // else only the returned report
};

// Both return a report, and fail the command when there is no copy. compact_pool copies the content
// of a store or document; of any other pool, all but the free chunks at the end. salvage_pool
// copies what can be read of a store or document.
nlohmann::json compact_pool(const copy_request& r, const progress& on_progress);
nlohmann::json salvage_pool(const copy_request& r, const progress& on_progress);

}  // namespace stele::cli
