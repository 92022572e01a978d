// The published mechanisms on the library's and the laboratory's media, in each program that has
// these objects; from before main() on.
#include <lab_media/lab_medium.h>
#include <published_list.h>
#include <stele/published.h>

namespace stele::detail {

// Each is defined in a file made from on_lab_media.cc.in.
#define STELE_DECLARE(id) std::unique_ptr<engine> lab_##id(pool_state&, const media_choice&);
STELE_EACH_PUBLISHED(STELE_DECLARE)
#undef STELE_DECLARE

namespace {

[[maybe_unused]] const bool added = [] {
  use_published();
#define STELE_ADD(id) media::add_lab_mechanism(#id, lab_##id);
  STELE_EACH_PUBLISHED(STELE_ADD)
#undef STELE_ADD
  return true;
}();

}  // namespace
}  // namespace stele::detail
