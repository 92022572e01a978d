// ssca2: a scale-free graph that is built, changed and classified, after the HPCS Scalable
// Synthetic Compact Application 2 (Bader et al., "Designing Scalable Synthetic Compact Applications
// for Benchmarking High Productivity Computing Systems", 2006).
//
// Changes are kernel 1, the construction, edge by edge: they insert an R-MAT edge, or, to keep the
// size, erase one of the vertex's first eight edges. The specification builds a graph once; here it
// starts half full, with eight edges per vertex, and a vertex may have one edge more than twice its
// number at the start. Reads are kernel 2, the heaviest edges, of eight neighbouring vertices at a
// time. Kernels 3 and 4 (subgraphs, betweenness) are left out, since they only read.
#pragma once

#include <workloads/graph.h>
#include <workloads/rmat.h>
#include <workloads/run.h>

#include <bit>
#include <optional>

namespace stele::workloads::ssca2 {

inline constexpr std::uint64_t vertices_read = 8, edges_to_choose_from = 8;

// Sixteen keys per vertex; at the start half of them are edges.
inline rmat generator(const key_space& keys) {
  return rmat(
      static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(keys.size() / 16, 1)) - 1));
}

// The i-th edge of the initial graph; every second step adds one.
inline std::optional<rmat::edge> edge_at_start(const key_space& keys, std::uint64_t i) {
  if (i % 2 != 0) return std::nullopt;
  base::rng random(base::mix(keys.params().seed) + i);
  return generator(keys).draw(random);
}

// A change at a vertex, which is the operation's key. The low bits of the operation's word are the
// edge's target, the others are random.
struct change {
  std::uint64_t from;
  std::uint32_t to;
  bool inserts;            // if there is room
  std::uint64_t position;  // else: position of the edge to erase

  explicit change(const operation& op)
      : from(op.a),
        to(static_cast<std::uint32_t>(op.b)),
        inserts(op.b >> 63 != 0),
        position(op.b >> 60 & (edges_to_choose_from - 1)) {}
  bool inserts_at(std::uint64_t degree, std::uint64_t room) const {
    return degree == 0 || (inserts && degree < room);
  }
};

// The random bits that `change` does not use.
constexpr std::uint32_t weight_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32) & 0x0FFF'FFFF;
}

constexpr std::uint32_t room_at_start(std::uint32_t degree) {
  return 2 * degree + 1;
}

inline std::uint64_t edge_key(std::uint64_t from, std::uint64_t to) {
  return from << 32 | to;
}

std::unique_ptr<model> make_graph_model(const key_space& keys);

template <std::size_t N>
struct benchmark {
  static constexpr std::string_view name = "ssca2";
  template <class Memory>
  using root = basic_graph<value_of_size<N, Memory>, Memory>;

  template <class Graph>
  static void prepare(Graph& g, const key_space& keys) {
    g.make_vertices(generator(keys).vertices());
  }
  template <class Graph>
  static void fill(Graph& g, const key_space& keys, std::uint64_t i) {
    const auto e = edge_at_start(keys, i);
    if (!e) return;
    auto& v = g.at(e->from);
    insert(g, v, e->to, keys.word_at_start(i));
    v.max_degree = room_at_start(v.degree);
  }
  template <class Graph>
  static void apply(Graph& g, const key_space&, const operation& op) {
    const change c(op);
    auto& v = g.at(c.from);
    if (c.inserts_at(v.degree, v.max_degree)) {
      insert(g, v, c.to, op.b);
    } else {
      g.erase(g.find_position(c.from, c.position));
    }
  }
  template <class Graph>
  static void read(const Graph& g, const operation& op) {
    const typename Graph::edge* heaviest = nullptr;
    std::uint32_t weight = 0;
    for (std::uint64_t i = 0; i < std::min(vertices_read, g.vertices()); ++i) {
      for (const typename Graph::edge* e = g.at((op.a + i) % g.vertices()).first; e != nullptr;
           e = e->next) {
        const std::uint32_t its = e->label;
        if (its < weight) continue;
        weight = its;
        heaviest = e;
      }
    }
    if (heaviest != nullptr) do_not_optimize(stored_value(heaviest->value));
  }
  template <class Graph>
  static std::uint64_t digest(const Graph& g) {
    std::uint64_t sum = 0;
    g.for_each_edge([&](std::uint64_t from, const auto& e) {
      sum += digest_value(edge_key(from, e.to), stored_value(e.value));
    });
    return sum;
  }

  static operation draw(const key_space& keys, base::rng& random) {
    const rmat edges = generator(keys);
    if (keys.draws_read(random)) return {operation::kind::read, random.below(edges.vertices()), 0};
    const rmat::edge e = edges.draw(random);
    return {operation::kind::toggle, e.from, random() << 32 | e.to};
  }
  static std::unique_ptr<model> make_model(const key_space& keys) { return make_graph_model(keys); }

 private:
  // An edge's label is its weight, uniform as in the specification.
  template <class Graph>
  static void insert(Graph& g, typename Graph::vertex& from, std::uint32_t to, std::uint64_t word) {
    g.insert(from, to, weight_of(word), value_from<typename Graph::mapped_type>(word));
  }
};

}  // namespace stele::workloads::ssca2
