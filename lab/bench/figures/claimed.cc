// The tables of claims, by publication.
#include <bench/figures/claimed_archapt.h>
#include <bench/figures/claimed_blurred.h>
#include <bench/figures/claimed_dp2.h>
#include <bench/figures/claimed_kiln.h>
#include <bench/figures/claimed_lsnvmm.h>

#include <algorithm>

namespace stele::bench {

std::span<const published_claim> claimed_by(std::string_view paper) noexcept {
  if (paper == "blurred") return claims::blurred;
  if (paper == "lsnvmm") return claims::lsnvmm;
  if (paper == "archapt") return claims::archapt;
  if (paper == "dp2") return claims::dp2;
  if (paper == "kiln") return claims::kiln;
  return {};
}

double least_of(const std::vector<double>& values) {
  return std::ranges::min(values);
}
double most_of(const std::vector<double>& values) {
  return std::ranges::max(values);
}
double rise_of(const std::vector<double>& values) {
  return values.back() - values.front();
}

}  // namespace stele::bench
