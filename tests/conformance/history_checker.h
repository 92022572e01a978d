// The implementation of anomalies_of(): version orders, the dependency graph, and its cycles. See
// history.h.
#pragma once

#include <tests/conformance/history.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

namespace stele::testing {

// A directed graph. Tarjan's algorithm (1972), without recursion, finds its strongly connected
// components.
class dependency_graph {
 public:
  explicit dependency_graph(std::size_t nodes) : nodes_(nodes) {}

  void edge(std::size_t from, std::size_t to) {
    if (from != to)
      edges_.emplace_back(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to));
  }

  // The components of more than one node.
  std::vector<std::vector<std::uint32_t>> cycles() {
    index_edges();
    number_.assign(nodes_, 0);
    low_.assign(nodes_, 0);
    next_.assign(nodes_, 0);
    for (std::uint32_t n = 0; n < nodes_; ++n)
      if (number_[n] == 0) visit(n);
    return std::move(found_);
  }

 private:
  static constexpr std::uint32_t done = ~std::uint32_t{0};

  void index_edges() {
    std::ranges::sort(edges_);
    begin_.assign(nodes_ + 1, 0);
    for (const auto& e : edges_) ++begin_[e.first + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  }
  void enter(std::uint32_t n) {
    number_[n] = low_[n] = ++count_;
    next_[n] = begin_[n];
    path_.push_back(n);
    open_.push_back(n);
  }
  void visit(std::uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      const std::uint32_t n = path_.back();
      if (next_[n] < begin_[n + 1]) {
        const std::uint32_t to = edges_[next_[n]++].second;
        if (number_[to] == 0)
          enter(to);
        else if (number_[to] != done)
          low_[n] = std::min(low_[n], number_[to]);
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back()] = std::min(low_[path_.back()], low_[n]);
      if (low_[n] == number_[n]) close(n);
    }
  }
  void close(std::uint32_t n) {
    std::vector<std::uint32_t> component;
    for (;;) {
      const std::uint32_t top = open_.back();
      open_.pop_back();
      number_[top] = done;
      component.push_back(top);
      if (top == n) break;
    }
    if (component.size() > 1) found_.push_back(std::move(component));
  }

  std::size_t nodes_;
  std::uint32_t count_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> begin_, number_, low_, next_, path_, open_;
  std::vector<std::vector<std::uint32_t>> found_;
};

class history_checker {
 public:
  history_checker(const std::vector<transaction_record>& history, std::size_t limit)
      : history_(history), limit_(limit) {}

  std::vector<std::string> run() {
    note_writers();
    note_orders();
    if (anomalies_.empty()) check_appends();
    if (anomalies_.empty()) check_reads();
    if (anomalies_.empty()) check_cycles();
    return std::move(anomalies_);
  }

 private:
  struct writer {
    std::uint32_t transaction;
    bool last;  // the last of its transaction's appends to the list
  };
  using order = std::unordered_map<std::uint64_t, std::uint64_t>;  // maps an index to an element

  void report(std::string sentence) {
    if (anomalies_.size() < limit_) anomalies_.push_back(std::move(sentence));
  }
  static std::string named(std::uint64_t n) { return std::to_string(n); }

  void note_writers() {
    for (std::uint32_t t = 0; t < history_.size(); ++t) {
      std::unordered_map<std::uint32_t, std::uint64_t> latest;
      for (const list_access& a : history_[t].accesses)
        if (a.append) {
          if (!writers_.try_emplace(a.element, writer{t, true}).second)
            report("element " + named(a.element) + " was appended twice by the test");
          if (const auto [former, fresh] = latest.try_emplace(a.list, a.element); !fresh)
            writers_.at(std::exchange(former->second, a.element)).last = false;
        }
    }
  }

  // Only reads of committed transactions count: an attempt that was rolled back may have seen its
  // own appends.
  void note_orders() {
    for (const transaction_record& t : history_) {
      if (!t.committed) continue;
      for (const list_access& a : t.accesses) {
        if (a.append) continue;
        if (a.list >= orders_.size()) orders_.resize(a.list + 1);
        for (std::size_t i = 0; i < a.elements.size(); ++i) {
          const auto [known, fresh] = orders_[a.list].try_emplace(a.first + i, a.elements[i]);
          if (!fresh && known->second != a.elements[i])
            report("list " + named(a.list) + " was read with " + named(known->second) +
                   " and with " + named(a.elements[i]) + " at index " + named(a.first + i));
        }
      }
    }
  }

  void check_appends() {
    std::unordered_map<std::uint64_t, unsigned> seen;
    for (const order& o : orders_)
      for (const auto& [index, element] : o)
        if (++seen[element] > 1) report("element " + named(element) + " is in the lists twice");
    for (std::uint32_t t = 0; t < history_.size(); ++t)
      for (const list_access& a : history_[t].accesses)
        if (a.append && history_[t].committed && !seen.contains(a.element))
          report("lost: element " + named(a.element) + ", appended by transaction " + named(t) +
                 ", was never read");
  }

  void check_reads() {
    for (std::uint32_t t = 0; t < history_.size(); ++t)
      if (history_[t].committed) check_reads_of(t);
  }
  void check_reads_of(std::uint32_t t) {
    // By list: its length as this transaction must see it.
    std::unordered_map<std::uint32_t, std::uint64_t> expected;
    for (const list_access& a : history_[t].accesses) {
      if (a.append) {
        if (const auto known = expected.find(a.list); known != expected.end()) ++known->second;
        continue;
      }
      const std::uint64_t length = a.first + a.elements.size();
      if (const auto [known, fresh] = expected.try_emplace(a.list, length);
          !fresh && known->second != length)
        report("transaction " + named(t) + " saw list " + named(a.list) + " at lengths " +
               named(known->second) + " and " + named(length));
      for (const std::uint64_t element : a.elements) {
        const auto w = writers_.find(element);
        if (w == writers_.end())
          report("transaction " + named(t) + " read element " + named(element) +
                 ", which nobody appended");
        else if (!history_[w->second.transaction].committed)
          report("G1a: transaction " + named(t) + " read element " + named(element) +
                 " of a transaction that was rolled back");
      }
      if (a.elements.empty()) continue;
      if (const auto w = writers_.find(a.elements.back());
          w != writers_.end() && !w->second.last && w->second.transaction != t)
        report("G1b: transaction " + named(t) + " read up to element " + named(a.elements.back()) +
               ", in the middle of its writer");
    }
  }

  const writer* writer_at(std::uint32_t list, std::uint64_t index) const {
    const auto element = orders_[list].find(index);
    return element == orders_[list].end() ? nullptr : &writers_.at(element->second);
  }

  void check_cycles() {
    dependency_graph graph(2 * history_.size());
    add_real_time(graph);
    for (std::uint32_t list = 0; list < orders_.size(); ++list)
      for (const auto& [index, element] : orders_[list])
        if (const writer* next = writer_at(list, index + 1))
          graph.edge(writers_.at(element).transaction, next->transaction);  // ww
    for (std::uint32_t t = 0; t < history_.size(); ++t) {
      if (!history_[t].committed) continue;
      for (const list_access& a : history_[t].accesses) {
        if (a.append) continue;
        const std::uint64_t length = a.first + a.elements.size();
        if (const writer* w = length == 0 ? nullptr : writer_at(a.list, length - 1))
          graph.edge(w->transaction, t);                                                 // wr
        if (const writer* w = writer_at(a.list, length)) graph.edge(t, w->transaction);  // rw
      }
    }
    for (const auto& cycle : graph.cycles()) {
      std::string sentence = "cycle:";
      for (const std::uint32_t n : std::span(cycle).first(std::min<std::size_t>(cycle.size(), 12)))
        if (n < history_.size()) sentence += " " + named(n);
      report(sentence);
    }
  }

  // Adds a chain of nodes, one for each return. A transaction that has returned points to its node;
  // the newest node points to each transaction that is invoked after it.
  void add_real_time(dependency_graph& graph) const {
    struct moment {
      std::int64_t when;
      bool returns;
      std::uint32_t transaction;
      // The order of equal clock readings is unknown. Invocations come first, so that no edge is
      // claimed.
      bool operator<(const moment& o) const {
        return std::pair(when, returns) < std::pair(o.when, o.returns);
      }
    };
    std::vector<moment> moments;
    for (std::uint32_t t = 0; t < history_.size(); ++t)
      if (history_[t].committed) {
        moments.push_back({history_[t].invoked, false, t});
        moments.push_back({history_[t].returned, true, t});
      }
    std::ranges::sort(moments, std::less<>{});
    std::size_t instants = 0;
    const std::size_t first = history_.size();
    for (const moment& m : moments) {
      if (!m.returns) {
        if (instants != 0) graph.edge(first + instants - 1, m.transaction);
        continue;
      }
      if (instants != 0) graph.edge(first + instants - 1, first + instants);
      graph.edge(m.transaction, first + instants++);
    }
  }

  const std::vector<transaction_record>& history_;
  std::size_t limit_;
  std::unordered_map<std::uint64_t, writer> writers_;
  std::vector<order> orders_;
  std::vector<std::string> anomalies_;
};

inline std::vector<std::string> anomalies_of(const std::vector<transaction_record>& history,
                                             std::size_t limit) {
  return history_checker(history, limit).run();
}

}  // namespace stele::testing
