// tpcc: the five transactions of the TPC Benchmark C (Standard Specification 5.11, 2010) at 45 %
// new orders, 43 % payments and 4 % each of order status, delivery and stock level.
//
// Warehouses and their rows scale with the keys (tpcc.h). All tables are arrays of structs;
// customers and stock have texts of the value size. Departures from the specification, which keep
// the pool bounded or leave out what is not storage: there are no orders at the start. A district
// has places for as many orders and payments as it has customers; later ones replace the oldest,
// delivered or not. Customers are found by number, not by name. No new order is rolled back. A
// delivery is one transaction for all districts of a warehouse. The operation's kind is the
// transaction: insert is a new order, put a payment, read an order status, erase a delivery, scan a
// stock level.
#pragma once

#include <workloads/run.h>
#include <workloads/tpcc_tables.h>

namespace stele::workloads::tpcc {

std::unique_ptr<model> make_warehouse_model(const key_space& keys);

struct benchmark {
  static constexpr std::string_view name = "tpcc";
  template <class Memory>
  using root = tables<Memory>;

  static void prepare(auto& all, const key_space& keys) { all.prepare(keys); }
  static void fill(auto& all, const key_space& keys, std::uint64_t i) { all.fill(keys, i); }
  static void apply(auto& all, const key_space&, const operation& op) {
    if (op.what == operation::kind::insert) all.new_order(op);
    if (op.what == operation::kind::put) all.pay(op);
    if (op.what == operation::kind::erase) all.deliver(op);
  }
  static void read(const auto& all, const operation& op) {
    if (op.what == operation::kind::scan) return all.read_stock_level(op);
    all.read_order_status(op);
  }
  static std::uint64_t digest(const auto& all) { return all.digest(); }

  static operation draw(const key_space& keys, base::rng& random) {
    using enum operation::kind;
    const std::uint64_t choice = random.below(100),
                        district = random.below(shape(keys.params()).all_districts()),
                        seed = random();
    return {choice < 45   ? insert
            : choice < 88 ? put
            : choice < 92 ? read
            : choice < 96 ? erase
                          : scan,
            district, seed};
  }
  static std::unique_ptr<model> make_model(const key_space& keys) {
    return make_warehouse_model(keys);
  }
};

}  // namespace stele::workloads::tpcc
