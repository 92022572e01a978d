// An embedded key-value store: put, batch, read-modify-write, many keys at once, a range in key
// order, named stores, items that expire.
#include <stele/kv.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace {

int complain(const stele::error& e) {
  std::fprintf(stderr, "%s\n", e.message.c_str());
  return 1;
}

// Several stores in one transaction, a counter, an item that expires, a walk from the end.
stele::result<> use_named_stores(stele::kv& store) {
  auto users = store.open_store("users"), orders = store.open_store("orders");
  if (!users || !orders) return std::unexpected(users ? orders.error() : users.error());
  const auto both = store.update([&](stele::kv_store& unnamed) -> stele::result<> {
    unnamed.add("orders", 1);
    if (auto put = users->put("7", "ann"); !put) return put;  // an error rolls back all three
    return orders->put("1", "7");
  });
  if (!both) return both;
  if (auto put = users->put_for("session/7", "token", std::chrono::minutes(10)); !put) return put;
  auto sessions = users->walk_prefix("session/");
  const auto there = sessions.prev();  // the last one
  if (!there) return std::unexpected(there.error());
  if (*there) std::printf("%s: %s\n", sessions.key().c_str(), sessions.value().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto store = stele::kv::open(argc > 1 ? argv[1] : "store.stele", {.create_size = 64 << 20});
  if (!store) return complain(store.error());

  if (auto put = store->put("city/bern", "133883"); !put)
    return complain(put.error());  // durable when it returns
  stele::kv::batch cities;         // all of it or nothing
  cities.put("city/basel", "173863");
  cities.put("city/geneva", "203856");
  cities.erase("city/atlantis");
  if (auto written = store->write(cities); !written) return complain(written.error());

  const stele::kv_pair areas[] = {{"area/bern", "51.6"}, {"area/basel", "23.9"}};
  if (auto put = store->put_many(areas); !put) return complain(put.error());  // all of them or none
  const std::string_view wanted[] = {"area/bern", "area/atlantis", "area/basel"};
  auto got = store->get_many(wanted, [&](std::size_t i, std::optional<std::string_view> area) {
    if (area) std::printf("%s: %s km2\n", wanted[i].data(), std::string(*area).c_str());
  });
  if (!got) return complain(got.error());

  auto visits =
      store->update([](stele::kv::changes& c) {  // reads, then writes; may run more than once
        const auto before = c.get("visits");
        const std::string now = std::to_string(before ? std::stoi(*before) + 1 : 1);
        c.put("visits", now);
        return now;
      });
  if (!visits) return complain(visits.error());

  auto found = store->range("city/", "city0", 10);  // '0' is the character after '/'
  if (!found) return complain(found.error());
  for (const auto& [key, value] : *found) std::printf("%s: %s\n", key.c_str(), value.c_str());
  if (auto used = use_named_stores(*store); !used) return complain(used.error());
  std::printf("visit %s; survives: %s\n", visits->c_str(), name_of(store->durability_in_force()));
  return found->size() == 3 ? 0 : 1;
}
