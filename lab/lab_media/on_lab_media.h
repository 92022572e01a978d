// Compiles a mechanism for the laboratory's media: on_lab_media.cc.in is the file of each.
#pragma once

#include <lab_media/banked.h>
#include <lab_media/delayed.h>
#include <lab_media/image.h>
#include <lab_media/lab_medium.h>
#include <lab_media/observed.h>
#include <lab_media/recording.h>
#include <media/adr.h>
#include <media/file.h>
#include <tx/mechanism/on_media.h>

namespace stele::detail {

#ifndef STELE_SCHEDULED  // the schedule explorer has only the explorer's media
STELE_DECLARE_PARTS(media::delayed<media::adr>)
STELE_DECLARE_PARTS(media::banked<media::adr>)
STELE_DECLARE_PARTS(media::recording<media::adr>)
#endif
STELE_DECLARE_PARTS(media::image)
STELE_DECLARE_PARTS(media::recording<media::image>)
STELE_DECLARE_PARTS(media::observed<media::file>)

template <template <class> class Mechanism>
std::unique_ptr<engine> build_on_lab(pool_state& state, const media_choice& choice) {
  using kind = media::lab_medium::kind;
  using media::adr, media::file, media::delayed, media::banked, media::recording, media::image,
      media::observed;
  const media::lab_medium& m = *choice.lab;
  switch (m.what) {
#ifndef STELE_SCHEDULED
    case kind::delayed:
      return build<Mechanism<delayed<adr>>>(
          state, choice,
          typename delayed<adr>::shared{
              {}, m.latency_model, state.file.at(state.file.header().home_offset)});
    case kind::pcm: {
      const auto& h = state.file.header();
      return build<Mechanism<banked<adr>>>(state, choice, state.file.base(), m.pcm,
                                           media::pcm_layout_of(h, Mechanism<adr>::kind),
                                           2 * h.log_count + 2);
    }
    case kind::recording:
      return build<Mechanism<recording<adr>>>(state, choice, *m.tape, state.file.mapping());
#else
    case kind::delayed:
    case kind::pcm:
    case kind::recording:
      return nullptr;
#endif
    case kind::image:
      return build<Mechanism<image>>(state, choice, *m.image);
    case kind::recording_image:
      return build<Mechanism<recording<image>>>(state, choice, *m.tape, state.file.mapping(),
                                                *m.image);
    case kind::observed_file:
      return build<Mechanism<observed<file>>>(state, choice, *m.observer, state.file.mapping());
  }
  return nullptr;
}

}  // namespace stele::detail
