// The mechanisms by name, and the media by specification. Adding a mechanism: its header here, a file in on_media/, a line in on_media/makers.h and one in catalog.cc.
#pragma once

#include <format/parity_block.h>
#include <media/delayed.h>
#include <media/pcm_banks.h>
#include <tx/engine_on.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stele::media {
class tape_writer;
class witness;
struct image_view;
}

namespace stele::detail {

// A medium by name: adr, eadr, process, file, delayed:NS[:GBPS], pcm:strict|rules[:LOG_SPEEDUP][:waits], recording (over adr),
// image, recording_image and witnessed_file (the explorer's).
struct media_choice {
  enum class kind : std::uint8_t { adr, eadr, process, file, delayed, pcm, recording, image, recording_image, witnessed_file };
  kind what = kind::adr;
  media::delay delay = {};
  media::pcm_model pcm = {};
  media::tape_writer* tape = nullptr;      // recording
  media::image_view* image = nullptr;      // image
  media::witness* witness = nullptr;       // witnessed_file
  engine_tuning tuning = {};
};
// Errors: invalid_argument, naming what is possible.
result<media_choice> parse_media(std::string_view specification);

struct mechanism_entry {
  std::string name;
  std::string summary;
  log_kind logs = log_kind::none;
  std::function<std::unique_ptr<engine>(pool_state&, const media_choice&)> make;
  storage::map_kind map = storage::map_kind::shared;  // on media in memory
  format::home_kind home = format::home_kind::in_place;  // of the pools that it works on
  bool has_parity = false;                               // pools made for it have room for checksums over home

  // What a pool made for it is to have besides.
  storage::shape shaped(storage::shape s, const archapt_options& o) const {
    s.home = home;
    if (!has_parity) return s;
    s.parity_block_size = o.halves ? format::halves_block_size : format::plain_block_size;
    s.checkpoint_commits = o.checkpoint_commits;
    return s;
  }
};

const std::vector<mechanism_entry>& mechanisms();
// The mechanism of a pool that asks for none.
const std::string& default_mechanism() noexcept;
void set_default_mechanism(std::string name);  // for tests; not thread-safe
// Errors: not_found, naming those that exist.
result<const mechanism_entry*> find_mechanism(std::string_view name);
// The mechanism that recovers logs of a kind; null for none.
const mechanism_entry* recoverer_of(log_kind logs);
// For tests; not thread-safe.
void register_mechanism(mechanism_entry entry);

}  // namespace stele::detail
