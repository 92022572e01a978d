// Compiles the engines that mechanisms derive from, for each of the library's media.
#include <tx/mechanism/on_media/engines.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

#ifndef STELE_SCHEDULED  // the schedule explorer's program has only the explorer's media
template class media_engine<media::adr>;
template class lane_engine<media::adr>;
template class torn_bit_engine<media::adr>;
template class bulk_engine<media::adr>;
template class media_engine<media::eadr>;
template class lane_engine<media::eadr>;
template class torn_bit_engine<media::eadr>;
template class bulk_engine<media::eadr>;
template class media_engine<media::process>;
template class lane_engine<media::process>;
template class torn_bit_engine<media::process>;
template class bulk_engine<media::process>;
template class media_engine<media::file>;
template class lane_engine<media::file>;
template class torn_bit_engine<media::file>;
template class bulk_engine<media::file>;
#endif

}  // namespace stele::detail
