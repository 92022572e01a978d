// Methods of stele.KV for many items at once, for conditional changes and expiry times, and for
// named stores.
//
// A walk reads one page at a time, each page of one state, and holds nothing between pages.
#include <base/assert.h>
#include "open_store.h"
#include "values.h"

#include <containers/kv_limits.h>
#include <nanobind/stl/optional.h>

namespace stele::python {

namespace {

// Many items.

constexpr std::size_t page_items = 256, page_bytes = std::size_t{1} << 18;

struct item_page {
  std::vector<kv_item> items;
  bool ends = true;  // no item follows
};

// The first items of a walk from `from` to `to`, or from `to` back to `from`, of one state.
item_page load_page(const kv_handle& h, std::string_view from, std::string_view to, bool backward) {
  const auto s = h.store();
  return h.in->read([&] {
    item_page p;
    std::size_t bytes = 0;
    const auto visit = [&](std::string_view key, std::string_view value) {
      p.ends = p.items.size() < page_items && bytes < page_bytes;
      if (!p.ends) return false;
      bytes += key.size() + value.size();
      p.items.push_back({std::string(key), std::string(value)});
      return true;
    };
    unwrap(s->read([&](const kv::view& v) {
      backward ? v.for_each_backward(from, to, visit) : v.for_each(from, to, visit);
    }));
    STELE_ASSERT(p.items.size() <= page_items);
    STELE_ASSERT(p.ends || !p.items.empty());  // else the walk would never end
    return p;
  });
}

// The page as a list of pairs, and whether it is the last one. An empty stop means no bound.
nb::tuple page(const kv_handle& h, nb::handle start, nb::handle stop, bool backward) {
  const std::string_view from = characters_of(start), to = characters_of(stop);
  const item_page found = to.empty() || from < to ? load_page(h, from, to, backward) : item_page();
  nb::list items;
  for (const kv_item& i : found.items)
    items.append(nb::make_tuple(to_bytes(i.key), to_bytes(i.value)));
  return nb::make_tuple(items, found.ends);
}

// The bounds of a walk over the items with start <= key < stop whose key begins with `prefix`.
nb::tuple bounds(nb::handle start, nb::handle stop, nb::handle prefix) {
  std::string_view from = characters_of(start), to = characters_of(stop);
  const std::string_view begin = characters_of(prefix);
  const std::string end = detail::end_of_prefix(begin);
  if (from < begin) from = begin;
  if (to.empty() || (!end.empty() && end < to)) to = end;
  return nb::make_tuple(to_bytes(from), to_bytes(to));
}

// A tuple, which keeps its items alive.
nb::tuple tuple_of(nb::handle sequence) {
  auto all = nb::steal<nb::tuple>(PySequence_Tuple(sequence.ptr()));
  if (!all.is_valid()) throw nb::python_error();
  return all;
}

// The values of all keys in one state, in the order of the keys; None for an absent key.
nb::list get_many(const kv_handle& h, nb::handle keys) {
  const auto s = h.store();
  const nb::tuple all = tuple_of(keys);
  std::vector<std::string_view> wanted;
  for (const nb::handle key : all) wanted.push_back(characters_of(key));
  const auto found = h.in->read([&] {
    std::vector<std::optional<std::string>> values(wanted.size());
    unwrap(s->get_many(wanted, [&](std::size_t i, std::optional<std::string_view> value) {
      STELE_ASSERT(i < values.size());
      values[i] = value;
    }));
    return values;
  });
  nb::list to;
  STELE_ASSERT(found.size() == all.size());
  for (const auto& value : found) to.append(value ? nb::object(to_bytes(*value)) : nb::none());
  return to;
}

// keys and values: tuples of one length.
void put_many(const kv_handle& h, const nb::tuple& keys, const nb::tuple& values) {
  const auto s = h.store();
  STELE_ASSERT(keys.size() == values.size());  // kv.py makes both of one list
  std::vector<kv_pair> items;
  for (std::size_t i = 0; i < keys.size(); ++i)
    items.push_back({characters_of(keys[i]), characters_of(values[i])});
  h.in->update_by([&](durability how) { return s->put_many(items, how); });
}

// Conditional changes of one item, and expiry times.

using milliseconds = std::optional<std::int64_t>;

void put_for(const kv_handle& h, nb::handle key, nb::handle value, milliseconds lifetime,
             milliseconds until) {
  const auto s = h.store();
  const std::string_view k = characters_of(key), v = characters_of(value);
  STELE_ASSERT(!lifetime || !until);  // kv.py refuses both
  h.in->update_by([&](durability how) {
    if (lifetime) return s->put_for(k, v, std::chrono::milliseconds(*lifetime), how);
    return until ? s->put_until(k, v, detail::kv_time_of(*until), how) : s->put(k, v, how);
  });
}

// In milliseconds since 1970. None: the item does not expire, or does not exist.
milliseconds expiry(const kv_handle& h, nb::handle key) {
  const auto s = h.store();
  const std::string_view k = characters_of(key);
  const auto when =
      h.in->read([&] { return unwrap(s->read([&](const kv::view& v) { return v.expiry(k); })); });
  if (!when) return std::nullopt;
  return detail::milliseconds_of(*when);
}

std::size_t remove_expired(const kv_handle& h, std::size_t limit) {
  const auto s = h.store();
  const std::size_t removed = h.in->update_by([&](durability) { return s->remove_expired(limit); });
  STELE_ASSERT(removed <= limit);
  return removed;
}

bool put_if(const kv_handle& h, nb::handle key, nb::handle expected, nb::handle value) {
  const auto s = h.store();
  const std::string_view k = characters_of(key), v = characters_of(value);
  std::optional<std::string_view> e;
  if (!expected.is_none()) e = characters_of(expected);
  return h.in->update_by([&](durability how) { return s->put_if(k, e, v, how); });
}

std::int64_t add(const kv_handle& h, nb::handle key, std::int64_t n) {
  const auto s = h.store();
  const std::string_view k = characters_of(key);
  return h.in->update_by([&](durability how) { return s->add(k, n, how); });
}

// Stores.

nb::dict statistics(const kv_handle& h) {
  const auto s = h.store();
  const kv_statistics f = h.in->read([&] { return unwrap(s->statistics()); });
  nb::dict to;
  to["items"] = f.items, to["key_bytes"] = f.key_bytes, to["value_bytes"] = f.value_bytes;
  to["item_space"] = f.item_space, to["hash_buckets"] = f.hash_buckets;
  to["hash_space"] = f.hash_space, to["tree_nodes"] = f.tree_nodes, to["tree_space"] = f.tree_space;
  to["expiring_items"] = f.expiring_items, to["expired_items"] = f.expired_items;
  to["clock_behind"] = std::chrono::duration<double>(f.clock_behind).count();
  return to;
}

kv_handle open_named(const kv_handle& h, nb::handle name, bool create) {
  const std::string n(characters_of(name));
  return {h.in, h.in->open_named(n, create ? kv::if_missing::create : kv::if_missing::refuse)};
}

void drop_named(const kv_handle& h, nb::handle name) {
  h.in->drop(std::string(characters_of(name)));
}

nb::list names(const kv_handle& h) {
  const auto found = h.in->read([&] { return unwrap(h.in->unnamed_store().stores()); });
  nb::list to;
  for (const std::string& name : found) to.append(to_bytes(name));
  return to;
}

}  // namespace

void bind_kv_features(nb::class_<kv_handle>& to) {
  to.def("page", &page)
      .def_static("bounds", &bounds)
      .def("get_many", &get_many)
      .def("put_many", &put_many)
      .def("put", &put_for, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def("expiry", &expiry)
      .def("remove_expired", &remove_expired)
      .def("put_if", &put_if, nb::arg(), nb::arg().none(), nb::arg().none())
      .def("add", &add)
      .def("statistics", &statistics)
      .def("open_store", &open_named)
      .def("drop_store", &drop_named)
      .def("stores", &names);
}

}  // namespace stele::python
