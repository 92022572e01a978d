// Compiles the parts of mechanisms for each of the library's media.
#include <tx/mechanism/on_media.h>

namespace stele::detail {

#ifndef STELE_SCHEDULED  // the schedule explorer's program has only the explorer's media
STELE_INSTANTIATE_PARTS(media::adr)
STELE_INSTANTIATE_PARTS(media::eadr)
STELE_INSTANTIATE_PARTS(media::process)
STELE_INSTANTIATE_PARTS(media::file)
#endif

}  // namespace stele::detail
