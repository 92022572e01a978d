// Machines for crashes behind a controller, as functions of a seed. They resemble the machine of
// the DP2 paper, but everything that decides which allowed write goes first is drawn at random.
#pragma once

#include <sim/dp2/pcm.h>

namespace stele::explore {

// Errors: invalid_argument for an unknown scheduler.
[[nodiscard]] result<std::unique_ptr<sim::memory_system>> make_controller(
    sim::event_queue& time, const media::tape_header& logs_of, const std::string& scheduler,
    std::uint64_t seed);

}  // namespace stele::explore
