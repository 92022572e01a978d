// An embedded key-value store: put, batch, read-modify-write, many keys at once, and a
// range in key order.
#include <stele/kv.h>

#include <cstdio>
#include <string>

namespace {

int complain(const stele::error& e) {
  std::fprintf(stderr, "%s\n", e.message.c_str());
  return 1;
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
  std::printf("visit %s; survives: %s\n", visits->c_str(), store->durability_in_force().c_str());
  return found->size() == 3 ? 0 : 1;
}
