// A durable phone book: an ordered map of strings, used like std::map.
#include <stele/map.h>
#include <stele/pool.h>
#include <stele/string.h>

#include <cstdio>

struct phone_book {
  using pool_resident = void;  // it holds a container
  stele::map<stele::string, stele::string> numbers;
  stele::field<std::uint64_t> edition;
};

int main(int argc, char** argv) {
  auto pool =
      stele::pool<phone_book>::open(argc > 1 ? argv[1] : "phones.stele", {.create_size = 16 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  auto printed =
      pool->update([](phone_book& book) {  // a crash in the middle leaves the last edition
        book.numbers["Ada"] = "+44 20 7946 0018";
        book.numbers["Grace"] = "+1 202 555 0142, ask for the compiler room";
        book.numbers["Konrad"] = "+49 30 23125 041";
        book.numbers.erase("Charles");
        book.edition += 1;
        return book.edition.load();
      });
  if (!printed) return std::fprintf(stderr, "%s\n", printed.error().message.c_str()), 1;
  auto page = pool->read([](const phone_book& book) {
    std::string lines;
    for (const auto& [name, number] : book.numbers.range("A", "H"))
      lines += name.str() + ": " + number.str() + "\n";
    return lines;
  });
  if (!page) return std::fprintf(stderr, "%s\n", page.error().message.c_str()), 1;
  std::printf("edition %lu, A to G:\n%s", *printed, page->c_str());
  return 0;
}
