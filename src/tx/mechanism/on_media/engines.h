// The engines that mechanisms derive from, on the library's media: compiled once, in engines.cc,
// and not again with each mechanism.
#pragma once

#include <media/adr.h>
#include <media/eadr.h>
#include <media/file.h>
#include <media/process.h>
#include <tx/mechanism/bulk.h>

namespace stele::detail {

extern template class media_engine<media::adr>;
extern template class lane_engine<media::adr>;
extern template class torn_bit_engine<media::adr>;
extern template class bulk_engine<media::adr>;
extern template class media_engine<media::eadr>;
extern template class lane_engine<media::eadr>;
extern template class torn_bit_engine<media::eadr>;
extern template class bulk_engine<media::eadr>;
extern template class media_engine<media::process>;
extern template class lane_engine<media::process>;
extern template class torn_bit_engine<media::process>;
extern template class bulk_engine<media::process>;
extern template class media_engine<media::file>;
extern template class lane_engine<media::file>;
extern template class torn_bit_engine<media::file>;
extern template class bulk_engine<media::file>;

}  // namespace stele::detail
