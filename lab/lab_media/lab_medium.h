// The media of the laboratory: slower memory, recorders, images of the explorer. A program that
// links stele_lab_media can open pools on them; libstele contains none of them.
#pragma once

#include <lab_media/delayed.h>
#include <lab_media/pcm_banks.h>
#include <lab_media/tape.h>
#include <tx/mechanism/catalog.h>

#include <memory>

namespace stele::media {

class store_observer;
struct image_view;

// delayed:NS[:GBPS] with :stream=once, :standalone and :cache=GBPS in any order, and
// pcm:strict|rules[:LOG_SPEEDUP][:waits][:slower=TIMES] can be chosen by name. The functions below
// make the others.
struct lab_medium {
  enum class kind : std::uint8_t { delayed, pcm, recording, image, recording_image, observed_file };
  kind what = kind::delayed;
  delay latency_model = {};
  pcm_model pcm = {};
  tape_writer* tape = nullptr;         // recording, recording_image
  image_view* image = nullptr;         // image, recording_image
  store_observer* observer = nullptr;  // observed_file
};

// What a tape of such a pool must know. `logs`: the log kind of the recorded mechanism.
tape_options tape_options_of(const format::pool_header& h, detail::log_kind logs);

// Where a controller finds the logs of such a pool. Only logs of ordered writes have separate lines
// for commit records. Chunks hold the data itself, so they are no logs to it.
pcm_layout pcm_layout_of(const format::pool_header& h, detail::log_kind logs);

// The arguments outlive the pool that is opened on the medium.
detail::media_choice on_tape(tape_writer& tape, const detail::engine_tuning& tuning);  // over adr
detail::media_choice on_image(image_view& image, const detail::engine_tuning& tuning);
detail::media_choice on_recorded_image(tape_writer& tape, image_view& image,
                                       const detail::engine_tuning& tuning);
detail::media_choice on_observed_file(store_observer& observer,
                                      const detail::engine_tuning& tuning);

using engine_maker = std::unique_ptr<detail::engine>(detail::pool_state&,
                                                     const detail::media_choice&);
// Adds a mechanism on the laboratory's media, by its name with _ for -. Before main().
void add_lab_mechanism(const char* id, engine_maker* make);

}  // namespace stele::media
