// See zipf.h; names as in the paper.
#include <workloads/zipf.h>

#include <algorithm>
#include <cmath>

namespace stele::workloads {

namespace {

double zeta(std::uint64_t n, double theta) {
  double sum = 0;
  for (std::uint64_t i = n; i > 0; --i) sum += std::pow(static_cast<double>(i), -theta);
  return sum;
}

}  // namespace

zipf::zipf(std::uint64_t n, double theta)
    : n_(n), alpha_(1 / (1 - theta)), zeta_n_(zeta(n, theta)), second_(1 + std::pow(0.5, theta)) {
  const double tail = 1 - zeta(std::min<std::uint64_t>(n, 2), theta) / zeta_n_;
  // With two ranks the tail is empty.
  eta_ = n > 2 ? (1 - std::pow(2.0 / static_cast<double>(n), 1 - theta)) / tail : 0;
}

std::uint64_t zipf::draw(base::rng& random) const {
  const double u = random.unit();
  const double uz = u * zeta_n_;
  if (uz < 1) return 0;
  if (uz < second_) return std::min<std::uint64_t>(1, n_ - 1);
  const double rank = static_cast<double>(n_) * std::pow(eta_ * u - eta_ + 1, alpha_);
  return std::min(static_cast<std::uint64_t>(rank), n_ - 1);
}

}  // namespace stele::workloads
