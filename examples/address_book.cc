// A map of strings on coalescing memory: each entry, with its name and address, is one block,
// written back as one run of lines.
#include <stele/coalescing.h>
#include <stele/pool.h>

#include <cstdio>

struct address_book {
  using pool_resident = void;  // it holds a container
  stele::coalescing_hash_map<stele::coalescing_string, stele::coalescing_string> addresses;
};

int main(int argc, char** argv) {
  auto pool = stele::pool<address_book>::open(argc > 1 ? argv[1] : "addresses.stele",
                                              {.create_size = 16 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  auto added = pool->update([](address_book& book) {
    book.addresses.insert_or_assign("Ann Archer of the long and winding road",
                                    "1 Upper Street, second floor, at the back");
    book.addresses.insert_or_assign("Ben", "2 Lower Street");
  });
  if (!added) return std::fprintf(stderr, "%s\n", added.error().message.c_str()), 1;
  auto size = pool->read([](const address_book& book) { return book.addresses.size(); });
  std::printf("%zu addresses in %zu bytes of blocks\n", *size, pool->space().used_bytes);
  return *size == 2 ? 0 : 1;
}
