// The consistency conditions that tpcc's tables keep, numbered as in clause 3.3.2 of the
// specification.
//
// Orders, lines and payments whose places were reused cannot be counted, so sums over them are
// compared with counters instead.
#pragma once

namespace stele::workloads::tpcc {

template <class Memory>
result<> tables<Memory>::check() const {
  const shape s = shape_;
  sums all;
  for (const warehouse& h : warehouses_)
    if (auto ok = check_warehouse(h, s, all); !ok) return ok;
  if (all.warehouse_ytd != all.paid)
    return detail::corrupt_error(
        "tpcc: warehouses have not taken in what customers paid");  // after 9
  if (all.payments != all.customer_payments)
    return detail::corrupt_error("tpcc: districts and customers count other payments");
  if (all.lines != all.stock_orders)
    return detail::corrupt_error("tpcc: districts and stock count other order lines");
  return {};
}

template <class Memory>
result<> tables<Memory>::check_warehouse(const warehouse& h, const shape& s, sums& all) const {
  std::uint64_t ytd = 0;
  for (std::uint64_t i = 0; i < s.districts; ++i) {
    const district& d = h.districts[i];
    ytd += d.ytd;
    all.payments += d.payments;
    all.lines += d.lines;
    if (auto ok = check_district(h, s, i); !ok) return ok;
  }
  if (h.ytd != ytd)
    return detail::corrupt_error(
        "tpcc: a warehouse has not taken in what its districts have");  // 1
  all.warehouse_ytd += ytd;
  for (std::uint64_t i = 0; i < s.all_customers(); ++i) {
    const customer& c = h.customers[i];
    all.paid += c.ytd_payment;
    all.customer_payments += c.payments - 1;
  }
  for (std::uint64_t i = 0; i < s.items; ++i) all.stock_orders += h.stocks[i].orders;
  return {};
}

// 2 and 3: the last orders below the next order's number exist; the undelivered ones among them
// have no gap.
template <class Memory>
result<> tables<Memory>::check_district(const warehouse& h, const shape& s, std::uint64_t i) const {
  const district& d = h.districts[i];
  const std::uint64_t next = d.next_order, undelivered = d.next_delivery,
                      first = next - std::min(next - 1, s.orders);
  if (undelivered < first || undelivered > next)
    return detail::corrupt_error("tpcc: the next delivery is not of an order that is there");
  for (std::uint64_t id = first; id < next; ++id)
    if (!is_consistent(h, s, i, id))
      return detail::corrupt_error("tpcc: an order contradicts its district or its lines");
  return {};
}

// 4 to 7: an order has as many lines as it says. The order, its lines and the list of new orders
// agree on whether it is delivered.
template <class Memory>
bool tables<Memory>::is_consistent(const warehouse& h, const shape& s, std::uint64_t in_district,
                                   std::uint64_t id) const {
  const std::uint64_t place = s.place_of(in_district, id);
  const order& o = h.orders[place];
  const bool is_new = id >= h.districts[in_district].next_delivery;
  if (o.id != id || h.new_orders[place] != (is_new ? id : 0) || (o.carrier == 0) != is_new)
    return false;
  if (o.lines < min_lines || o.lines > max_lines || o.customer >= s.customers) return false;
  if (h.customers[in_district * s.customers + o.customer].last_order < id) return false;
  for (std::uint32_t i = 0; i < o.lines; ++i) {
    const order_line& l = h.lines[place * max_lines + i];
    if (l.item >= s.items || l.amount != std::uint64_t{prices_[l.item]} * l.quantity ||
        (l.delivered == 0) != is_new)
      return false;
  }
  return true;
}

}  // namespace stele::workloads::tpcc
