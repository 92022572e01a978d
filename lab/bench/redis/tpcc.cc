// tpcc on hashes; keys and transactions: tpcc_scripts.h.
//
// The rows at the start, the inputs and the mix are those of lab/workloads/tpcc_kind.h, with this
// difference: as in the specification, orders, order lines and payments grow.
#include <bench/redis/tpcc.h>
#include <fmt/format.h>
#include <workloads/store.h>
#include <workloads/tpcc.h>

namespace stele::bench::redis {
namespace {

using kind = operation::kind;
using namespace workloads::tpcc;

constexpr unsigned orders_looked_at = 20;  // by a stock level

template <class... Arguments>
texts texts_of(const Arguments&... arguments) {
  return {fmt::format("{}", arguments)...};
}

class tpcc_session final : public session {
 public:
  tpcc_session(std::shared_ptr<connection> to, const shape& s, const tpcc_scripts& scripts)
      : session(std::move(to), {scripts.new_order, scripts.payment, scripts.delivery,
                                scripts.order_status, scripts.stock_level}),
        shape_(s) {}

 private:
  enum script : std::uint8_t { new_order, payment, delivery, order_status, stock_level };

  result<> run(const operation& op) override {
    switch (op.what) {
      case kind::insert:
        return order(new_order_input(op, shape_));
      case kind::put:
        return pay(payment_input(op, shape_), op.b);
      case kind::erase: {
        const delivery_input in(op, shape_);
        return run_script(delivery, texts_of(in.warehouse, in.carrier, in.date, shape_.districts));
      }
      case kind::scan: {
        const stock_level_input in(op, shape_);
        return run_script(stock_level,
                          texts_of(in.warehouse, in.district, in.threshold, orders_looked_at));
      }
      default: {
        const order_status_input in(op, shape_);
        return run_script(order_status, texts_of(in.warehouse, in.district, in.customer));
      }
    }
  }

  result<> order(const new_order_input& in) {
    texts arguments = texts_of(in.warehouse, in.district, in.customer, in.date, in.count,
                               static_cast<int>(in.is_local));
    for (std::uint32_t i = 0; i < in.count; ++i)
      for (const std::uint64_t word :
           {in.lines[i].item, in.lines[i].supply, std::uint64_t{in.lines[i].quantity}})
        arguments.push_back(fmt::format("{}", word));
    return run_script(new_order, arguments);
  }
  result<> pay(const payment_input& in, std::uint64_t word) {
    texts arguments = texts_of(in.warehouse, in.district, in.customer_warehouse,
                               in.customer_district, in.customer, in.amount, in.date);
    arguments.emplace_back(workloads::store::value(word, shape_.text_bytes, buffer_));
    return run_script(payment, arguments);
  }

  const shape shape_;
  std::string buffer_;
};

class tpcc final : public redis_workload {
 public:
  tpcc(const workloads::parameters& p, tpcc_scripts scripts)
      : keys_(p), shape_(p), scripts_(std::move(scripts)) {}

  result<> fill(connection& to) const override {
    auto done = fill_places(to);
    if (done) done = fill_items(to);
    if (done) done = fill_customers(to);
    return done ? to.finish() : done;
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> to) override {
    return std::make_unique<tpcc_session>(std::move(to), shape_, scripts_);
  }
  result<> check(connection& to) const override {
    for (std::uint64_t w = 0; w < shape_.warehouses; ++w)
      for (std::uint64_t d = 0; d < shape_.districts; ++d)
        if (auto sound = check_by_script(to, tpcc_district_check,
                                         texts_of(w, d, shape_.customers * paid_at_start));
            !sound)
          return sound;
    return check_by_script(
        to, tpcc_sums_check,
        texts_of(shape_.warehouses, shape_.districts, shape_.customers, shape_.items));
  }

 private:
  // A row: its key, and its fields with their values.
  static result<> add(connection& to, const texts& row) {
    std::vector<std::string_view> views = {"HSET"};
    views.insert(views.end(), row.begin(), row.end());
    return to.append(views);
  }
  result<> fill_places(connection& to) const {
    for (std::uint64_t row = 0; row < shape_.all_districts(); ++row) {
      const std::uint64_t w = row / shape_.districts, d = row % shape_.districts;
      plain_rows::district content{};
      init_district(content, keys_, shape_, row);
      auto done = d != 0 ? result<>{}
                         : add(to, texts_of(fmt::format("w:{}", w), "tax",
                                            tax_at_start(keys_, table::warehouse, w), "ytd",
                                            shape_.all_customers() * paid_at_start));
      if (done)
        done = add(to, texts_of(fmt::format("d:{}:{}", w, d), "tax", content.tax.load(), "ytd",
                                content.ytd.load(), "next_order", content.next_order.load(),
                                "next_delivery", content.next_delivery.load(), "payments", 0));
      if (!done) return done;
    }
    return {};
  }
  result<> fill_items(connection& to) const {
    std::string buffer;
    for (std::uint64_t row = 0; row < shape_.warehouses * shape_.items; ++row) {
      const std::uint64_t w = row / shape_.items, i = row % shape_.items;
      plain_rows::stock s{};
      init_stock(s, keys_, row);
      auto done =
          w != 0 ? result<>{}
                 : add(to, texts_of(fmt::format("i:{}", i), "price", price_at_start(keys_, i)));
      if (done)
        done = add(
            to, texts_of(fmt::format("s:{}:{}", w, i), "quantity", s.quantity.load(), "ytd", 0,
                         "orders", 0, "remote", 0, "text", text(table::stock_text, row, buffer)));
      if (!done) return done;
    }
    return {};
  }
  result<> fill_customers(connection& to) const {
    std::string buffer;
    for (std::uint64_t row = 0; row < shape_.warehouses * shape_.all_customers(); ++row) {
      plain_rows::customer c{};
      init_customer(c, keys_, row);
      const std::uint64_t district = row / shape_.customers;
      if (auto done =
              add(to, texts_of(fmt::format("c:{}:{}:{}", district / shape_.districts,
                                           district % shape_.districts, row % shape_.customers),
                               "discount", c.discount.load(), "bad_credit", c.has_bad_credit.load(),
                               "balance", c.balance.load(), "ytd_payment", c.ytd_payment.load(),
                               "payments", c.payments.load(), "deliveries", c.deliveries.load(),
                               "text", text(table::customer_text, row, buffer)));
          !done)
        return done;
    }
    return {};
  }
  std::string_view text(table t, std::uint64_t row, std::string& buffer) const {
    return workloads::store::value(word_at_start(keys_, t, row), shape_.text_bytes, buffer);
  }

  const workloads::key_space keys_;
  const shape shape_;
  const tpcc_scripts scripts_;
};

}  // namespace

std::unique_ptr<redis_workload> make_tpcc_with(const workloads::parameters& p,
                                               tpcc_scripts scripts) {
  return std::make_unique<tpcc>(p, std::move(scripts));
}

std::unique_ptr<redis_workload> make_tpcc(const workloads::parameters& p) {
  return make_tpcc_with(p, {});
}

}  // namespace stele::bench::redis
