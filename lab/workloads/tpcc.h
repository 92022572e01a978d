// Parts of tpcc: row counts, row types, the initial rows, and the input of each transaction.
//
// Everything follows from the parameters and the operation: `a` is the district, counted over all
// warehouses; `b` is the seed of the choices that the specification leaves to a terminal. Money is
// in cents, rates are in 1/10000.
#pragma once

#include <stele/element.h>
#include <workloads/key_space.h>

#include <array>

namespace stele::workloads::tpcc {

inline constexpr std::uint64_t min_lines = 5, max_lines = 15;  // in an order

// A key is a row of stock. A warehouse has up to 100,000 of them, and a district 3 customers for
// each 100 rows, as specified.
struct shape {
  std::uint64_t warehouses = 1, items = 1;
  // Districts in a warehouse, customers in a district, places for orders in a district.
  std::uint64_t districts = 1, customers = 1, orders = 1;
  std::uint64_t text_bytes = 8;  // in a customer and in a row of stock

  shape() = default;
  explicit shape(const parameters& p)
      : warehouses(std::max<std::uint64_t>(p.keys / 100'000, 1)),
        items(p.keys / warehouses),
        districts(std::clamp<std::uint64_t>(items / 12, 1, 10)),
        customers(std::max<std::uint64_t>(items * 3 / 100, 3)),
        orders(customers),
        text_bytes(p.value_size) {}

  std::uint64_t all_districts() const { return warehouses * districts; }
  // In one warehouse.
  std::uint64_t all_customers() const { return districts * customers; }
  std::uint64_t all_orders() const { return districts * orders; }
  // An order's place among those of its warehouse.
  std::uint64_t place_of(std::uint64_t district, std::uint64_t id) const {
    return district * orders + id % orders;
  }
};

// Rows have no padding, so that their bytes can be compared. A district is one line, since many
// transactions change it.
template <class Memory>
struct rows_of {
  template <class T>
  using cell = typename Memory::template field<T>;

  struct district {
    cell<std::uint64_t> ytd, tax, next_order, next_delivery, payments, lines;
    cell<std::uint64_t> unused[2];
  };
  struct customer {
    cell<std::int64_t> balance;
    cell<std::uint64_t> ytd_payment, payments, deliveries, last_order;
    cell<std::uint32_t> discount, has_bad_credit;
  };
  struct stock {
    cell<std::uint64_t> ytd;
    cell<std::uint32_t> quantity, orders, remote_orders, unused;
  };
  struct order {
    cell<std::uint64_t> id, date;
    cell<std::uint32_t> customer, carrier, lines, is_local;
  };
  struct order_line {
    cell<std::uint64_t> amount, delivered;
    cell<std::uint32_t> item;
    cell<std::uint16_t> supply, quantity;
    cell<blob<24>> stock_text;
  };
  struct payment {
    cell<std::uint64_t> date, amount;
    cell<std::uint32_t> customer_district, customer;
  };
};

template <class... Rows>
inline constexpr bool without_padding = (std::has_unique_object_representations_v<Rows> && ...);
using plain_rows = rows_of<plain_memory>;
static_assert(without_padding<plain_rows::district, plain_rows::customer, plain_rows::stock,
                              plain_rows::order, plain_rows::order_line, plain_rows::payment>);

enum class table : std::uint64_t {
  warehouse,
  district,
  customer,
  customer_text,
  item,
  stock,
  stock_text,
  order,
  new_order,
  line,
  payment
};

// Bytes of all tables, if every order has the most lines.
inline std::uint64_t live_bytes(const shape& s) {
  const std::uint64_t stock = 8 + sizeof(plain_rows::stock) + s.text_bytes,
                      customer = sizeof(plain_rows::customer) + s.text_bytes;
  const std::uint64_t order = sizeof(plain_rows::order) + 8 +
                              max_lines * sizeof(plain_rows::order_line) +
                              sizeof(plain_rows::payment);
  return s.warehouses *
         (s.items * stock +
          s.districts * (s.customers * customer + s.orders * order + sizeof(plain_rows::district)));
}

// The content at the start.
inline std::uint64_t word_at_start(const key_space& keys, table t, std::uint64_t row) {
  return base::mix(keys.word_at_start(row) ^ static_cast<std::uint64_t>(t));
}
inline std::uint32_t price_at_start(const key_space& keys, std::uint64_t item) {
  return static_cast<std::uint32_t>(100 + word_at_start(keys, table::item, item) % 9901);
}
inline std::uint64_t tax_at_start(const key_space& keys, table t, std::uint64_t row) {
  return word_at_start(keys, t, row) % 2001;
}

inline constexpr std::uint64_t paid_at_start = 1000;  // by each customer

template <class Customer>
void init_customer(Customer& c, const key_space& keys, std::uint64_t row) {
  const std::uint64_t word = word_at_start(keys, table::customer, row);
  c.balance = -static_cast<std::int64_t>(paid_at_start);
  c.ytd_payment = paid_at_start;
  c.payments = 1;
  c.discount = static_cast<std::uint32_t>(word % 5001);
  c.has_bad_credit = (word >> 32) % 10 == 0;
}
template <class Stock>
void init_stock(Stock& s, const key_space& keys, std::uint64_t row) {
  s.quantity = static_cast<std::uint32_t>(10 + word_at_start(keys, table::stock, row) % 91);
}
template <class District>
void init_district(District& d, const key_space& keys, const shape& s, std::uint64_t row) {
  d.ytd = s.customers * paid_at_start;
  d.tax = tax_at_start(keys, table::district, row);
  d.next_order = 1;
  d.next_delivery = 1;
}

// The stock that remains after a sale, by the specification.
constexpr std::uint32_t quantity_after(std::uint32_t before, std::uint32_t sold) {
  return before >= sold + 10 ? before - sold : before - sold + 91;
}

// The specification's NURand with a constant of 0: A is 8191 for 100,000 items (a 16th) and 1023
// for 3000 customers (a third).
inline std::uint64_t non_uniform(base::rng& random, std::uint64_t count, std::uint64_t part) {
  return (random.below(std::bit_ceil(count / part + 1)) | random.below(count)) % count;
}
inline std::uint64_t choose_customer(base::rng& random, const shape& s) {
  return non_uniform(random, s.customers, 3);
}
inline std::uint64_t other_warehouse(base::rng& random, const shape& s, std::uint64_t than) {
  return s.warehouses == 1 ? than : (than + 1 + random.below(s.warehouses - 1)) % s.warehouses;
}

// The place of a transaction's terminal, and the date.
struct terminal {
  std::uint64_t warehouse, district, date;
  terminal(const operation& op, const shape& s)
      : warehouse(op.a / s.districts), district(op.a % s.districts), date(op.b | 1) {}
};

struct new_order_input : terminal {
  struct line {
    std::uint64_t item, supply;
    std::uint32_t quantity;
  };
  std::uint64_t customer;
  std::uint32_t count;
  bool is_local = true;
  std::array<line, max_lines> lines;

  new_order_input(const operation& op, const shape& s) : terminal(op, s) {
    base::rng random(op.b);
    customer = choose_customer(random, s);
    count = static_cast<std::uint32_t>(min_lines + random.below(max_lines - min_lines + 1));
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t supply =
          random.below(100) == 0 ? other_warehouse(random, s, warehouse) : warehouse;
      lines[i] = {non_uniform(random, s.items, 16), supply,
                  static_cast<std::uint32_t>(1 + random.below(10))};
      is_local &= supply == warehouse;
    }
  }
};

struct payment_input : terminal {
  std::uint64_t customer_warehouse, customer_district, customer, amount;

  payment_input(const operation& op, const shape& s)
      : terminal(op, s), customer_warehouse(warehouse), customer_district(district) {
    base::rng random(op.b);
    amount = 100 + random.below(499'901);
    customer = choose_customer(random, s);
    if (random.below(100) < 85) return;
    customer_warehouse = other_warehouse(random, s, warehouse);
    customer_district = random.below(s.districts);
  }
};

struct delivery_input : terminal {
  std::uint32_t carrier;
  delivery_input(const operation& op, const shape& s)
      : terminal(op, s), carrier(static_cast<std::uint32_t>(1 + base::mix(op.b) % 10)) {}
};

struct order_status_input : terminal {
  std::uint64_t customer;
  order_status_input(const operation& op, const shape& s) : terminal(op, s) {
    base::rng random(op.b);
    customer = choose_customer(random, s);
  }
};

struct stock_level_input : terminal {
  std::uint32_t threshold;
  stock_level_input(const operation& op, const shape& s)
      : terminal(op, s), threshold(static_cast<std::uint32_t>(10 + base::mix(op.b) % 11)) {}
};

}  // namespace stele::workloads::tpcc
