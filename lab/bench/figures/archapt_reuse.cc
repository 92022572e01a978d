// Figure 3 of the architecture-aware evaluation: how often each object is used.
//
// An object is a record (ycsb), a row, where an order with its lines is one object (tpcc), a node
// or a list of links (linkbench). Operations are drawn as for a run. The objects that an operation
// reads or writes are derived from the operation and a small state, without a pool; an operation
// counts once for an object. There are as many operations as keys. New objects count from their
// creation on. An object that replaces another counts as the same object, because it is stored in
// the same place.
#include <bench/figures/archapt_parts.h>
#include <bench/host.h>
#include <fmt/format.h>
#include <workloads/linkbench.h>
#include <workloads/tpcc.h>
#include <workloads/ycsb.h>

#include <algorithm>
#include <unordered_map>

namespace stele::bench::archapt {
namespace {

using workloads::operation;
using kind = operation::kind;
using uses = std::vector<std::uint32_t>;  // for each object

class reuse {
 public:
  virtual ~reuse() = default;
  virtual void apply(const operation& op) = 0;
  uses counts;  // one for each existing object

 protected:
  void use(std::uint64_t object) { ++counts[object]; }
};

class record_reuse final : public reuse {
 public:
  explicit record_reuse(const workloads::parameters& p) : present_{p.keys, 0} {
    counts.resize(p.keys);
  }

  void apply(const operation& op) override {
    if (op.what == kind::insert) return insert();
    if (op.what == kind::read && op.b == workloads::ycsb::by_recency)
      return use(present_.latest(op.a));
    const std::uint64_t end =
        op.what == kind::scan ? std::min<std::uint64_t>(op.a + op.b, counts.size()) : op.a + 1;
    for (std::uint64_t key = op.a; key < end; ++key) use(key);
  }

 private:
  void insert() {
    if (present_.inserted < present_.room()) counts.push_back(0);
    use(present_.next());
    ++present_.inserted;
  }

  workloads::ycsb::key_range present_;
};

class graph_reuse final : public reuse {
 public:
  explicit graph_reuse(const workloads::parameters& p) : nodes_(workloads::linkbench::nodes_of(p)) {
    counts.resize(3 * nodes_);
  }

  void apply(const operation& op) override {
    const bool of_node = op.what == kind::put || (op.what == kind::read && op.b == 0);
    const std::uint64_t type = op.what == kind::read ? op.b - 1 : op.b >> 63;
    use(of_node ? op.a : nodes_ + 2 * op.a + type);
  }

 private:
  std::uint64_t nodes_;
};

class table_reuse final : public reuse {
 public:
  explicit table_reuse(const workloads::parameters& p)
      : shape_(p), districts_(shape_.all_districts()) {
    std::uint64_t end = 0;
    for (const auto& [t, rows] : {std::pair{warehouse, shape_.warehouses},
                                  {district, shape_.all_districts()},
                                  {customer, shape_.all_districts() * shape_.customers},
                                  {item, shape_.items},
                                  {stock, shape_.warehouses * shape_.items}}) {
      first_[t] = end;
      end += rows;
    }
    counts.resize(end);
  }

  void apply(const operation& op) override {
    if (op.what == kind::insert) return order(op);
    if (op.what == kind::put) return pay(workloads::tpcc::payment_input(op, shape_));
    if (op.what == kind::erase) return deliver(workloads::tpcc::delivery_input(op, shape_));
    if (op.what == kind::read)
      return look_at_order(workloads::tpcc::order_status_input(op, shape_));
    look_at_stock(workloads::tpcc::stock_level_input(op, shape_));
  }

 private:
  enum table { warehouse, district, customer, item, stock, tables };
  struct order_place {
    std::uint64_t object = 0, id = 0, customer = 0;
    std::vector<std::uint64_t> items;
  };
  struct district_state {
    std::uint64_t next_order = 1, next_delivery = 1, payments = 0;
    std::unordered_map<std::uint64_t, order_place> orders;          // by id modulo their number
    std::unordered_map<std::uint64_t, std::uint64_t> payment_rows;  // likewise; values are objects
    std::unordered_map<std::uint64_t, std::uint64_t> last_order;    // by customer
  };

  void use_row(table t, std::uint64_t row) { use(first_[t] + row); }
  std::uint64_t fresh() {
    counts.push_back(0);
    return counts.size() - 1;
  }
  std::uint64_t district_row(const workloads::tpcc::terminal& in) const {
    return in.warehouse * shape_.districts + in.district;
  }

  void order(const operation& op) {
    const workloads::tpcc::new_order_input in(op, shape_);
    const std::uint64_t row = district_row(in);
    district_state& d = districts_[row];
    use_row(warehouse, in.warehouse);
    use_row(district, row);
    use_row(customer, row * shape_.customers + in.customer);
    const std::uint64_t id = d.next_order++;
    if (d.next_delivery + shape_.orders == id) ++d.next_delivery;
    order_place& place = d.orders[id % shape_.orders];
    if (place.id == 0) place.object = fresh();
    place.id = id;
    place.customer = in.customer;
    place.items.clear();
    for (std::uint32_t i = 0; i < in.count; ++i) {
      use_row(item, in.lines[i].item);
      use_row(stock, in.lines[i].supply * shape_.items + in.lines[i].item);
      place.items.push_back(in.lines[i].item);
    }
    d.last_order[in.customer] = id;
    use(place.object);
  }
  void pay(const workloads::tpcc::payment_input& in) {
    const std::uint64_t row = district_row(in);
    district_state& d = districts_[row];
    use_row(warehouse, in.warehouse);
    use_row(district, row);
    use_row(customer,
            (in.customer_warehouse * shape_.districts + in.customer_district) * shape_.customers +
                in.customer);
    const auto [payment, is_new] =
        d.payment_rows.try_emplace(d.payments++ % shape_.orders, counts.size());
    if (is_new) fresh();
    use(payment->second);
  }
  void deliver(const workloads::tpcc::delivery_input& in) {
    for (std::uint64_t i = 0; i < shape_.districts; ++i) {
      const std::uint64_t row = in.warehouse * shape_.districts + i;
      district_state& d = districts_[row];
      use_row(district, row);
      if (d.next_delivery == d.next_order) continue;
      const order_place& place = d.orders[d.next_delivery++ % shape_.orders];
      use(place.object);
      use_row(customer, row * shape_.customers + place.customer);
    }
  }
  void look_at_order(const workloads::tpcc::order_status_input& in) {
    const std::uint64_t row = district_row(in);
    district_state& d = districts_[row];
    use_row(customer, row * shape_.customers + in.customer);
    const std::uint64_t id = d.last_order[in.customer];
    if (id == 0) return;
    if (const order_place& place = d.orders[id % shape_.orders]; place.id == id) use(place.object);
  }
  void look_at_stock(const workloads::tpcc::stock_level_input& in) {
    const std::uint64_t row = district_row(in);
    district_state& d = districts_[row];
    use_row(district, row);
    std::vector<std::uint64_t> items;
    for (std::uint64_t id =
             d.next_order - std::min({d.next_order - 1, shape_.orders, std::uint64_t{20}});
         id < d.next_order; ++id) {
      const order_place& place = d.orders[id % shape_.orders];
      use(place.object);
      items.insert(items.end(), place.items.begin(), place.items.end());
    }
    std::ranges::sort(items);
    items.erase(std::ranges::unique(items).begin(), items.end());
    for (const std::uint64_t i : items) use_row(stock, in.warehouse * shape_.items + i);
  }

  workloads::tpcc::shape shape_;
  std::vector<district_state> districts_;
  std::uint64_t first_[tables] = {};
};

result<uses> count_uses(const sweep_options& o, const mix& m) {
  const task t = task_on(o, m, 1);
  if (!t.host.empty()) return count_host_uses(t, o.cancelled);
  const auto w = workloads::make_workload(t.workload, t.parameters);
  if (!w) return std::unexpected(w.error());
  std::unique_ptr<reuse> r;
  if (t.workload == "tpcc")
    r = std::make_unique<table_reuse>(t.parameters);
  else if (t.workload == "linkbench")
    r = std::make_unique<graph_reuse>(t.parameters);
  else
    r = std::make_unique<record_reuse>(t.parameters);
  base::rng random(base::mix(t.seed));
  for (std::uint64_t i = 0; i < t.parameters.keys; ++i) r->apply((*w)->draw(random));
  return std::move(r->counts);
}

struct share {
  const char *panel, *name;
  std::uint32_t least, most;
};
constexpr std::uint32_t any = ~std::uint32_t{0};
constexpr share shares[] = {{"reuse", "0 or 1", 0, 1},
                            {"reuse", "2", 2, 2},
                            {"reuse", "3", 3, 3},
                            {"reuse", "4 or more", 4, any},
                            {"in sum", "at most twice", 0, 2},
                            {"in sum", "twice or more", 2, any},
                            {"in sum", "not at all", 0, 0}};

double percent_of(const uses& all, const share& s) {
  const auto some =
      std::ranges::count_if(all, [&](std::uint32_t n) { return n >= s.least && n <= s.most; });
  return 100 * static_cast<double>(some) / static_cast<double>(all.size());
}

}  // namespace

result<> measure_reuse(const sweep_options& o, chart& c) {
  const auto xs = names_of(mixes);
  for (const char* name : {"reuse", "in sum"}) {
    panel& p = c.panels.emplace_back(
        panel{name, "workload", "% of objects that so many operations use", xs, {}, true});
    for (const share& s : shares)
      if (s.panel == p.name)
        p.lines.push_back(values_of(s.name, std::vector<std::optional<double>>(xs.size())));
  }
  for (std::size_t i = 0; i < xs.size() && c.complete; ++i) {
    c.complete = !o.cancelled();
    if (!c.complete) break;
    o.progress(xs[i]);
    const auto counted = count_uses(o, mixes[i]);
    c.complete = counted || counted.error().code != errc::cancelled;
    if (!c.complete) break;
    if (!counted) return std::unexpected(counted.error());
    for (panel& p : c.panels)
      for (series& line : p.lines) {
        const double v = percent_of(*counted, *std::ranges::find_if(shares, [&](const share& s) {
          return line.name == s.name;
        }));
        line.points[i] = known(v);
      }
  }
  c.notes.push_back(fmt::format(
      "{}; an operation that reads or writes it uses it once; {} operations on {} keys",
      is_on_redis(o)
          ? "an object is a key of Redis, with its string or hash: a record (ycsb), a row (tpcc), "
            "a "
            "node, a list of links or the counts of a node (linkbench); counted by MONITOR"
          : "an object is a record (ycsb), a row, an order with its lines being one (tpcc), a node "
            "or a list of links (linkbench)",
      o.archapt_keys, o.archapt_keys));
  return {};
}

}  // namespace stele::bench::archapt
