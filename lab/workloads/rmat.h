// Edges of a scale-free graph by the recursive matrix of Chakrabarti, Zhan and Faloutsos ("R-MAT: A
// Recursive Model for Graph Mining", SDM 2004). The probabilities are those of the HPCS Scalable
// Synthetic Compact Application 2 (Bader, Madduri, Gilbert, Shah, Kepner, Meuse, Krishnamurthy,
// "Designing Scalable Synthetic Compact Applications for Benchmarking High Productivity Computing
// Systems", 2006). Vertex numbers are permuted, so that vertices with many edges are scattered.
#pragma once

#include <base/rng.h>

#include <cstdint>

namespace stele::workloads {

class rmat {
 public:
  // Probabilities of the quarters: both early, to late, from late, both late.
  static constexpr double a = 0.55, b = 0.1, c = 0.1, d = 0.25;

  struct edge {
    std::uint32_t from, to;
  };

  // 2^scale vertices; scale <= 31.
  explicit rmat(unsigned scale) : scale_(scale) {}
  std::uint64_t vertices() const noexcept { return std::uint64_t{1} << scale_; }

  // Thread-safe for distinct generators.
  edge draw(base::rng& random) const {
    std::uint32_t from = 0, to = 0;
    for (unsigned i = 0; i < scale_; ++i) {
      const double u = random.unit();
      const bool from_late = u >= a + b, to_late = (u >= a && u < a + b) || u >= a + b + c;
      from = from << 1 | std::uint32_t{from_late};
      to = to << 1 | std::uint32_t{to_late};
    }
    return {scattered(from), scattered(to)};
  }

  // A permutation of the vertices.
  std::uint32_t scattered(std::uint32_t vertex) const {
    const std::uint64_t mask = vertices() - 1;
    std::uint64_t x = vertex * std::uint64_t{0x9E3779B97F4A7C15} & mask;
    x ^= x >> (scale_ / 2 + 1);
    return static_cast<std::uint32_t>(x * 0xBF58476D1CE4E5B9 & mask);
  }

 private:
  unsigned scale_;
};

}  // namespace stele::workloads
