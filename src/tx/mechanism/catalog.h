// The mechanisms by name, and the media by specification. Adding a mechanism: its header here, a
// file in on_media/ and one in lab/media/makers/, a line in the makers.h of both, in catalog.cc and
// in lab/media/lab_medium.cc.
#pragma once

#include <format/parity_block.h>
#include <tx/lane_engine.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::media {
class tape_writer;
struct lab_medium;
}  // namespace stele::media

namespace stele::detail {

// A medium: adr, eadr, process and file are the library's; those of the laboratory are for
// measuring and exploring.
struct media_choice {
  enum class kind : std::uint8_t { adr, eadr, process, file, lab };
  kind what = kind::adr;
  std::shared_ptr<const media::lab_medium> lab =
      nullptr;  // which of the laboratory's, for kind::lab
  engine_tuning tuning = {};
};
// By name. Errors: invalid_argument, naming what is possible.
[[nodiscard]] result<media_choice> parse_media(std::string_view specification);

// What a program has that links the laboratory's media (lab/media/).
struct lab_media {
  const char* names;  // for a sentence
  std::optional<media_choice> (*parse)(std::string_view specification);
  media_choice (*on_tape)(media::tape_writer& tape, const engine_tuning& tuning);
  std::unique_ptr<engine> (*make)(std::string_view mechanism, pool_state& state,
                                  const media_choice& choice);
};
void register_lab_media(const lab_media& media);  // outlives everything; before main()
// Null: this program has none.
const lab_media* registered_lab_media() noexcept;

struct mechanism_entry {
  std::string name;
  std::string summary;
  log_kind logs = log_kind::none;
  std::function<std::unique_ptr<engine>(pool_state&, const media_choice&)> make;
  storage::map_kind map = storage::map_kind::shared;     // on media in memory
  format::home_kind home = format::home_kind::in_place;  // of the pools that it works on
  bool has_parity = false;  // pools made for it have room for checksums over home

  // Its engine on a medium; set_up is done.
  std::unique_ptr<engine> on(pool_state& state, const media_choice& choice) const;

  // What a pool made for it is to have besides.
  storage::pool_geometry shape_for(storage::pool_geometry s, const archapt_options& o) const {
    s.home = home;
    if (!has_parity) return s;
    s.parity_block_size = o.halves ? format::halves_block_size : format::plain_block_size;
    s.checkpoint_commits = o.checkpoint_commits;
    return s;
  }
};

const std::vector<mechanism_entry>& mechanisms();
// The mechanism of a pool that asks for none.
const std::string& default_mechanism_name() noexcept;
void set_default_mechanism(std::string name);  // for tests; not thread-safe
// Errors: not_found, naming those that exist.
[[nodiscard]] result<const mechanism_entry*> find_mechanism(std::string_view name);
// The mechanism that recovers logs of a kind; null for none.
const mechanism_entry* recovery_mechanism_of(log_kind logs);
// For tests; not thread-safe.
void register_mechanism(mechanism_entry entry);

}  // namespace stele::detail
