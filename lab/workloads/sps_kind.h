// sps: swaps of two random elements of an array. Element i starts as a value made from i.
#pragma once

#include <stele/array.h>
#include <workloads/run.h>

namespace stele::workloads {

std::unique_ptr<model> make_sps_model(const key_space& keys);

template <std::size_t N>
struct sps_kind {
  static constexpr std::string_view name = "sps";
  template <class Memory>
  using root = basic_array<value_of_size<N, Memory>, Memory>;

  template <class V, class Memory>
  static void prepare(basic_array<V, Memory>& r, const key_space& keys) {
    r.resize(keys.size());
  }
  template <class V, class Memory>
  static void fill(basic_array<V, Memory>& r, const key_space& keys, std::uint64_t i) {
    element<V, Memory>::assign(r[i], value_from<V>(keys.word_at_start(i)));
  }
  template <class V, class Memory>
  static void apply(basic_array<V, Memory>& r, const key_space&, const operation& op) {
    r.swap_elements(op.a, op.b);
  }
  template <class V, class Memory>
  static void read(const basic_array<V, Memory>& r, const operation& op) {
    do_not_optimize(element<V, Memory>::get(r[op.a]));
  }
  template <class V, class Memory>
  static std::uint64_t digest(const basic_array<V, Memory>& r) {
    std::uint64_t sum = 0, i = 0;
    r.for_each(
        [&](const auto& stored) { sum += digest_value(i++, element<V, Memory>::get(stored)); });
    return sum;
  }

  static operation draw(const key_space& keys, base::rng& random) {
    const bool reads = keys.draws_read(random);
    const std::uint64_t a = keys.draw(random);
    if (reads) return {operation::kind::read, a, 0};
    return {operation::kind::swap, a, keys.draw(random)};
  }
  static std::unique_ptr<model> make_model(const key_space& keys) { return make_sps_model(keys); }
};

}  // namespace stele::workloads
