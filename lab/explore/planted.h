// Plants the bugs of a plan for its own lifetime: a mutant, or a fence that is left out. Made and
// destroyed while nothing else runs.
#pragma once

#include <explore/mutant_table.h>
#include <explore/subject.h>
#include <lab_media/event_sites.h>

#include <algorithm>
#include <ranges>

namespace stele::explore {

class planted_bugs {
 public:
  explicit planted_bugs(const plan& p) {
    base::planted_mutant = p.mutant;
    base::breaks_assertion_at = breaks_assertion_at;
    base::leaves_out_step_at = leaves_out_step_at;
    media::event_sites::omit(p.omitted_fence.empty() ? std::string(entry_of(p.mutant).leaves_out)
                                                     : "fence " + p.omitted_fence);
  }
  planted_bugs(const planted_bugs&) = delete;
  planted_bugs& operator=(const planted_bugs&) = delete;
  ~planted_bugs() {
    base::planted_mutant = base::mutant::none;
    base::breaks_assertion_at = nullptr;
    base::leaves_out_step_at = nullptr;
    media::event_sites::omit("");
  }

 private:
  static bool breaks_assertion_at(const std::source_location& at) {
    auto places = entry_of(base::planted_mutant).breaks | std::views::split(',');
    return std::ranges::any_of(places, [&](const auto& place) {
      return media::event_sites::is_at(std::string_view(place), at);
    });
  }
  static bool leaves_out_step_at(const std::source_location& at) {
    using media::event_sites;
    return event_sites::omitted_of(event_sites::event::step, at) != event_sites::omitted::nothing;
  }
};

}  // namespace stele::explore
