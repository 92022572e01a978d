// The table of mechanisms by name, and of media by specification. A mechanism is added by its
// header and a line in list.cmake: docs/guide/mechanism.md.
#pragma once

#include <pool/pool_file.h>
#include <tx/engine.h>
#include <tx/log/record.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stele::media {
struct lab_medium;
}  // namespace stele::media

namespace stele::detail {

// A medium. adr, eadr, process and file belong to the library; the laboratory's media are for
// measuring and exploring.
struct media_choice {
  enum class kind : std::uint8_t { adr, eadr, process, file, lab };
  kind what = kind::adr;
  // For kind::lab: which medium of the laboratory.
  std::shared_ptr<const media::lab_medium> lab = nullptr;
  // kind::lab: persisting the whole cache at once is emulated. Nothing is written back.
  bool emulates_whole_cache = false;
  engine_tuning tuning = {};
};
// Looks a medium up by name. Errors: invalid_argument; the message names the valid media, or says
// which options exclude each other.
[[nodiscard]] result<media_choice> parse_media(std::string_view specification);

// The tape ends when the last copy of the pointer to it does.
struct recorded_medium {
  media_choice medium;
  std::shared_ptr<void> tape;
};

// What lab/lab_media/ provides in a program that links the laboratory's media.
struct lab_media {
  const char* names;  // for error messages
  // Nullopt: none of its names. Errors: invalid_argument, of options that exclude each other.
  result<std::optional<media_choice>> (*parse)(std::string_view specification);
  // Begins a tape of a session over adr. Errors: those of writing the file.
  result<recorded_medium> (*record)(const std::string& tape, const pool_state& state, log_kind logs,
                                    const engine_tuning& tuning);
  std::unique_ptr<engine> (*make)(std::string_view mechanism, pool_state& state,
                                  const media_choice& choice);
};
// Called before main(). `media` must outlive every pool.
void register_lab_media(const lab_media& media);
// Null: this program does not link the laboratory's media.
const lab_media* registered_lab_media() noexcept;

struct mechanism_entry {
  std::string name;
  std::string summary;
  log_kind logs = log_kind::none;
  std::function<std::unique_ptr<engine>(pool_state&, const media_choice&)> make;
  storage::map_kind map = storage::map_kind::shared;     // on media in memory
  format::home_kind home = format::home_kind::in_place;  // of the pools that it works on
  const record_form* other_form = nullptr;  // that records of its logs may have besides lines
  bool has_parity = false;                  // its pools have room for parity blocks over home
  // Adds what else its pools need; null: nothing.
  void (*add_geometry)(storage::pool_geometry&, const mechanism_options&) = nullptr;

  // Builds its engine on a medium; set_up() has been called on the returned engine.
  std::unique_ptr<engine> on(pool_state& state, const media_choice& choice) const;

  // The geometry of a pool created for it.
  storage::pool_geometry geometry_for(storage::pool_geometry g, const mechanism_options& o) const {
    g.home = home;
    if (add_geometry != nullptr) add_geometry(g, o);
    return g;
  }
};

// The entries stay where they are. Not beside a program's first use_published().
const std::deque<mechanism_entry>& mechanisms();
// The mechanism of a pool that names none.
const std::string& default_mechanism_name() noexcept;
void set_default_mechanism(std::string name);  // for tests; not thread-safe
// Errors: not_found; the message names the existing mechanisms. unsupported, of a published one in
// a program that does not use them.
[[nodiscard]] result<const mechanism_entry*> find_mechanism(std::string_view name);
// The mechanism that recovers logs of this kind; null if none does, and for log_kind::none.
const mechanism_entry* recovery_mechanism_of(log_kind logs);
// For read_record_by_head(); null also where this program has no mechanism with such logs.
const record_form* other_form_of(log_kind logs);
// Adds a mechanism, for the rest of the process. Thread-safe.
void register_mechanism(mechanism_entry entry);
// The published mechanisms whose logs are of this kind, as sentences name them; empty: none.
std::string published_with_logs(log_kind logs);

}  // namespace stele::detail
