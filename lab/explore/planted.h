// Plants the bugs of a plan for its own lifetime: a mutant, or a fence that is left out.
#pragma once

#include <explore/subject.h>
#include <media/event_sites.h>

namespace stele::explore {

class planted_bugs {
 public:
  explicit planted_bugs(const plan& p) {
    base::planted_mutant = p.mutant;
    media::event_sites::omit(p.omitted_fence.empty() ? "" : "fence " + p.omitted_fence);
  }
  planted_bugs(const planted_bugs&) = delete;
  planted_bugs& operator=(const planted_bugs&) = delete;
  ~planted_bugs() {
    base::planted_mutant = base::mutant::none;
    media::event_sites::omit("");
  }
};

}  // namespace stele::explore
