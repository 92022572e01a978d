// Compiles the parts of mechanisms for each of the laboratory's media.
#include <lab_media/on_lab_media.h>

namespace stele::detail {

#ifndef STELE_SCHEDULED
STELE_INSTANTIATE_PARTS(media::delayed<media::adr>)
STELE_INSTANTIATE_PARTS(media::banked<media::adr>)
STELE_INSTANTIATE_PARTS(media::recording<media::adr>)
#endif
STELE_INSTANTIATE_PARTS(media::image)
STELE_INSTANTIATE_PARTS(media::recording<media::image>)
STELE_INSTANTIATE_PARTS(media::observed<media::file>)

}  // namespace stele::detail
