// The keys of a Redis server with contradictory content and repaired checksums. Opening returns an
// error with a sentence, or all items can be read, changed and removed: no signals, endless walks
// or stores outside the heap.
#include <adapters/redis/keys.h>
#include <fmt/format.h>
#include <tests/fuzz/target.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::fuzz {

namespace {

using redis::item_kind;
using redis::keys;
using redis::stored_item;
using redis::stored_keys;

// Where a server would end.
void refuse(const error& why) {
  throw failure(why);
}

result<std::unique_ptr<keys>> open_keys(const std::string& path, const std::string& mechanism) {
  auto opened = pool<stored_keys>::open(
      path, {.create_size = 512 << 10,
             .layout = redis::layout_name,
             .policy = concurrency::external,
             .engine = {.mechanism = mechanism, .media = "process", .background = false}});
  if (!opened) return std::unexpected(std::move(opened.error()));
  return keys::over(std::move(*opened), refuse);
}

// Short and long ones.
std::string text_of(std::size_t i) {
  return fmt::format("{}{}", i, std::string(i * 7 % 50, static_cast<char>('a' + i % 26)));
}

void fill(keys& all, item_kind kind, std::size_t elements, int database) {
  const std::string name =
      fmt::format("{} {} {}", static_cast<int>(kind), elements, text_of(elements));
  const auto made = all.change(8 << 10, [&] {
    stored_item* const item = all.add(kind, name, database);
    if (elements % 2 == 0) item->expiry = std::int64_t{1} << 50;
    for (std::size_t i = 0; i < elements; ++i)
      redis::add_element(
          item, text_of(i),
          kind == item_kind::sorted_set ? std::to_string(i * 5 % 17) : text_of(i + 1));
  });
  if (!made) throw failure(made.error());
  if (auto ended = all.end_unit(true); !ended) throw failure(ended.error());
}

bytes make_keys(const std::string& mechanism) {
  const std::string path = scratch() + "/redis-seed";
  std::filesystem::remove(path);
  {
    const auto all = open_keys(path, mechanism);
    if (!all) throw failure(all.error());
    fill(**all, item_kind::string, 1, 0);
    for (const auto kind :
         {item_kind::hash, item_kind::list, item_kind::set, item_kind::sorted_set})
      // One block, several, and nodes on two levels.
      for (const std::size_t elements : {1, 7, 100}) fill(**all, kind, elements, elements > 7);
    if (auto closed = (*all)->content().close(); !closed) throw failure(closed.error());
  }
  std::ifstream from(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(from), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(content.data());
  return {first, first + content.size()};
}

std::string judged(const char* what, const error& e) {
  return e.message.size() < 12 ? fmt::format("{} says '{}', which is no sentence", what, e.message)
                               : "";
}

// Reads every element of every item. Returns the items.
std::vector<stored_item*> read_all(keys& all) {
  std::vector<stored_item*> items;
  const auto read = all.read([&] {
    all.for_each([&](stored_item* item) { items.push_back(item); });
    for (stored_item* item : items) {
      std::size_t bytes = item->key.str().size();
      std::vector<std::string> elements;
      elements.reserve(redis::count_of(item));
      redis::for_each_element(item, [&](std::string_view first, std::string_view second) {
        elements.emplace_back(first);
        bytes += second.size();
      });
      if (bytes > all.content().space().size_bytes)
        throw failure({errc::corrupt, "an item is longer than its pool"});
    }
  });
  if (!read) throw failure(read.error());
  return items;
}

// Changes an item as commands do: at both ends, in the middle, all of it.
void change(keys& all, stored_item* item, std::size_t number) {
  const std::string more = "more " + text_of(number);
  redis::as_its_kind(item, [&]<class Stored>(Stored& stored) {
    if constexpr (Stored::kind == item_kind::string) {
      stored.value.append(more);
      stored.value.resize(stored.value.size() + 100);
    } else if constexpr (Stored::kind == item_kind::list) {
      stored.content.push_front(more);
      stored.content.insert(stored.content.size() / 2, more);
      stored.content.erase(stored.content.size() - 1);
      (void)stored.content.erase_equal(more, 1, true);
    } else if constexpr (Stored::kind == item_kind::sorted_set) {
      for (int i = 0; i < 20; ++i) stored.content.put(fmt::format("{}{}", more, i), i);
      stored.content.erase_ranks(stored.content.size() / 2, 3);
      (void)stored.content.rank_of(more + "5");
    } else {
      for (int i = 0; i < 20; ++i) redis::add_element(item, fmt::format("{}{}", more, i), more);
      if (stored.content.erase(more + "5") != 0) stored.count -= 1;
    }
  });
  item->key = text_of(number);
  all.touch(item);
}

void use(keys& all) {
  std::size_t number = 0;
  for (stored_item* item : read_all(all)) {
    if (++number % 4 == 0) {
      all.note_unlinked(item);
      continue;
    }
    const auto changed = all.change(4 << 10, [&] { change(all, item, number); });
    if (!changed && changed.error().code != errc::full) throw failure(changed.error());
    if (auto moved = all.set_expiry(item, static_cast<std::int64_t>(number)); !moved)
      throw failure(moved.error());
    if (auto ended = all.end_unit(true); !ended) throw failure(ended.error());
  }
  if (auto ended = all.end_unit(true); !ended) throw failure(ended.error());
  if (auto flushed = all.flush(1); !flushed) throw failure(flushed.error());
  if (auto ended = all.end_unit(true); !ended) throw failure(ended.error());
  while (all.sweep()) {
  }
  (void)read_all(all);
}

}  // namespace

std::string run_redis(std::span<const std::byte> input) {
  if (input.size() < format::front_size) return "";
  const std::string path = scratch() + "/redis";
  write_file(path, input);
  try {
    const auto all = open_keys(path, "default");
    if (!all) return judged("opening", all.error());
    use(**all);
    const auto sound = (*all)->content().read([](const stored_keys& root) { return root.check(); });
    if (!sound)
      return "content that was taken for sound is not after changes: " + sound.error().message;
    if (auto closed = (*all)->content().close(); !closed) return judged("closing", closed.error());
  } catch (const failure& f) {
    return "a server would end: " + f.why().message;
  }
  return "";
}

std::vector<bytes> redis_seeds() {
  return {make_keys("default"), make_keys("undo")};
}

}  // namespace stele::fuzz
