// linkbench: the operations of Armstrong et al. ("LinkBench: a Database Benchmark Based on the
// Facebook Social Graph", 2013) on nodes and typed links, both with a payload of the value size.
//
// There is a node for every eight keys, and at the start up to four links per node. A link (id1,
// type, id2) is an edge. Each node has two vertices, one for each type; a list of links is the edge
// list of a vertex, newest first, and its count is the vertex's degree. A list has room for one and
// a half times its links at the start, plus one; a link added to a full list replaces the oldest.
// Links to update and delete are chosen by position, so that they exist. Nodes are neither added
// nor deleted; their part of the mix goes to links. The mix is that of Wu, Ren and Li
// ("Architecture-Aware, High Performance Transaction for Persistent Memory", 2019): reads 64 %,
// updates 16 %, inserts 12 %, counts 4 %, deletes 4 %; reads and updates are split between nodes
// and links as in LinkBench. Ids follow Zipf's law with the requested skew, else with 0.8,
// LinkBench's skew for reads of links.
#pragma once

#include <workloads/graph.h>
#include <workloads/linkbench.h>
#include <workloads/rows.h>
#include <workloads/run.h>

namespace stele::workloads::linkbench {

inline std::uint64_t digest_key(std::uint64_t kind, std::uint64_t from, std::uint64_t to) {
  return base::mix(from << 2 | kind) + to;
}

template <class V, class Memory>
class social_graph {
  using values = element<V, Memory>;
  using graph = basic_graph<V, Memory>;
  using vertex = typename graph::vertex;
  using edge_position = typename graph::edge_position;
  struct node {
    typename Memory::template field<std::uint64_t> version;
    typename values::stored payload;
  };

 public:
  using pool_resident = void;

  // The graph is empty before.
  void make_nodes(std::uint64_t count) {
    links_.make_vertices(count * types);
    nodes_.make(count);
  }
  void load_node(std::uint64_t id, std::uint64_t word) {
    values::assign(nodes_[id].payload, value_from<V>(word));
  }
  void load_link(const id_choice::link& l) {
    vertex& v = links_.at(l.list);
    if (v.degree == links_at_start || links_.find(l.list, l.to).found != nullptr) return;
    links_.insert(v, l.to, 0, value_from<V>(l.word));
    v.max_degree = room_at_start(v.degree);
  }

  void update_node(std::uint64_t id, std::uint64_t word) {
    nodes_[id].version += 1;
    load_node(id, word);
  }
  // Updates the link if it exists, as in LinkBench.
  void add_link(const change& c, std::uint64_t word) {
    const edge_position there = links_.find(c.list, c.to);
    if (there.found != nullptr) return update(there, word);
    vertex& v = links_.at(c.list);
    if (v.degree >= room_of(v)) links_.erase(links_.find_position(c.list, v.degree));
    links_.insert(v, c.to, 0, value_from<V>(word));
  }
  void update_link(const change& c, std::uint64_t word) {
    if (const edge_position p = chosen(c); p.found != nullptr) update(p, word);
  }
  void delete_link(const change& c) {
    if (const edge_position p = chosen(c); p.found != nullptr) links_.erase(p);
  }

  void read_node(std::uint64_t id) const { do_not_optimize(values::get(nodes_[id].payload)); }
  void count_links(std::uint64_t list) const { do_not_optimize(links_.at(list).degree.load()); }
  void read_links(std::uint64_t list) const {
    for (const auto* e = links_.at(list).first.load(); e != nullptr; e = e->next)
      do_not_optimize(values::get(e->value));
  }

  std::uint64_t digest() const {
    std::uint64_t sum = 0;
    links_.for_each_edge([&](std::uint64_t list, const auto& e) {
      sum += digest_value(digest_key(1, list, e.to) + base::mix(e.label), values::get(e.value));
    });
    for (std::uint64_t id = 0; id < nodes_.size(); ++id)
      sum += digest_value(digest_key(2, id, nodes_[id].version), values::get(nodes_[id].payload));
    return sum;
  }
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    links_.visit_blocks(visit);
    nodes_.visit_blocks(visit);
  }
  // Errors: corrupt, if the length of a list differs from its count or exceeds its room.
  result<> check() const {
    if (auto ok = links_.check(); !ok) return ok;
    for (std::uint64_t list = 0; list < links_.vertices(); ++list)
      if (links_.at(list).degree > room_of(links_.at(list)))
        return detail::corrupt_error("linkbench: a list of links is longer than its room");
    return {};
  }

 private:
  static std::uint32_t room_of(const vertex& v) {
    return std::max<std::uint32_t>(v.max_degree, 1);
  }  // 0: the list had no links at the start
  static void update(const edge_position& p, std::uint64_t word) {
    p.found->label += 1;
    values::assign(p.found->value, value_from<V>(word));
  }
  edge_position chosen(const change& c) const {
    const std::uint32_t count = links_.at(c.list).degree;
    return count == 0 ? edge_position{} : links_.find_position(c.list, c.position % count);
  }

  graph links_;  // an edge's label is its version
  basic_rows<node, Memory> nodes_;
};

std::unique_ptr<model> make_social_model(const id_choice& ids, const key_space& keys);

template <std::size_t N>
class benchmark {
 public:
  static constexpr std::string_view name = "linkbench";
  template <class Memory>
  using root = social_graph<blob<N>, Memory>;

  benchmark(id_choice ids) : ids_(std::move(ids)) {}

  static void prepare(auto& graph, const key_space& keys) {
    graph.make_nodes(nodes_of(keys.params()));
  }
  void fill(auto& graph, const key_space& keys, std::uint64_t i) const {
    if (i < ids_.nodes()) graph.load_node(i, keys.word_at_start(i));
    if (const auto l = ids_.at_start(keys, i)) graph.load_link(*l);
  }
  static void apply(auto& graph, const key_space&, const operation& op) {
    using enum operation::kind;
    if (op.what == put) graph.update_node(op.a, op.b);
    if (op.what == insert) graph.add_link(change(op), op.b);
    if (op.what == read_modify) graph.update_link(change(op), op.b);
    if (op.what == erase) graph.delete_link(change(op));
  }
  static void read(const auto& graph, const operation& op) {
    if (op.what == operation::kind::scan) return graph.read_links(change(op).list);
    if (op.b == 0) return graph.read_node(op.a);
    graph.count_links(counted_list(op));
  }
  static std::uint64_t digest(const auto& graph) { return graph.digest(); }
  operation draw(const key_space&, base::rng& random) const { return ids_.draw_operation(random); }
  std::unique_ptr<model> make_model(const key_space& keys) const {
    return make_social_model(ids_, keys);
  }

 private:
  id_choice ids_;
};

template <class Base, template <class> class Run>
std::unique_ptr<Base> make(const parameters& p) {
  return make_sized<Base, Run, benchmark>(p, id_choice(p));
}

}  // namespace stele::workloads::linkbench
