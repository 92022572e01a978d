// Adds the published mechanisms to the table of the library.
#include <published_list.h>
#include <stele/published.h>
#include <tx/mechanism/catalog.h>

namespace stele::detail {

// Each is defined in a file made from on_media.cc.in.
#define STELE_DECLARE(id) mechanism_entry entry_##id();
STELE_EACH_PUBLISHED(STELE_DECLARE)
#undef STELE_DECLARE

namespace {

bool add_all() {
#define STELE_ADD(id) register_mechanism(entry_##id());
  STELE_EACH_PUBLISHED(STELE_ADD)
#undef STELE_ADD
  return true;
}

}  // namespace
}  // namespace stele::detail

namespace stele {

void use_published() {
  [[maybe_unused]] static const bool added = detail::add_all();
}

}  // namespace stele
