// The permutation of key_space: steps of about the golden section of the number of keys, coprime to
// it.
#include <workloads/key_space.h>

#include <numeric>

namespace stele::workloads {

namespace {

std::uint64_t coprime_stride(std::uint64_t keys) {
  auto stride = static_cast<std::uint64_t>(static_cast<double>(keys) * 0.6180339887498949) | 1;
  while (std::gcd(stride, keys) != 1) ++stride;
  return stride;
}

}  // namespace

key_space::key_space(const parameters& p)
    : parameters_(p), stride_(coprime_stride(p.keys)), start_(base::mix(p.seed) % p.keys) {
  if (p.choice == key_choice::zipf) zipf_.emplace(p.keys, p.zipf_theta);
}

}  // namespace stele::workloads
