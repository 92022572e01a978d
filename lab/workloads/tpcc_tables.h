// The tables of tpcc and its five transactions on them; see tpcc.cc. tpcc_check.h has their
// invariants.
#pragma once

#include <stele/coalescing.h>
#include <workloads/rows.h>
#include <workloads/tpcc.h>
#include <workloads/value.h>

namespace stele::workloads::tpcc {

inline std::uint64_t digest_key(table t, std::uint64_t warehouse, std::uint64_t row) {
  return base::mix(warehouse << 8 | static_cast<std::uint64_t>(t)) + row;
}

// Contiguous texts of one size, in memory that another object owns.
template <class Memory>
class texts_in {
 public:
  void place_at(std::byte* first, std::uint64_t size_bytes) {
    bytes_ = first;
    size_ = size_bytes;
  }
  // Sets text i to the word, repeated.
  void set(std::uint64_t i, std::uint64_t word) {
    std::byte text[4096];
    fill_with(text, size_, word);
    Memory::store_bytes(bytes_.load() + i * size_, text, size_);
  }
  // Copies the first bytes of text i, as many as fit into `to`.
  void get(std::uint64_t i, std::span<std::byte> to) const {
    Memory::load_bytes(to.data(), bytes_.load() + i * size_, std::min(to.size(), size_.load()));
  }
  std::uint64_t digest(std::uint64_t key, std::uint64_t i) const {
    std::byte text[4096];
    get(i, text);
    return digest_item(key, text, size_);
  }

 private:
  typename Memory::template field<std::uint64_t> size_;
  typename Memory::template field<std::byte*> bytes_;
};

template <class Memory>
class tables {
  using rows = rows_of<Memory>;
  using district = typename rows::district;
  using customer = line_padded_in<typename rows::customer, Memory>;
  using order = typename rows::order;
  using order_line = typename rows::order_line;
  using stock = line_padded_in<typename rows::stock, Memory>;
  using payment = line_padded_in<typename rows::payment, Memory>;
  template <class T>
  using cell = typename Memory::template field<T>;
  template <class Row>
  using table_of = basic_rows<Row, Memory>;
  using texts = texts_in<Memory>;

 public:
  using pool_resident = void;

  void prepare(const key_space& keys) {
    const shape s(keys.params());
    shape_ = s;
    prices_.make(s.items);
    warehouses_.make(s.warehouses);
    for (std::uint64_t w = 0; w < s.warehouses; ++w) {
      warehouses_[w].ytd = s.all_customers() * paid_at_start;
      warehouses_[w].tax = tax_at_start(keys, table::warehouse, w);
    }
  }
  // Adds the i-th row of stock and its part of the customers; the first row of a warehouse makes
  // the warehouse's empty tables before.
  void fill(const key_space& keys, std::uint64_t i) {
    const shape s = shape_;
    const std::uint64_t w = i / s.items, item = i % s.items;
    if (w == s.warehouses) return;
    warehouse& here = warehouses_[w];
    if (item == 0) make_warehouse(here, keys, w);
    if (w == 0) prices_[item] = price_at_start(keys, item);
    init_stock(here.stocks[item], keys, i);
    here.stock_texts.set(item, word_at_start(keys, table::stock_text, i));
    const std::uint64_t customers = s.all_customers();
    for (std::uint64_t c = item * customers / s.items; c < (item + 1) * customers / s.items; ++c) {
      init_customer(here.customers[c], keys, w * customers + c);
      here.customer_texts.set(c, word_at_start(keys, table::customer_text, w * customers + c));
    }
  }

  void new_order(const operation& op) {
    const shape s = shape_;
    const new_order_input in(op, s);
    warehouse& here = warehouses_[in.warehouse];
    district& d = here.districts[in.district];
    const std::uint64_t id = d.next_order;
    d.next_order = id + 1;
    if (d.next_delivery + s.orders == id)
      d.next_delivery += 1;  // the order whose place is reused is never delivered
    d.lines += in.count;
    const std::uint64_t place = s.place_of(in.district, id);
    order& o = here.orders[place];
    o.id = id;
    o.date = in.date;
    o.customer = static_cast<std::uint32_t>(in.customer);
    o.carrier = 0;
    o.lines = in.count;
    o.is_local = in.is_local;
    here.new_orders[place] = id;
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < in.count; ++i)
      total += sell(in.lines[i], in.warehouse, here.lines[place * max_lines + i]);
    customer& buyer = here.customers[in.district * s.customers + in.customer];
    buyer.last_order = id;
    do_not_optimize(total * (10'000 - buyer.discount) * (10'000 + here.tax + d.tax));
  }

  void pay(const operation& op) {
    const shape s = shape_;
    const payment_input in(op, s);
    warehouse& here = warehouses_[in.warehouse];
    here.ytd += in.amount;
    district& d = here.districts[in.district];
    d.ytd += in.amount;
    auto& p = here.payments[s.place_of(in.district, d.payments)];
    d.payments += 1;
    p.date = in.date;
    p.amount = in.amount;
    p.customer_district =
        static_cast<std::uint32_t>(in.customer_warehouse * s.districts + in.customer_district);
    p.customer = static_cast<std::uint32_t>(in.customer);
    warehouse& there = warehouses_[in.customer_warehouse];
    const std::uint64_t row = in.customer_district * s.customers + in.customer;
    customer& payer = there.customers[row];
    payer.balance -= static_cast<std::int64_t>(in.amount);
    payer.ytd_payment += in.amount;
    payer.payments += 1;
    if (payer.has_bad_credit != 0) there.customer_texts.set(row, op.b);
  }

  void deliver(const operation& op) {
    const shape s = shape_;
    const delivery_input in(op, s);
    warehouse& here = warehouses_[in.warehouse];
    for (std::uint64_t i = 0; i < s.districts; ++i) {
      district& d = here.districts[i];
      const std::uint64_t id = d.next_delivery;
      if (id == d.next_order) continue;
      d.next_delivery = id + 1;
      const std::uint64_t place = s.place_of(i, id);
      here.new_orders[place] = 0;
      order& o = here.orders[place];
      o.carrier = in.carrier;
      std::uint64_t total = 0;
      for (std::uint32_t l = 0; l < o.lines; ++l) {
        order_line& line = here.lines[place * max_lines + l];
        line.delivered = in.date;
        total += line.amount;
      }
      customer& buyer = here.customers[i * s.customers + o.customer];
      buyer.balance += static_cast<std::int64_t>(total);
      buyer.deliveries += 1;
    }
  }

  void read_order_status(const operation& op) const {
    const shape s = shape_;
    const order_status_input in(op, s);
    const warehouse& here = warehouses_[in.warehouse];
    const customer& c = here.customers[in.district * s.customers + in.customer];
    do_not_optimize(c.balance.load());
    const std::uint64_t id = c.last_order, place = s.place_of(in.district, id);
    const order& o = here.orders[place];
    if (id == 0 || o.id != id) return;  // no order yet, or its place has been reused
    do_not_optimize(o.carrier.load());
    for (std::uint32_t i = 0; i < o.lines; ++i)
      do_not_optimize(here.lines[place * max_lines + i].amount.load());
  }

  // The items of the district's last 20 orders that are low in stock.
  void read_stock_level(const operation& op) const {
    const shape s = shape_;
    const stock_level_input in(op, s);
    const warehouse& here = warehouses_[in.warehouse];
    std::array<std::uint32_t, 20 * max_lines> low;
    std::size_t count = 0;
    const std::uint64_t next = here.districts[in.district].next_order;
    for (std::uint64_t id = next - std::min({next - 1, s.orders, std::uint64_t{20}}); id < next;
         ++id) {
      const std::uint64_t place = s.place_of(in.district, id);
      for (std::uint32_t i = 0; i < here.orders[place].lines; ++i) {
        const std::uint32_t item = here.lines[place * max_lines + i].item;
        if (here.stocks[item].quantity < in.threshold) low[count++] = item;
      }
    }
    std::sort(low.begin(), low.begin() + count);
    do_not_optimize(std::unique(low.begin(), low.begin() + count) - low.begin());
  }

  std::uint64_t digest() const {
    std::uint64_t sum = 0;
    for (std::uint64_t w = 0; w < warehouses_.size(); ++w) sum += digest_of(w);
    return sum;
  }
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    prices_.visit_blocks(visit);
    warehouses_.visit_blocks(visit);
    for (const warehouse& w : warehouses_)
      if (const std::byte* block = w.block.load()) visit(static_cast<const void*>(block));
  }
  // Errors: corrupt, if the specification's consistency conditions do not hold, as far as orders
  // are present to check them.
  [[nodiscard]] result<> check() const;

 private:
  // All tables of a warehouse are in one block, since the smallest pools have few blocks.
  struct alignas(64) warehouse {
    using pool_resident = void;
    cell<std::uint64_t> ytd, tax;
    cell<std::uint64_t> unused[6];
    cell<std::byte*> block;
    cell<district*> districts;
    cell<customer*> customers;
    cell<stock*> stocks;
    cell<order*> orders;  // contiguous for a district; index: id modulo their number
    cell<cell<std::uint64_t>*> new_orders;  // for each order place: its id; 0: delivered
    cell<order_line*> lines;                // max_lines for each order
    cell<payment*> payments;                // by number, as orders
    texts customer_texts, stock_texts;

    warehouse() noexcept = default;  // for zeroed memory
    ~warehouse() {
      run_destructor([&] { Memory::deallocate(block.load()); });
    }
    warehouse(const warehouse&) = delete;
    warehouse& operator=(const warehouse&) = delete;
  };

  // In coalescing memory tables begin on lines.
  template <class Row>
  static std::uint64_t table_bytes(std::uint64_t count) {
    constexpr std::uint64_t unit = std::is_same_v<Memory, coalescing_memory> ? 64 : 8;
    return (count * sizeof(Row) + unit - 1) / unit * unit;
  }
  void make_warehouse(warehouse& here, const key_space& keys, std::uint64_t w) {
    const shape s = shape_;
    const std::uint64_t tables_bytes =
        table_bytes<district>(s.districts) + table_bytes<customer>(s.all_customers()) +
        table_bytes<stock>(s.items) + table_bytes<order>(s.all_orders()) +
        table_bytes<cell<std::uint64_t>>(s.all_orders()) +
        table_bytes<order_line>(s.all_orders() * max_lines) + table_bytes<payment>(s.all_orders());
    auto* at = static_cast<std::byte*>(
        Memory::allocate(tables_bytes + (s.all_customers() + s.items) * s.text_bytes, 64));
    here.block = at;
    Memory::fill_zero(at, tables_bytes);  // texts are written before they are read
    const auto place = [&]<class Row>(cell<Row*>& first, std::uint64_t count) {
      first = reinterpret_cast<Row*>(at);
      at += table_bytes<Row>(count);
    };
    place(here.districts, s.districts);
    place(here.customers, s.all_customers());
    place(here.stocks, s.items);
    place(here.orders, s.all_orders());
    place(here.new_orders, s.all_orders());
    place(here.lines, s.all_orders() * max_lines);
    place(here.payments, s.all_orders());
    here.customer_texts.place_at(at, s.text_bytes);
    here.stock_texts.place_at(at + s.all_customers() * s.text_bytes, s.text_bytes);
    for (std::uint64_t d = 0; d < s.districts; ++d)
      init_district(here.districts[d], keys, s, w * s.districts + d);
  }
  // Returns the line's amount.
  std::uint64_t sell(const new_order_input::line& in, std::uint64_t home_warehouse,
                     order_line& line) {
    const warehouse& supply = warehouses_[in.supply];
    stock& sold = supply.stocks[in.item];
    sold.quantity = quantity_after(sold.quantity, in.quantity);
    sold.ytd += in.quantity;
    sold.orders += 1;
    if (in.supply != home_warehouse) sold.remote_orders += 1;
    blob<24> text{};
    supply.stock_texts.get(in.item, text.bytes);
    const std::uint64_t amount = std::uint64_t{prices_[in.item]} * in.quantity;
    line.amount = amount;
    line.delivered = 0;
    line.item = static_cast<std::uint32_t>(in.item);
    line.supply = static_cast<std::uint16_t>(in.supply);
    line.quantity = static_cast<std::uint16_t>(in.quantity);
    line.stock_text = text;
    return amount;
  }

  template <class Plain, class Row>
  static std::uint64_t digest_rows(table t, std::uint64_t w, const cell<Row*>& all,
                                   std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::byte row[sizeof(Plain)];  // without the gap after a spaced row
      Memory::load_bytes(row, &all[i], sizeof row);
      sum += digest_item(digest_key(t, w, i), row, sizeof row);
    }
    return sum;
  }
  std::uint64_t digest_of(std::uint64_t w) const {
    const shape s = shape_;
    const warehouse& h = warehouses_[w];
    std::uint64_t sum = base::mix(digest_key(table::warehouse, w, 0) ^ h.ytd);
    for (std::uint64_t i = 0; i < s.all_customers(); ++i)
      sum += h.customer_texts.digest(digest_key(table::customer_text, w, i), i);
    for (std::uint64_t i = 0; i < s.items; ++i)
      sum += h.stock_texts.digest(digest_key(table::stock_text, w, i), i);
    sum += digest_rows<plain_rows::district>(table::district, w, h.districts, s.districts);
    sum += digest_rows<plain_rows::customer>(table::customer, w, h.customers, s.all_customers());
    sum += digest_rows<plain_rows::stock>(table::stock, w, h.stocks, s.items);
    sum += digest_rows<plain_rows::order>(table::order, w, h.orders, s.all_orders());
    sum += digest_rows<std::uint64_t>(table::new_order, w, h.new_orders, s.all_orders());
    sum += digest_rows<plain_rows::order_line>(table::line, w, h.lines, s.all_orders() * max_lines);
    return sum + digest_rows<plain_rows::payment>(table::payment, w, h.payments, s.all_orders());
  }

  struct sums {
    std::uint64_t warehouse_ytd = 0, paid = 0, payments = 0, customer_payments = 0, lines = 0,
                  stock_orders = 0;
  };
  [[nodiscard]] result<> check_warehouse(const warehouse& h, const shape& s, sums& all) const;
  [[nodiscard]] result<> check_district(const warehouse& h, const shape& s,
                                        std::uint64_t district) const;
  bool is_consistent(const warehouse& h, const shape& s, std::uint64_t in_district,
                     std::uint64_t id) const;

  cell<shape> shape_;
  table_of<cell<std::uint32_t>> prices_;  // of items
  table_of<warehouse> warehouses_;
};

}  // namespace stele::workloads::tpcc

#include <workloads/tpcc_check.h>
