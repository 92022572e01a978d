// Compiles the engines that mechanisms derive from, for each of the laboratory's media.
#include <media/makers/engines.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

#ifndef STELE_SCHEDULED
template class media_engine<media::delayed<media::adr>>;
template class lane_engine<media::delayed<media::adr>>;
template class torn_bit_engine<media::delayed<media::adr>>;
template class bulk_engine<media::delayed<media::adr>>;
template class media_engine<media::banked<media::adr>>;
template class lane_engine<media::banked<media::adr>>;
template class torn_bit_engine<media::banked<media::adr>>;
template class bulk_engine<media::banked<media::adr>>;
template class media_engine<media::recording<media::adr>>;
template class lane_engine<media::recording<media::adr>>;
template class torn_bit_engine<media::recording<media::adr>>;
template class bulk_engine<media::recording<media::adr>>;
#endif
template class media_engine<media::image>;
template class lane_engine<media::image>;
template class torn_bit_engine<media::image>;
template class bulk_engine<media::image>;
template class media_engine<media::recording<media::image>>;
template class lane_engine<media::recording<media::image>>;
template class torn_bit_engine<media::recording<media::image>>;
template class bulk_engine<media::recording<media::image>>;
template class media_engine<media::observed<media::file>>;
template class lane_engine<media::observed<media::file>>;
template class torn_bit_engine<media::observed<media::file>>;
template class bulk_engine<media::observed<media::file>>;

}  // namespace stele::detail
