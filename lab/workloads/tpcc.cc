// tpcc on pools, and its model.
#include <workloads/entries.h>
#include <workloads/tpcc_kind.h>

namespace stele::workloads {

namespace tpcc {
namespace {

class warehouse_model final : public model {
  using rows = plain_rows;

 public:
  explicit warehouse_model(const key_space& keys)
      : keys_(keys), shape_(keys.params()), warehouses_(shape_.warehouses) {
    const std::uint64_t customers = shape_.all_customers();
    for (std::uint64_t w = 0; w < warehouses_.size(); ++w) {
      warehouse& h = warehouses_[w];
      h.ytd = customers * paid_at_start;
      h.districts.resize(shape_.districts);
      for (std::uint64_t d = 0; d < shape_.districts; ++d)
        init_district(h.districts[d], keys, shape_, w * shape_.districts + d);
      h.customers.resize(customers);
      for (std::uint64_t c = 0; c < customers; ++c) {
        init_customer(h.customers[c], keys, w * customers + c);
        h.customer_words.push_back(word_at_start(keys, table::customer_text, w * customers + c));
      }
      h.stocks.resize(shape_.items);
      for (std::uint64_t i = 0; i < shape_.items; ++i)
        init_stock(h.stocks[i], keys, w * shape_.items + i);
      h.orders.resize(shape_.all_orders());
      h.new_orders.resize(h.orders.size());
      h.lines.resize(h.orders.size() * max_lines);
      h.payments.resize(h.orders.size());
    }
  }
  void apply(const operation& op) override {
    if (op.what == operation::kind::insert) order(new_order_input(op, shape_));
    if (op.what == operation::kind::put) pay(payment_input(op, shape_), op.b);
    if (op.what == operation::kind::erase) deliver(delivery_input(op, shape_));
  }
  std::uint64_t digest() const override {
    std::uint64_t sum = 0;
    for (std::uint64_t w = 0; w < warehouses_.size(); ++w) sum += digest_of(w);
    return sum;
  }

 private:
  struct warehouse {
    std::uint64_t ytd = 0;
    std::vector<rows::district> districts;
    std::vector<rows::customer> customers;
    std::vector<std::uint64_t> customer_words;
    std::vector<rows::stock> stocks;
    std::vector<rows::order> orders;
    std::vector<std::uint64_t> new_orders;
    std::vector<rows::order_line> lines;
    std::vector<rows::payment> payments;
  };

  std::uint64_t stock_word(std::uint64_t w, std::uint64_t item) const {
    return word_at_start(keys_, table::stock_text, w * shape_.items + item);
  }

  void order(const new_order_input& in) {
    warehouse& h = warehouses_[in.warehouse];
    auto& d = h.districts[in.district];
    const std::uint64_t id = d.next_order, place = shape_.place_of(in.district, id);
    ++d.next_order;
    d.lines += in.count;
    if (h.new_orders[place] != 0) ++d.next_delivery;
    h.new_orders[place] = id;
    h.orders[place] = {id, in.date,  static_cast<std::uint32_t>(in.customer),
                       0,  in.count, in.is_local};
    h.customers[in.district * shape_.customers + in.customer].last_order = id;
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const auto& l = in.lines[i];
      auto& stock = warehouses_[l.supply].stocks[l.item];
      stock.quantity = quantity_after(stock.quantity, l.quantity);
      stock.ytd += l.quantity;
      ++stock.orders;
      stock.remote_orders += l.supply != in.warehouse;
      blob<24> text{};
      fill_with(text.bytes, std::min<std::uint64_t>(shape_.text_bytes, 24),
                stock_word(l.supply, l.item));
      const std::uint64_t amount = std::uint64_t{price_at_start(keys_, l.item)} * l.quantity;
      h.lines[place * max_lines + i] = {amount,
                                        0,
                                        static_cast<std::uint32_t>(l.item),
                                        static_cast<std::uint16_t>(l.supply),
                                        static_cast<std::uint16_t>(l.quantity),
                                        text};
    }
  }
  void pay(const payment_input& in, std::uint64_t word) {
    warehouse &h = warehouses_[in.warehouse], &there = warehouses_[in.customer_warehouse];
    auto& d = h.districts[in.district];
    const std::uint64_t row = in.customer_district * shape_.customers + in.customer;
    auto& c = there.customers[row];
    h.ytd += in.amount;
    d.ytd += in.amount;
    c.ytd_payment += in.amount;
    c.balance -= static_cast<std::int64_t>(in.amount);
    ++c.payments;
    const std::uint64_t customer_district =
        in.customer_warehouse * shape_.districts + in.customer_district;
    h.payments[shape_.place_of(in.district, d.payments)] = {
        in.date, in.amount, static_cast<std::uint32_t>(customer_district),
        static_cast<std::uint32_t>(in.customer)};
    ++d.payments;
    if (c.has_bad_credit != 0) there.customer_words[row] = word;
  }
  void deliver(const delivery_input& in) {
    warehouse& h = warehouses_[in.warehouse];
    for (std::uint64_t i = 0; i < shape_.districts; ++i) {
      auto& d = h.districts[i];
      if (d.next_delivery == d.next_order) continue;
      const std::uint64_t place = shape_.place_of(i, d.next_delivery);
      ++d.next_delivery;
      h.new_orders[place] = 0;
      auto& o = h.orders[place];
      auto& c = h.customers[i * shape_.customers + o.customer];
      o.carrier = in.carrier;
      ++c.deliveries;
      for (std::uint64_t l = place * max_lines; l < place * max_lines + o.lines; ++l) {
        h.lines[l].delivered = in.date;
        c.balance += static_cast<std::int64_t>(h.lines[l].amount.load());
      }
    }
  }

  template <class Row>
  static std::uint64_t digest_rows(table t, std::uint64_t w, const std::vector<Row>& all) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < all.size(); ++i)
      sum += digest_item(digest_key(t, w, i), &all[i], sizeof(Row));
    return sum;
  }
  std::uint64_t digest_of(std::uint64_t w) const {
    const warehouse& h = warehouses_[w];
    std::uint64_t sum = base::mix(digest_key(table::warehouse, w, 0) ^ h.ytd);
    for (std::uint64_t i = 0; i < h.customers.size(); ++i)
      sum += digest_word(digest_key(table::customer_text, w, i), h.customer_words[i],
                         shape_.text_bytes);
    for (std::uint64_t i = 0; i < shape_.items; ++i)
      sum += digest_word(digest_key(table::stock_text, w, i), stock_word(w, i), shape_.text_bytes);
    return sum + digest_rows(table::district, w, h.districts) +
           digest_rows(table::customer, w, h.customers) + digest_rows(table::stock, w, h.stocks) +
           digest_rows(table::order, w, h.orders) + digest_rows(table::new_order, w, h.new_orders) +
           digest_rows(table::line, w, h.lines) + digest_rows(table::payment, w, h.payments);
  }

  key_space keys_;
  shape shape_;
  std::vector<warehouse> warehouses_;
};

}  // namespace

std::unique_ptr<model> make_warehouse_model(const key_space& keys) {
  return std::make_unique<warehouse_model>(keys);
}

}  // namespace tpcc

constinit const workload_entry tpcc_entry = {"tpcc", make_run<workload, pool_run<tpcc::benchmark>>,
                                             make_run<workload, coalescing_run<tpcc::benchmark>>};

}  // namespace stele::workloads
