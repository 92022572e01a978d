// Compiles a mechanism for the library's media. Each mechanism has a file of its own here: all in
// one file would take minutes and gigabytes to compile.
#pragma once

#include <media/eadr.h>
#include <media/file.h>
#include <media/process.h>
#include <tx/mechanism/catalog.h>
#include <tx/mechanism/on_media/engines.h>
#include <tx/mechanism/on_media/makers.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

template <template <class> class Mechanism, class Media, class... SharedArguments>
std::unique_ptr<engine> build(pool_state& state, const media_choice& choice,
                              SharedArguments&&... arguments) {
  auto shared =
      std::make_unique<typename Media::shared>(std::forward<SharedArguments>(arguments)...);
  auto made = std::make_unique<Mechanism<Media>>(state, std::move(shared));
  made->set_up(choice.tuning);
  return made;
}

template <template <class> class Mechanism>
std::unique_ptr<engine> build_on([[maybe_unused]] pool_state& state,
                                 [[maybe_unused]] const media_choice& choice) {
#ifndef STELE_SCHEDULED  // the schedule explorer's program has only the explorer's media
  using kind = media_choice::kind;
  switch (choice.what) {
    case kind::adr:
      return build<Mechanism, media::adr>(state, choice);
    case kind::eadr:
      return build<Mechanism, media::eadr>(state, choice);
    case kind::process:
      return build<Mechanism, media::process>(state, choice);
    case kind::file:
      return build<Mechanism, media::file>(state, choice, state.file.mapping());
    case kind::lab:
      break;
  }
#endif
  return nullptr;
}

}  // namespace stele::detail
