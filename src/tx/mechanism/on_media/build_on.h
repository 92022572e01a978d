// A mechanism compiled for every medium. Each mechanism is a file of its own here: all in one take minutes to compile, and
// gigabytes.
#pragma once

#include <format/ordered_log.h>
#include <media/banked.h>
#include <media/eadr.h>
#include <media/file.h>
#include <media/image.h>
#include <media/process.h>
#include <media/recording.h>
#include <media/witnessed.h>
#include <tx/mechanism/base.h>
#include <tx/mechanism/catalog.h>
#include <tx/mechanism/on_media/makers.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

template <template <class> class Mechanism, class Media, class... SharedArguments>
std::unique_ptr<engine> build(pool_state& state, const media_choice& choice, SharedArguments&&... arguments) {
  auto shared = std::make_unique<typename Media::shared>(std::forward<SharedArguments>(arguments)...);
  auto made = std::make_unique<Mechanism<Media>>(state, std::move(shared));
  made->set_up(choice.tuning);
  return made;
}

// A controller tells logs from data by address; only logs of ordered writes have lines of their own for commit records.
template <template <class> class Mechanism>
media::pcm_layout pcm_layout_of(const format::pool_header& h) {
  media::pcm_layout layout{.log_offset = h.log_offset, .log_size = h.log_size, .home_offset = h.home_offset};
  if (std::is_same_v<Mechanism<media::adr>, base_log<media::adr>>)
    layout.commit_offset = format::ordered_commits_at, layout.commit_size = format::ordered_commits_size;
  return layout;
}

template <template <class> class Mechanism>
std::unique_ptr<engine> build_on(pool_state& state, const media_choice& choice) {
  using kind = media_choice::kind;
  using media::adr, media::eadr, media::process, media::file, media::delayed, media::banked, media::recording, media::image,
      media::witnessed;
  switch (choice.what) {
#ifndef STELE_SCHEDULED  // the program that explores schedules has the explorer's media alone
    case kind::adr:
      return build<Mechanism, adr>(state, choice);
    case kind::eadr:
      return build<Mechanism, eadr>(state, choice);
    case kind::process:
      return build<Mechanism, process>(state, choice);
    case kind::file:
      return build<Mechanism, file>(state, choice, state.file.region());
    case kind::delayed:
      return build<Mechanism, delayed<adr>>(state, choice, typename delayed<adr>::shared{{}, choice.delay});
    case kind::pcm: {
      const auto& h = state.file.header();
      return build<Mechanism, banked<adr>>(state, choice, state.file.base(), choice.pcm, pcm_layout_of<Mechanism>(h),
                                           2 * h.log_count + 2);
    }
    case kind::recording:
      return build<Mechanism, recording<adr>>(state, choice, *choice.tape, state.file.region());
#else
    case kind::adr:
    case kind::eadr:
    case kind::process:
    case kind::file:
    case kind::delayed:
    case kind::pcm:
    case kind::recording:
      return nullptr;
#endif
    case kind::image:
      return build<Mechanism, image>(state, choice, *choice.image);
    case kind::recording_image:
      return build<Mechanism, recording<image>>(state, choice, *choice.tape, state.file.region(), *choice.image);
    case kind::witnessed_file:
      return build<Mechanism, witnessed<file>>(state, choice, *choice.witness, state.file.region());
  }
  return nullptr;
}

}  // namespace stele::detail
