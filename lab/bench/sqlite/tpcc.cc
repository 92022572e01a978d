// tpcc in SQL: the nine tables of the TPC Benchmark C (Standard Specification 5.11, 2010), their
// keys and the index by which a customer's last order is found.
//
// The rows at the start, the inputs and the mix are those of lab/workloads/tpcc_kind.h, with this
// difference: as in the specification, orders, order lines and history grow.
#include <bench/sqlite/sql_workload.h>
#include <fmt/format.h>
#include <workloads/store.h>
#include <workloads/tpcc.h>

namespace stele::bench::sql {
namespace {

using kind = operation::kind;
using namespace workloads::tpcc;

constexpr const char* tables =
    "CREATE TABLE warehouse(w_id INTEGER PRIMARY KEY, w_tax INTEGER, w_ytd INTEGER);"
    "CREATE TABLE district(d_w_id INTEGER, d_id INTEGER, d_tax INTEGER, d_ytd INTEGER,"
    " d_next_o_id INTEGER, PRIMARY KEY(d_w_id, d_id)) WITHOUT ROWID;"
    "CREATE TABLE customer(c_w_id INTEGER, c_d_id INTEGER, c_id INTEGER, c_discount INTEGER,"
    " c_bad_credit INTEGER, c_balance INTEGER, c_ytd_payment INTEGER, c_payment_cnt INTEGER,"
    " c_delivery_cnt INTEGER, c_data BLOB, PRIMARY KEY(c_w_id, c_d_id, c_id));"
    "CREATE TABLE item(i_id INTEGER PRIMARY KEY, i_price INTEGER);"
    "CREATE TABLE stock(s_w_id INTEGER, s_i_id INTEGER, s_quantity INTEGER, s_ytd INTEGER,"
    " s_order_cnt INTEGER, s_remote_cnt INTEGER, s_data BLOB, PRIMARY KEY(s_w_id, s_i_id));"
    "CREATE TABLE orders(o_w_id INTEGER, o_d_id INTEGER, o_id INTEGER, o_c_id INTEGER,"
    " o_entry_d INTEGER, o_carrier_id INTEGER, o_ol_cnt INTEGER, o_all_local INTEGER,"
    " PRIMARY KEY(o_w_id, o_d_id, o_id)) WITHOUT ROWID;"
    "CREATE INDEX orders_of_customer ON orders(o_w_id, o_d_id, o_c_id, o_id);"
    "CREATE TABLE new_order(no_w_id INTEGER, no_d_id INTEGER, no_o_id INTEGER,"
    " PRIMARY KEY(no_w_id, no_d_id, no_o_id)) WITHOUT ROWID;"
    "CREATE TABLE order_line(ol_w_id INTEGER, ol_d_id INTEGER, ol_o_id INTEGER,"
    " ol_number INTEGER, ol_i_id INTEGER, ol_supply_w_id INTEGER, ol_delivery_d INTEGER,"
    " ol_quantity INTEGER, ol_amount INTEGER, ol_dist_info BLOB,"
    " PRIMARY KEY(ol_w_id, ol_d_id, ol_o_id, ol_number)) WITHOUT ROWID;"
    "CREATE TABLE history(h_c_w_id INTEGER, h_c_d_id INTEGER, h_c_id INTEGER, h_w_id INTEGER,"
    " h_d_id INTEGER, h_date INTEGER, h_amount INTEGER)";

constexpr std::int64_t orders_looked_at = 20;  // by a stock level
constexpr std::size_t dist_info_bytes = 24;

class tpcc_session final : public session {
 public:
  tpcc_session(std::shared_ptr<connection> db, const shape& s)
      : session(std::move(db)), shape_(s) {}

 private:
  bool is_one_statement(const operation&) const override { return false; }

  result<> run(const operation& op) override {
    switch (op.what) {
      case kind::insert:
        return order(new_order_input(op, shape_));
      case kind::put:
        return pay(payment_input(op, shape_), op.b);
      case kind::erase:
        return deliver(delivery_input(op, shape_));
      case kind::scan:
        return look_at_stock(stock_level_input(op, shape_));
      default:
        return look_at_order(order_status_input(op, shape_));
    }
  }

  static void use(const row_view& row) { workloads::do_not_optimize(row.number(0)); }

  result<> order(const new_order_input& in) {
    std::int64_t id = 0;
    auto done = warehouse_tax_.each_row(use, in.warehouse);
    if (done)
      done = next_order_.each_row([&](const row_view& row) { id = row.number(0); }, in.warehouse,
                                  in.district);
    if (done) done = raise_next_order_.run(in.warehouse, in.district);
    if (done) done = discount_.each_row(use, in.warehouse, in.district, in.customer);
    if (done)
      done = add_order_.run(in.warehouse, in.district, id, in.customer, date_of(in), in.count,
                            in.is_local);
    if (done) done = add_new_order_.run(in.warehouse, in.district, id);
    for (std::uint32_t i = 0; done && i < in.count; ++i) done = add_line(in, id, i);
    return done;
  }
  result<> add_line(const new_order_input& in, std::int64_t order, std::uint32_t number) {
    const new_order_input::line& l = in.lines[number];
    const auto price = price_.number(l.item);
    if (!price) return std::unexpected(price.error());
    std::uint32_t quantity = 0;
    auto done = stock_.each_row(
        [&](const row_view& row) {
          quantity = static_cast<std::uint32_t>(row.number(0));
          buffer_ = row.bytes(1).substr(0, dist_info_bytes);
        },
        l.supply, l.item);
    if (done)
      done = sell_.run(quantity_after(quantity, l.quantity), l.quantity, l.supply != in.warehouse,
                       l.supply, l.item);
    if (done)
      done = add_line_.run(in.warehouse, in.district, order, number, l.item, l.supply, l.quantity,
                           *price * l.quantity, std::string_view(buffer_));
    return done;
  }

  result<> pay(const payment_input& in, std::uint64_t word) {
    auto done = pay_warehouse_.run(in.amount, in.warehouse);
    if (done) done = pay_district_.run(in.amount, in.warehouse, in.district);
    if (done)
      done = pay_customer_.run(in.amount, in.customer_warehouse, in.customer_district, in.customer);
    bool bad_credit = false;
    if (done)
      done = customer_.each_row([&](const row_view& row) { bad_credit = row.number(0) != 0; },
                                in.customer_warehouse, in.customer_district, in.customer);
    if (done && bad_credit)
      done = note_bad_credit_.run(workloads::store::value(word, shape_.text_bytes, buffer_),
                                  in.customer_warehouse, in.customer_district, in.customer);
    if (done)
      done = add_history_.run(in.customer_warehouse, in.customer_district, in.customer,
                              in.warehouse, in.district, date_of(in), in.amount);
    return done;
  }

  result<> deliver(const delivery_input& in) {
    result<> done;
    for (std::uint64_t d = 0; done && d < shape_.districts; ++d) done = deliver_in(in, d);
    return done;
  }
  result<> deliver_in(const delivery_input& in, std::uint64_t district) {
    std::int64_t id = -1;
    auto done = oldest_new_order_.each_row([&](const row_view& row) { id = row.number(0); },
                                           in.warehouse, district);
    if (!done || id < 0) return done;
    done = take_new_order_.run(in.warehouse, district, id);
    const auto customer = done ? customer_of_order_.number(in.warehouse, district, id)
                               : std::unexpected(done.error());
    if (!customer) return std::unexpected(customer.error());
    done = give_to_carrier_.run(in.carrier, in.warehouse, district, id);
    if (done) done = deliver_lines_.run(date_of(in), in.warehouse, district, id);
    const auto amount =
        done ? amount_.number(in.warehouse, district, id) : std::unexpected(done.error());
    if (!amount) return std::unexpected(amount.error());
    return credit_customer_.run(*amount, in.warehouse, district, *customer);
  }

  result<> look_at_order(const order_status_input& in) {
    auto done = customer_.each_row(use, in.warehouse, in.district, in.customer);
    std::int64_t id = -1;
    if (done)
      done = last_order_.each_row([&](const row_view& row) { id = row.number(0); }, in.warehouse,
                                  in.district, in.customer);
    if (!done || id < 0) return done;
    return lines_.each_row(use, in.warehouse, in.district, id);
  }
  result<> look_at_stock(const stock_level_input& in) {
    const auto next = next_order_.number(in.warehouse, in.district);
    if (!next) return std::unexpected(next.error());
    return low_stock_.each_row(use, in.warehouse, in.district, *next, *next - orders_looked_at,
                               in.threshold);
  }

  static std::int64_t date_of(const terminal& t) { return static_cast<std::int64_t>(t.date); }

  const shape shape_;
  std::string buffer_;
  statement warehouse_tax_{db(), "SELECT w_tax FROM warehouse WHERE w_id = ?"},
      next_order_{db(), "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ?"},
      raise_next_order_{db(),
                        "UPDATE district SET d_next_o_id = d_next_o_id + 1 "
                        "WHERE d_w_id = ? AND d_id = ?"},
      discount_{db(),
                "SELECT c_discount, c_bad_credit FROM customer "
                "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
      add_order_{db(), "INSERT INTO orders VALUES(?, ?, ?, ?, ?, NULL, ?, ?)"},
      add_new_order_{db(), "INSERT INTO new_order VALUES(?, ?, ?)"},
      price_{db(), "SELECT i_price FROM item WHERE i_id = ?"},
      stock_{db(), "SELECT s_quantity, s_data FROM stock WHERE s_w_id = ? AND s_i_id = ?"},
      sell_{db(),
            "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, "
            "s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?"},
      add_line_{db(), "INSERT INTO order_line VALUES(?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)"};
  statement pay_warehouse_{db(), "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?"},
      pay_district_{db(), "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?"},
      pay_customer_{db(),
                    "UPDATE customer SET c_balance = c_balance - ?1, "
                    "c_ytd_payment = c_ytd_payment + ?1, c_payment_cnt = c_payment_cnt + 1 "
                    "WHERE c_w_id = ?2 AND c_d_id = ?3 AND c_id = ?4"},
      customer_{db(),
                "SELECT c_bad_credit, c_balance, c_discount FROM customer "
                "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
      note_bad_credit_{db(),
                       "UPDATE customer SET c_data = ? "
                       "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"},
      add_history_{db(), "INSERT INTO history VALUES(?, ?, ?, ?, ?, ?, ?)"};
  statement oldest_new_order_{db(),
                              "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? "
                              "ORDER BY no_o_id LIMIT 1"},
      take_new_order_{db(),
                      "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"},
      customer_of_order_{db(),
                         "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"},
      give_to_carrier_{
          db(), "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"},
      deliver_lines_{db(),
                     "UPDATE order_line SET ol_delivery_d = ? "
                     "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"},
      amount_{db(),
              "SELECT sum(ol_amount) FROM order_line "
              "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"},
      credit_customer_{
          db(),
          "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 "
          "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"};
  statement last_order_{
      db(),
      "SELECT o_id, o_entry_d, o_carrier_id FROM orders "
      "WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = (SELECT max(o_id) FROM orders "
      "WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_c_id = ?3)"},
      lines_{db(),
             "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d "
             "FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"},
      low_stock_{db(),
                 "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock "
                 "ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? "
                 "AND ol_o_id < ? AND ol_o_id >= ? AND s_quantity < ?"};
};

class tpcc final : public sql_workload {
 public:
  explicit tpcc(const workloads::parameters& p) : keys_(p), shape_(p) {}

  result<> fill(connection& db) override {
    auto done = db.run(tables);
    if (done) done = fill_warehouses(db);
    if (done) done = fill_items(db);
    if (done) done = fill_customers(db);
    if (done) done = fill_stock(db);
    return done;
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> db) override {
    return std::make_unique<tpcc_session>(std::move(db), shape_);
  }

 private:
  static constexpr std::size_t small_row_bytes = 64;

  result<> fill_warehouses(connection& db) const {
    statement warehouse(db, "INSERT INTO warehouse VALUES(?, ?, ?)"),
        district(db, "INSERT INTO district VALUES(?, ?, ?, ?, ?)");
    return in_large_transactions(
        db, shape_.all_districts(), small_row_bytes, [&](std::uint64_t row) -> result<> {
          const std::uint64_t w = row / shape_.districts, d = row % shape_.districts;
          plain_rows::district content{};
          init_district(content, keys_, shape_, row);
          if (d == 0)
            if (auto done = warehouse.run(w, tax_at_start(keys_, table::warehouse, w),
                                          shape_.all_customers() * paid_at_start);
                !done)
              return done;
          return district.run(w, d, content.tax.load(), content.ytd.load(),
                              content.next_order.load());
        });
  }
  result<> fill_items(connection& db) const {
    statement item(db, "INSERT INTO item VALUES(?, ?)");
    return in_large_transactions(db, shape_.items, small_row_bytes, [&](std::uint64_t i) {
      return item.run(i, price_at_start(keys_, i));
    });
  }
  result<> fill_customers(connection& db) const {
    statement customer(db, "INSERT INTO customer VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    std::string buffer;
    return in_large_transactions(
        db, shape_.warehouses * shape_.all_customers(), shape_.text_bytes, [&](std::uint64_t row) {
          plain_rows::customer c{};
          init_customer(c, keys_, row);
          const std::uint64_t district = row / shape_.customers;
          return customer.run(district / shape_.districts, district % shape_.districts,
                              row % shape_.customers, c.discount.load(), c.has_bad_credit.load(),
                              c.balance.load(), c.ytd_payment.load(), c.payments.load(),
                              c.deliveries.load(), text(table::customer_text, row, buffer));
        });
  }
  result<> fill_stock(connection& db) const {
    statement stock(db, "INSERT INTO stock VALUES(?, ?, ?, 0, 0, 0, ?)");
    std::string buffer;
    return in_large_transactions(
        db, shape_.warehouses * shape_.items, shape_.text_bytes, [&](std::uint64_t row) {
          plain_rows::stock s{};
          init_stock(s, keys_, row);
          return stock.run(row / shape_.items, row % shape_.items, s.quantity.load(),
                           text(table::stock_text, row, buffer));
        });
  }
  std::string_view text(table t, std::uint64_t row, std::string& buffer) const {
    return workloads::store::value(word_at_start(keys_, t, row), shape_.text_bytes, buffer);
  }

  // The specification's consistency conditions 1 to 6 and 8, and that no row of the start is gone.
  std::vector<invariant> invariants() const override {
    return {
        {"SELECT w_id FROM warehouse WHERE w_ytd <> "
         "(SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
         "condition 1: a warehouse's sum of payments is not that of its districts; its id"},
        {"SELECT d_id FROM district WHERE d_next_o_id - 1 <> "
         "ifnull((SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id), 0) OR "
         "d_next_o_id - 1 <> ifnull((SELECT max(no_o_id) FROM new_order "
         "WHERE no_w_id = d_w_id AND no_d_id = d_id), d_next_o_id - 1)",
         "condition 2: a district's next order does not follow its last one; its id"},
        {"SELECT no_d_id FROM new_order GROUP BY no_w_id, no_d_id "
         "HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
         "condition 3: new orders of a district are not consecutive; its id"},
        {"SELECT d_id FROM district WHERE "
         "(SELECT total(o_ol_cnt) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) <> "
         "(SELECT count(*) FROM order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id)",
         "condition 4: a district's orders count other lines than there are; its id"},
        {"SELECT o_id FROM orders WHERE (o_carrier_id IS NULL) <> "
         "EXISTS(SELECT 1 FROM new_order "
         "WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id)",
         "condition 5: an order has a carrier and is new, or has none and is not; its id"},
        {"SELECT o_id FROM orders WHERE o_ol_cnt <> (SELECT count(*) FROM order_line "
         "WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)",
         "condition 6: an order counts other lines than it has; its id"},
        {fmt::format("SELECT w_id FROM warehouse WHERE w_ytd - {} <> "
                     "(SELECT total(h_amount) FROM history WHERE h_w_id = w_id)",
                     shape_.all_customers() * paid_at_start),
         "condition 8: a warehouse's sum of payments is not that of the history; its id"},
        {fmt::format("SELECT n FROM (SELECT (SELECT count(*) FROM warehouse) + "
                     "(SELECT count(*) FROM district) + (SELECT count(*) FROM customer) + "
                     "(SELECT count(*) FROM item) + (SELECT count(*) FROM stock) AS n) "
                     "WHERE n <> {}",
                     rows_at_start()),
         "there are more or fewer warehouses, districts, customers, items and rows of stock than "
         "at the start; their number"}};
  }
  std::uint64_t rows_at_start() const {
    return shape_.warehouses * (1 + shape_.districts + shape_.all_customers() + shape_.items) +
           shape_.items;
  }

  const workloads::key_space keys_;
  const shape shape_;
};

}  // namespace

std::unique_ptr<sql_workload> make_tpcc(const workloads::parameters& p) {
  return std::make_unique<tpcc>(p);
}

}  // namespace stele::bench::sql
