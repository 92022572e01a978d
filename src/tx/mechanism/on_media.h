// Compiles a mechanism for the library's media: on_media.cc.in is the file of each. What all
// mechanisms use is compiled once for each medium, in parts.cc.
#pragma once

#include <base/assert.h>
#include <media/adr.h>
#include <media/eadr.h>
#include <media/file.h>
#include <media/process.h>
#include <tx/mechanism/catalog.h>
#include <tx/mechanism/parts.h>
#include <tx/mechanism_engine.h>

namespace stele::detail {

STELE_DECLARE_PARTS(media::adr)
STELE_DECLARE_PARTS(media::eadr)
STELE_DECLARE_PARTS(media::process)
STELE_DECLARE_PARTS(media::file)

template <class Mechanism, class... SharedArguments>
std::unique_ptr<engine> build(pool_state& state, const media_choice& choice,
                              SharedArguments&&... arguments) {
  using medium = typename Mechanism::medium;
  auto shared =
      std::make_unique<typename medium::shared>(std::forward<SharedArguments>(arguments)...);
  // A mechanism may have a variant for media where threads had better share a log.
  if constexpr (requires { typename Mechanism::on_shared_log; } &&
                (medium::whole_cache == media::whole_cache::preferred || medium::under_exploration))
    if (choice.tuning.shared_log)
      return std::make_unique<mechanism_engine<typename Mechanism::on_shared_log>>(
          state, std::move(shared), choice.tuning);
  return std::make_unique<mechanism_engine<Mechanism>>(state, std::move(shared), choice.tuning);
}

template <template <class> class Mechanism>
std::unique_ptr<engine> build_on([[maybe_unused]] pool_state& state,
                                 [[maybe_unused]] const media_choice& choice) {
#ifndef STELE_SCHEDULED  // the schedule explorer's program has only the explorer's media
  using kind = media_choice::kind;
  switch (choice.what) {
    case kind::adr:
      return build<Mechanism<media::adr>>(state, choice);
    case kind::eadr:
      return build<Mechanism<media::eadr>>(state, choice);
    case kind::process:
      return build<Mechanism<media::process>>(state, choice);
    case kind::file:
      return build<Mechanism<media::file>>(state, choice, state.file.mapping());
    case kind::lab:
      break;
  }
#endif
  return nullptr;
}

template <template <class> class Mechanism>
mechanism_entry entry_of(const char* name, const char* summary) {
  using any = Mechanism<media::adr>;
  mechanism_entry e{
      .name = name, .summary = summary, .logs = any::kind, .make = build_on<Mechanism>};
  if constexpr (requires { any::home_kind; }) e.home = any::home_kind;
  if constexpr (requires { any::other_form; }) e.other_form = any::other_form;
  if constexpr (requires { any::add_geometry; })
    e.has_parity = true, e.add_geometry = any::add_geometry;
  // recovery_mechanism_of() finds a mechanism by its logs; without logs nothing is recovered
  STELE_ASSERT_ALWAYS(e.logs != log_kind::none || e.home == format::home_kind::in_place);
  return e;
}

}  // namespace stele::detail
