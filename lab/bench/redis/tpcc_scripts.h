// The transactions of tpcc as scripts of Redis, and the scripts that check what they leave.
//
// Each row is a hash. Its key has the table and the numbers of the row's primary key:
//   w:W     warehouse   tax ytd
//   d:W:D   district    tax ytd next_order next_delivery payments
//   c:W:D:C customer    discount bad_credit balance ytd_payment payments deliveries last_order text
//   i:I     item        price
//   s:W:I   stock       quantity ytd orders remote text
//   o:W:D:O order       customer entry lines local carrier
//   l:W:D:O:N order line  item supply quantity amount text delivered
//   h:W:D:N payment     customer_warehouse customer_district customer date amount
//   n:W:D   the new orders of a district: a field for each
// What an index or a sorted table gives in SQL, fields give here: a customer's last order, a
// district's oldest new order.
#pragma once

#include <string>

namespace stele::bench::redis {

struct tpcc_scripts {
  // ARGV: warehouse, district, customer, date, lines, is local; item, supply, quantity of each
  // line.
  std::string new_order = R"lua(
local place = ARGV[1] .. ':' .. ARGV[2]
local district, customer = 'd:' .. place, 'c:' .. place .. ':' .. ARGV[3]
redis.call('HGET', 'w:' .. ARGV[1], 'tax')
redis.call('HGET', district, 'tax')
redis.call('HMGET', customer, 'discount', 'bad_credit')
local id = redis.call('HINCRBY', district, 'next_order', 1) - 1
local order = place .. ':' .. id
redis.call('HSET', 'o:' .. order, 'customer', ARGV[3], 'entry', ARGV[4], 'lines', ARGV[5],
           'local', ARGV[6])
redis.call('HSET', 'n:' .. place, id, 1)
redis.call('HSET', customer, 'last_order', id)
for n = 0, ARGV[5] - 1 do
  local item, supply, sold = ARGV[7 + 3 * n], ARGV[8 + 3 * n], ARGV[9 + 3 * n]
  local price = redis.call('HGET', 'i:' .. item, 'price')
  local stock = 's:' .. supply .. ':' .. item
  local row = redis.call('HMGET', stock, 'quantity', 'ytd', 'orders', 'remote', 'text')
  local left = row[1] - sold
  if left < 10 then left = left + 91 end
  local remote = supply == ARGV[1] and 0 or 1
  redis.call('HSET', stock, 'quantity', left, 'ytd', row[2] + sold, 'orders', row[3] + 1,
             'remote', row[4] + remote)
  redis.call('HSET', 'l:' .. order .. ':' .. n, 'item', item, 'supply', supply, 'quantity', sold,
             'amount', price * sold, 'text', string.sub(row[5], 1, 24))
end
return id
)lua";

  // ARGV: warehouse, district, the customer's warehouse and district, customer, amount, date, text.
  std::string payment = R"lua(
local place = ARGV[1] .. ':' .. ARGV[2]
local customer = 'c:' .. ARGV[3] .. ':' .. ARGV[4] .. ':' .. ARGV[5]
local amount = ARGV[6]
redis.call('HINCRBY', 'w:' .. ARGV[1], 'ytd', amount)
redis.call('HINCRBY', 'd:' .. place, 'ytd', amount)
local number = redis.call('HINCRBY', 'd:' .. place, 'payments', 1)
local row = redis.call('HMGET', customer, 'balance', 'ytd_payment', 'payments', 'bad_credit')
redis.call('HSET', customer, 'balance', row[1] - amount, 'ytd_payment', row[2] + amount,
           'payments', row[3] + 1)
if row[4] == '1' then redis.call('HSET', customer, 'text', ARGV[8]) end
redis.call('HSET', 'h:' .. place .. ':' .. number, 'customer_warehouse', ARGV[3],
           'customer_district', ARGV[4], 'customer', ARGV[5], 'date', ARGV[7], 'amount', amount)
return number
)lua";

  // ARGV: warehouse, carrier, date, districts.
  std::string delivery = R"lua(
for d = 0, ARGV[4] - 1 do
  local place = ARGV[1] .. ':' .. d
  local id = redis.call('HGET', 'd:' .. place, 'next_delivery')
  if redis.call('HDEL', 'n:' .. place, id) == 1 then
    redis.call('HINCRBY', 'd:' .. place, 'next_delivery', 1)
    local order, sum = place .. ':' .. id, 0
    local row = redis.call('HMGET', 'o:' .. order, 'customer', 'lines')
    redis.call('HSET', 'o:' .. order, 'carrier', ARGV[2])
    for n = 0, row[2] - 1 do
      sum = sum + redis.call('HGET', 'l:' .. order .. ':' .. n, 'amount')
      redis.call('HSET', 'l:' .. order .. ':' .. n, 'delivered', ARGV[3])
    end
    local customer = 'c:' .. place .. ':' .. row[1]
    redis.call('HINCRBY', customer, 'balance', sum)
    redis.call('HINCRBY', customer, 'deliveries', 1)
  end
end
)lua";

  // ARGV: warehouse, district, customer.
  std::string order_status = R"lua(
local place = ARGV[1] .. ':' .. ARGV[2]
local row = redis.call('HMGET', 'c:' .. place .. ':' .. ARGV[3], 'balance', 'discount',
                       'last_order')
if not row[3] then return 0 end
local order = place .. ':' .. row[3]
local told = redis.call('HMGET', 'o:' .. order, 'entry', 'carrier', 'lines')
for n = 0, told[3] - 1 do
  redis.call('HMGET', 'l:' .. order .. ':' .. n, 'item', 'supply', 'quantity', 'amount',
             'delivered')
end
return told[3]
)lua";

  // ARGV: warehouse, district, threshold, orders to look at.
  std::string stock_level = R"lua(
local place, seen, low = ARGV[1] .. ':' .. ARGV[2], {}, 0
local next_order = redis.call('HGET', 'd:' .. place, 'next_order')
for id = math.max(1, next_order - ARGV[4]), next_order - 1 do
  for n = 0, redis.call('HGET', 'o:' .. place .. ':' .. id, 'lines') - 1 do
    local item = redis.call('HGET', 'l:' .. place .. ':' .. id .. ':' .. n, 'item')
    if not seen[item] then
      seen[item] = true
      local quantity = redis.call('HGET', 's:' .. ARGV[1] .. ':' .. item, 'quantity')
      if tonumber(quantity) < tonumber(ARGV[3]) then low = low + 1 end
    end
  end
end
return low
)lua";
};

// The specification's consistency conditions (clause 3.3.2), as far as a district has them. ARGV:
// warehouse, district, what its customers had paid at the start.
inline constexpr const char* tpcc_district_check = R"lua(
local place = ARGV[1] .. ':' .. ARGV[2]
local d = redis.call('HMGET', 'd:' .. place, 'ytd', 'next_order', 'next_delivery', 'payments')
local next_order, next_delivery = tonumber(d[2]), tonumber(d[3])
local function wrong(what) return 'district ' .. place .. ', ' .. what end
if redis.call('EXISTS', 'o:' .. place .. ':' .. next_order) == 1 then
  return wrong('condition 2: the next order does not follow the last one')
end
for _, id in ipairs(redis.call('HKEYS', 'n:' .. place)) do
  if tonumber(id) < next_delivery or tonumber(id) >= next_order then
    return wrong('condition 2: the new order ' .. id .. ' is not among the last ones')
  end
end
if redis.call('HLEN', 'n:' .. place) ~= next_order - next_delivery then
  return wrong('condition 3: new orders are not consecutive')
end
for id = 1, next_order - 1 do
  local order = place .. ':' .. id
  local row = redis.call('HMGET', 'o:' .. order, 'lines', 'carrier')
  if not row[1] then return wrong('condition 2: the order ' .. id .. ' is not there') end
  if (not row[2]) ~= (id >= next_delivery) then
    return wrong('condition 5: the order ' .. id .. ' has a carrier and is new, or neither')
  end
  for n = 0, row[1] - 1 do
    local line = redis.call('HMGET', 'l:' .. order .. ':' .. n, 'amount', 'delivered')
    if not line[1] then return wrong('condition 4: order ' .. id .. ' has fewer lines') end
    if (not line[2]) ~= (not row[2]) then
      return wrong('condition 7: a line of order ' .. id .. ' is delivered without it, or not')
    end
  end
  if redis.call('EXISTS', 'l:' .. order .. ':' .. row[1]) == 1 then
    return wrong('condition 4: order ' .. id .. ' has more lines than it counts')
  end
end
local paid = tonumber(ARGV[3])
for n = 1, d[4] do paid = paid + redis.call('HGET', 'h:' .. place .. ':' .. n, 'amount') end
if paid ~= tonumber(d[1]) then return wrong('condition 9: not the sum of its payments') end
)lua";

// Those of a warehouse and its customers and stock. ARGV: warehouses, districts of each, customers
// of each district, items.
inline constexpr const char* tpcc_sums_check = R"lua(
local taken, paid, delivered, due, sold, lines, payments, counted = 0, 0, 0, 0, 0, 0, 0, 0
for w = 0, ARGV[1] - 1 do
  local ytd = 0
  for d = 0, ARGV[2] - 1 do
    local place = w .. ':' .. d
    local row = redis.call('HMGET', 'd:' .. place, 'ytd', 'next_order', 'payments', 'next_delivery')
    ytd, payments = ytd + row[1], payments + row[3]
    for id = 1, row[2] - 1 do
      local count = redis.call('HGET', 'o:' .. place .. ':' .. id, 'lines')
      lines = lines + count
      for n = 0, id < tonumber(row[4]) and count - 1 or -1 do
        delivered = delivered + redis.call('HGET', 'l:' .. place .. ':' .. id .. ':' .. n, 'amount')
      end
    end
    for c = 0, ARGV[3] - 1 do
      local customer = redis.call('HMGET', 'c:' .. place .. ':' .. c, 'balance', 'ytd_payment',
                                  'payments')
      due, paid = due + customer[1] + customer[2], paid + customer[2]
      counted = counted + customer[3] - 1
    end
  end
  if tonumber(redis.call('HGET', 'w:' .. w, 'ytd')) ~= ytd then
    return 'condition 1: warehouse ' .. w .. ' has not taken in what its districts have'
  end
  taken = taken + ytd
  for i = 0, ARGV[4] - 1 do
    sold = sold + redis.call('HGET', 's:' .. w .. ':' .. i, 'orders')
  end
end
if taken ~= paid then return 'warehouses have not taken in what customers paid' end
if payments ~= counted then return 'districts and customers count other payments' end
if due ~= delivered then return 'condition 12: customers owe other sums than were delivered' end
if sold ~= lines then return 'stock and orders count other lines' end
)lua";

}  // namespace stele::bench::redis
