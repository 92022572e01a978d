// none: no persistence at all; the upper bound that the other mechanisms are measured against. A
// commit stores home and orders nothing. After a crash the pool may hold any part of the latest
// commits.
#pragma once

#include <base/assert.h>
#include <tx/home_writer.h>
#include <tx/log/lanes.h>
#include <tx/mechanism_engine.h>

namespace stele::detail {

template <class Media>
class none {
 public:
  using medium = Media;
  static constexpr log_kind kind = log_kind::none;
  static constexpr auto upkeep = checksum_upkeep::none;
  static constexpr engine::traits what{.stores_in_place = !Media::under_exploration};

  none(pool_medium<Media>& m, home_checksums<Media>& sums, const engine_tuning&)
      : logs(m, sums), home(m.state.file) {}

  [[nodiscard]] result<> reserve_log(transaction&) { return {}; }
  bool commit(transaction& t, std::uint64_t) {
    STELE_ASSERT(!t.lines().empty() && !t.ordered());
    t.begin_home_stores();
    home.store(logs.of(t).media, t.lines());
    return true;
  }
  [[nodiscard]] result<> recover() { return {}; }

  log_lanes<Media> logs;  // only their media: nothing is logged
  home_writer<Media> home;
};

}  // namespace stele::detail
