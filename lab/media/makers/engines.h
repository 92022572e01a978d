// The engines that mechanisms derive from, on the laboratory's media: compiled once, in engines.cc.
#pragma once

#include <media/adr.h>
#include <media/banked.h>
#include <media/delayed.h>
#include <media/file.h>
#include <media/image.h>
#include <media/observed.h>
#include <media/recording.h>
#include <tx/mechanism/bulk.h>

namespace stele::detail {

#ifndef STELE_SCHEDULED  // the schedule explorer has only the explorer's media
extern template class media_engine<media::delayed<media::adr>>;
extern template class lane_engine<media::delayed<media::adr>>;
extern template class torn_bit_engine<media::delayed<media::adr>>;
extern template class bulk_engine<media::delayed<media::adr>>;
extern template class media_engine<media::banked<media::adr>>;
extern template class lane_engine<media::banked<media::adr>>;
extern template class torn_bit_engine<media::banked<media::adr>>;
extern template class bulk_engine<media::banked<media::adr>>;
extern template class media_engine<media::recording<media::adr>>;
extern template class lane_engine<media::recording<media::adr>>;
extern template class torn_bit_engine<media::recording<media::adr>>;
extern template class bulk_engine<media::recording<media::adr>>;
#endif
extern template class media_engine<media::image>;
extern template class lane_engine<media::image>;
extern template class torn_bit_engine<media::image>;
extern template class bulk_engine<media::image>;
extern template class media_engine<media::recording<media::image>>;
extern template class lane_engine<media::recording<media::image>>;
extern template class torn_bit_engine<media::recording<media::image>>;
extern template class bulk_engine<media::recording<media::image>>;
extern template class media_engine<media::observed<media::file>>;
extern template class lane_engine<media::observed<media::file>>;
extern template class torn_bit_engine<media::observed<media::file>>;
extern template class bulk_engine<media::observed<media::file>>;

}  // namespace stele::detail
