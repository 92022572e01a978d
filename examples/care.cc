// Maintenance of a pool: options at open, a layout migration, growth, a backup during use, and a
// check.
#include <stele/map.h>
#include <stele/pool.h>
#include <stele/string.h>

#include <cstdio>

struct ledger {
  using pool_resident = void;
  stele::map<std::uint64_t, stele::string> entries;
  stele::field<std::uint64_t> kept_since;  // added in version 2

  stele::result<> check() const { return entries.check(); }
};

// Upgrades a pool of version 1 in the transaction that opens it. Here the layouts differ only in
// the meaning of the new field.
stele::result<> from_version_1(stele::migration& m) {
  m.root<ledger>().kept_since = 1;
  return {};
}

int fail(const stele::error& e) {
  return std::fprintf(stderr, "%s\n", e.message.c_str()), 1;
}

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "ledger.stele";
  auto pool = stele::pool<ledger>::open(path, {.create_size = 1 << 20,
                                               .layout = "ledger",
                                               .layout_version = 2,
                                               .migrate = from_version_1,
                                               .require = stele::durability_level::process});
  if (!pool) return fail(pool.error());
  auto added = pool->update([](ledger& l) { l.entries.insert(l.entries.size(), "an entry"); });
  if (!added) return fail(added.error());
  if (auto grown = pool->grow(4 << 20); !grown) return fail(grown.error());

  const std::string copy = path + ".copy";
  std::remove(copy.c_str());
  if (auto made = pool->backup(copy); !made) return fail(made.error());
  auto second = stele::pool<ledger>::open(
      copy, {.layout = "ledger", .layout_version = 2});  // while the original is open
  if (!second) return fail(second.error());
  if (auto status = second->check(); !status) return fail(status.error());
  auto size = second->read([](const ledger& l) { return l.entries.size(); });
  std::printf("%zu entries in the copy, %zu bytes free, survives: %s\n", *size,
              second->space().free_bytes, name_of(second->durability_in_force()));
  std::remove(copy.c_str());
  return 0;
}
