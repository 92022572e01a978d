// Rivals from checkouts, as far as this build has them.
#pragma once

#include <bench/contender.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace stele::bench {

// The names of the transactional memories; empty without a checkout.
std::vector<std::string_view> durabletx_rivals();
// Precondition: `rival` is one of them.
[[nodiscard]] contender_result make_durabletx(const task& t, std::string_view rival);

// The size of Viper's records is known when it is compiled.
inline constexpr std::array<std::size_t, 13> viper_value_sizes = {
    8, 16, 32, 64, 100, 128, 200, 256, 512, 1000, 1024, 2048, 4096};
// Precondition of make_viper: has_viper().
bool has_viper();
[[nodiscard]] contender_result make_viper(const task& t);

}  // namespace stele::bench
