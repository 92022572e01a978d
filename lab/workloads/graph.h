// A directed graph: vertices with lists of their outgoing edges. For sdg and ssca2.
//
// After the adjacency list of Siek, Lee and Lumsdaine (The Boost Graph Library, 2002), with
// vertices in an array and edges in singly linked lists. An edge holds its target, a label and an
// element of the workload's value size. A vertex holds its degree and its maximum degree, which the
// user sets. A change writes one vertex and at most one edge besides the edge that is inserted or
// erased. Parallel edges are allowed. Zeroed memory is a graph without vertices. Transactions as in
// hash_map.h.
#pragma once

#include <stele/element.h>

#include <algorithm>

namespace stele::workloads {

template <class V, class Memory>
class basic_graph {
  using values = element<V, Memory>;

 public:
  using pool_resident = void;
  using mapped_type = V;
  using mapped_view = typename values::view;
  using mapped_stored = typename values::stored;

  struct edge {
    using pool_resident = void;
    typename Memory::template field<edge*> next;
    typename Memory::template field<std::uint32_t> to;
    typename Memory::template field<std::uint32_t> label;
    mapped_stored value;

    edge(edge* n, std::uint32_t target, std::uint32_t l, mapped_view v)
        : next(n), to(target), label(l) {
      values::create(&value, v);
    }
  };
  struct vertex {
    typename Memory::template field<edge*> first;
    typename Memory::template field<std::uint32_t> degree;
    typename Memory::template field<std::uint32_t> max_degree;
  };
  // The place of an edge in its list.
  struct edge_position {
    vertex* from = nullptr;
    edge* before = nullptr;  // the edge before it in the list; null: it is the first
    edge* found = nullptr;
  };

  basic_graph() noexcept = default;  // for zeroed memory: changes nothing
  ~basic_graph() {
    run_destructor([&] { release(); });
  }
  basic_graph(const basic_graph&) = delete;
  basic_graph& operator=(const basic_graph&) = delete;

  // The graph must not have vertices yet.
  void make_vertices(std::uint64_t count) {
    vertices_ = Memory::template make_array<vertex>(count);
    count_ = count;
  }
  std::uint64_t vertices() const { return count_; }
  vertex& at(std::uint64_t i) const { return vertices_.load()[i]; }  // i < vertices()

  // The newest edge from the vertex to `to`.
  edge_position find(std::uint64_t from, std::uint32_t to) const {
    return walk(from, [&](edge* e, std::uint64_t) { return e->to == to; });
  }
  // The edge at this position of the vertex's list, newest first; the last edge if the list is
  // shorter.
  edge_position find_position(std::uint64_t from, std::uint64_t position) const {
    return walk(
        from, [&](edge* e, std::uint64_t i) { return i == position || e->next.load() == nullptr; });
  }

  edge& insert(vertex& from, std::uint32_t to, std::uint32_t label, mapped_view value) {
    edge* const fresh = Memory::template make<edge>(from.first.load(), to, label, value);
    from.first = fresh;
    from.degree += 1;
    return *fresh;
  }
  // `p` is the place of an edge.
  void erase(const edge_position& p) {
    if (p.before == nullptr) {
      p.from->first = p.found->next.load();
    } else {
      p.before->next = p.found->next.load();
    }
    p.from->degree -= 1;
    Memory::destroy(p.found);
  }

  // Calls f(number of the vertex, const edge&) for each edge.
  template <class F>
  void for_each_edge(F&& f) const {
    for (std::uint64_t i = 0; i < vertices(); ++i) {
      for (const edge* e = at(i).first; e != nullptr; e = e->next) f(i, *e);
    }
  }
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    if (const vertex* all = vertices_.load()) visit(static_cast<const void*>(all));
    for_each_edge([&](std::uint64_t, const edge& e) {
      visit(detail::block_of<Memory>(&e));
      values::visit_blocks(e.value, visit);
    });
  }
  // Errors: corrupt, if the length of a list differs from its vertex's degree, or an edge has no
  // valid target.
  [[nodiscard]] result<> check() const {
    for (std::uint64_t i = 0; i < vertices(); ++i) {
      std::uint64_t length = 0, degree = at(i).degree;
      for (const edge* e = at(i).first; e != nullptr; e = e->next) {
        if (++length > degree)
          return detail::corrupt_error("graph: a vertex has more edges than it counts");
        if (e->to >= vertices())
          return detail::corrupt_error("graph: an edge leads out of the graph");
      }
      if (length != degree)
        return detail::corrupt_error("graph: a vertex has fewer edges than it counts");
    }
    return {};
  }

 private:
  template <class Wanted>
  edge_position walk(std::uint64_t from, Wanted&& wanted) const {
    edge_position p{&at(from)};
    std::uint64_t i = 0;
    for (edge* e = p.from->first; e != nullptr; p.before = e, e = e->next, ++i) {
      if (!wanted(e, i)) continue;
      p.found = e;
      return p;
    }
    return p;
  }
  void release() {
    for (std::uint64_t i = 0; i < vertices(); ++i) {
      for (edge* e = at(i).first; e != nullptr;) Memory::destroy(std::exchange(e, e->next.load()));
    }
    Memory::destroy_array(vertices_.load(), vertices());
  }

  typename Memory::template field<std::uint64_t> count_;
  typename Memory::template field<vertex*> vertices_;
};

}  // namespace stele::workloads
