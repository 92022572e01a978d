// Of the laboratory's Redis module, which has the published mechanisms.
#include <stele/published.h>

namespace {
[[maybe_unused]] const bool used = (stele::use_published(), true);
}  // namespace
