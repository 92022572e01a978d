// Machines for crashes behind a controller: like that of the DP2 paper, but for all that decides
// which of the writes that may be written is written first. A function of the seed.
#pragma once

#include <sim/dp2/pcm.h>

namespace stele::explore {

// Errors: invalid_argument: there is no such scheduler.
[[nodiscard]] result<std::unique_ptr<sim::memory_system>> make_controller(
    sim::event_queue& time, const media::tape_header& logs_of, const std::string& scheduler,
    std::uint64_t seed);

}  // namespace stele::explore
