// What is left of a damaged store or document, compared with a model: each item that is read was
// put, and no more is lost than the damage touches.
//
// STELE_FLIP_STRIDE=1 flips each bit of the store; without it a fixed sample is flipped.
#include <containers/content_copy.h>
#include <containers/values_left.h>
#include <gmock/gmock.h>
#include <stele/kv.h>
#include <tests/conformance/call_failure.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

namespace stele::testing {
namespace {

using model = std::map<std::string, std::string>;
constexpr std::size_t page = 4096, block = 512;

std::string key_of(unsigned i) {
  return "key " + std::to_string(1000 + i) + " of the store";
}

// A closed store on its way through overwrites and erasures. No record is found twice in its heap.
model make_store(const std::string& path, checksums sums, std::size_t size = 128 << 10) {
  model items;
  auto store = kv::open(
      path, {.create_size = size,
             .engine = {.media = "process", .block_checksums = sums, .background = false}});
  EXPECT_TRUE(succeeds(store));
  for (unsigned i = 0; i < 150; ++i) {
    items[key_of(i)] = "value " + std::to_string(i * 7919) + std::string(i % 90, 'v');
    EXPECT_TRUE(succeeds(store->put(key_of(i), items[key_of(i)])));
  }
  for (unsigned i = 0; i < 150; i += 5) {
    EXPECT_TRUE(succeeds(store->erase(key_of(i))));
    items.erase(key_of(i));
  }
  EXPECT_TRUE(succeeds(store->close()));
  return items;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// A pool file whose bytes are changed and restored.
class damaged_file {
 public:
  damaged_file(std::string path) : path_(std::move(path)), bytes_(bytes_of(path_)) {
    file_.open(path_, std::ios::binary | std::ios::in | std::ios::out);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  void put(std::size_t at, std::size_t size, const std::byte* from) {
    file_.seekp(static_cast<std::streamoff>(at));
    file_.write(reinterpret_cast<const char*>(from), static_cast<std::streamsize>(size)).flush();
  }
  void restore(std::size_t at, std::size_t size) { put(at, size, bytes_.data() + at); }

 private:
  std::string path_;
  std::vector<std::byte> bytes_;
  std::fstream file_;
};

// Where the record of each key lies.
std::map<std::string, std::pair<std::size_t, std::size_t>> places_of(
    const model& items, const std::vector<std::byte>& bytes, std::size_t heap) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> places;
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const auto& [key, value] : items) {
    const std::size_t at = all.find(key, heap);
    EXPECT_NE(at, std::string_view::npos);
    EXPECT_EQ(all.find(key, at + 1), std::string_view::npos) << "it is there twice";
    places[key] = {at - 8, at + (key.size() + 7) / 8 * 8 + (value.size() + 7) / 8 * 8};
  }
  return places;
}

struct readout {
  bool opened = false;
  model items;
  std::map<std::string, std::uint64_t> expiries;
  detail::content_left left;
};
readout read_left(const std::string& path) {
  readout r;
  std::vector<std::string> notes;
  const auto image = detail::home_image::open(path, notes);
  EXPECT_TRUE(succeeds(image));
  if (!image) return r;
  auto left = detail::for_each_item_left(*image, [&](const detail::found_item& item) {
    // Of a named store: its name before the key.
    const std::string key = (item.store.empty() ? "" : std::string(item.store) + ": ");
    r.items.insert_or_assign(key + std::string(item.key), std::string(item.value));
    if (item.expires_ms != 0) r.expiries[key + std::string(item.key)] = item.expires_ms;
    return true;
  });
  EXPECT_TRUE(succeeds(left));
  r.opened = true;
  if (left) r.left = std::move(*left);
  return r;
}

// Fails if an item was read that was not put, or one is missing whose record does not touch
// [from, to), rounded to blocks.
template <class Places>
void expect_no_more_lost(const readout& r, const model& items, const Places& places,
                         std::size_t from, std::size_t to) {
  ASSERT_TRUE(r.opened);
  for (const auto& [key, value] : r.items) {
    const auto put = items.find(key);
    ASSERT_TRUE(put != items.end()) << "never put, or erased: " << key;
    ASSERT_EQ(put->second, value);
  }
  from = from / block * block, to = (to + block - 1) / block * block;
  for (const auto& [key, value] : items)
    if (!r.items.contains(key)) {
      const auto& [begin, end] = places.at(key);
      ASSERT_TRUE(begin < to && from < end) << "lost " << key << " at " << begin;
    }
}

class salvage : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return dir_.file(name); }
  scratch_directory dir_;
};

TEST_F(salvage, reads_all_of_a_sound_store) {
  for (const checksums sums : {checksums::on, checksums::off}) {
    const model items = make_store(at("store"), sums);
    const readout r = read_left(at("store"));
    EXPECT_EQ(r.items, items);
    EXPECT_TRUE(r.left.lost.empty());
    EXPECT_TRUE(r.left.notes.empty());
    std::filesystem::remove(at("store"));
  }
}

// Named stores, items that expire, and what of a dropped store is in its freed blocks.
constexpr std::uint64_t expires_ms = 7'258'118'400'000;
struct named_model {
  model items;
  std::map<std::string, std::uint64_t> expiries;
};
named_model make_named(const std::string& path, checksums sums) {
  named_model all;
  auto store = kv::open(
      path, {.create_size = 256 << 10,
             .engine = {.media = "process", .block_checksums = sums, .background = false}});
  EXPECT_TRUE(succeeds(store));
  for (const char* const name : {"", "first", "second", "dropped"}) {
    std::optional<kv> named;
    if (*name != 0) named.emplace(std::move(*store->open_store(name)));
    kv& in = named ? *named : *store;
    const std::string prefix = *name == 0 ? "" : std::string(name) + ": ";
    for (unsigned i = 0; i < 60; ++i) {
      const std::string key = key_of(i), value = prefix + "value " + std::string(i, 'v');
      const bool expires = i % 3 == 0;
      EXPECT_TRUE(succeeds(
          expires ? in.put_until(key, value, kv_time(std::chrono::milliseconds(expires_ms)))
                  : in.put(key, value)));
      if (prefix == "dropped: ") continue;
      all.items[prefix + key] = value;
      if (expires) all.expiries[prefix + key] = expires_ms;
    }
  }
  EXPECT_TRUE(succeeds(store->open_store("empty")));
  EXPECT_TRUE(succeeds(store->drop_store("dropped")));
  EXPECT_TRUE(succeeds(store->close()));
  return all;
}

TEST_F(salvage, named_stores_and_times_are_read_and_copied) {
  for (const checksums sums : {checksums::on, checksums::off}) {
    const named_model all = make_named(at("store"), sums);
    const readout r = read_left(at("store"));
    EXPECT_EQ(r.items, all.items);
    EXPECT_EQ(r.expiries, all.expiries);
    EXPECT_TRUE(r.left.lost.empty());
    EXPECT_THAT(r.left.notes, ::testing::IsEmpty());
    EXPECT_THAT(r.left.stores, ::testing::UnorderedElementsAre("empty", "first", "second"));
    const auto copied = detail::copy_content(at("store"), at("copy"), {.allow_losses = true});
    ASSERT_TRUE(succeeds(copied));
    const readout again = read_left(at("copy"));
    EXPECT_EQ(again.items, all.items);
    EXPECT_EQ(again.expiries, all.expiries);
    {
      auto copy = kv::open(at("copy"));
      ASSERT_TRUE(succeeds(copy));
      EXPECT_TRUE(succeeds(copy->check()));
      EXPECT_EQ(copy->stores().value(), (std::vector<std::string>{"empty", "first", "second"}));
    }
    std::filesystem::remove(at("store"));
    std::filesystem::remove(at("copy"));
  }
}

// What is read was put, with the time that it had; what is missing lies in the damaged block, or it
// is said that a part of the pool is damaged that leads to it.
TEST_F(salvage, damage_of_named_stores_is_told) {
  const named_model all = make_named(at("store"), checksums::on);
  damaged_file file(at("store"));
  std::vector<std::byte> noise(block, std::byte{0xA5});
  const std::uint64_t heap = storage::pool_file::peek(at("store"))->chunks_offset;
  std::uint64_t lost = 0;
  for (std::size_t from = heap; from + block <= file.bytes().size(); from += block) {
    SCOPED_TRACE("block at " + std::to_string(from));
    file.put(from, block, noise.data());
    const readout r = read_left(at("store"));
    file.restore(from, block);
    ASSERT_TRUE(r.opened);
    for (const auto& [key, value] : r.items) {
      ASSERT_TRUE(all.items.contains(key)) << "never put, or dropped: " << key;
      ASSERT_EQ(all.items.at(key), value);
      ASSERT_EQ(r.expiries.contains(key), all.expiries.contains(key)) << key;
    }
    lost += all.items.size() - r.items.size();
    ASSERT_TRUE(r.items.size() == all.items.size() || !r.left.lost.empty() || !r.left.notes.empty())
        << all.items.size() - r.items.size() << " items are lost and nothing is said";
  }
  EXPECT_GT(lost, 0u) << "records were hit too";
}

TEST_F(salvage, a_flipped_bit_loses_at_most_its_block) {
  const model items = make_store(at("store"), checksums::on);
  const std::uint64_t heap = storage::pool_file::peek(at("store"))->chunks_offset;
  damaged_file file(at("store"));
  const auto places = places_of(items, file.bytes(), heap);
  const std::uint64_t stride = count_from("STELE_FLIP_STRIDE", 241);
  std::uint64_t lost = 0;
  for (std::uint64_t bit = 0; bit < file.bytes().size() * 8; bit += stride) {
    const std::size_t byte = bit / 8;
    const std::byte flipped = file.bytes()[byte] ^ std::byte{1} << bit % 8;
    file.put(byte, 1, &flipped);
    const readout r = read_left(at("store"));
    SCOPED_TRACE("bit " + std::to_string(bit % 8) + " of byte " + std::to_string(byte));
    expect_no_more_lost(r, items, places, byte, byte + 1);
    lost += items.size() - r.items.size();
    if (HasFatalFailure()) return;
    file.restore(byte, 1);
  }
  EXPECT_GT(lost, 0u) << "records were hit too";
}

TEST_F(salvage, without_checksums_a_flipped_bit_brings_nothing_back_that_was_erased) {
  const model items = make_store(at("store"), checksums::off);
  damaged_file file(at("store"));
  const std::uint64_t stride = count_from("STELE_FLIP_STRIDE", 311);
  for (std::uint64_t bit = 0; bit < file.bytes().size() * 8; bit += stride) {
    const std::byte flipped = file.bytes()[bit / 8] ^ std::byte{1} << bit % 8;
    file.put(bit / 8, 1, &flipped);
    const readout r = read_left(at("store"));
    SCOPED_TRACE("bit " + std::to_string(bit));
    ASSERT_TRUE(r.opened);
    std::uint64_t wrong = 0;  // a flip of the item itself is not seen
    for (const auto& [key, value] : r.items)
      wrong += !items.contains(key) || items.at(key) != value;
    ASSERT_LE(wrong, 1u);
    ASSERT_GE(r.items.size() + 1, items.size());
    file.restore(bit / 8, 1);
  }
}

TEST_F(salvage, a_page_or_sector_of_zeroes_or_noise_loses_what_it_held) {
  const model items = make_store(at("store"), checksums::on);
  const auto header = *storage::pool_file::peek(at("store"));
  damaged_file file(at("store"));
  const auto places = places_of(items, file.bytes(), header.chunks_offset);
  std::vector<std::byte> zeroes(page), noise(page);
  std::mt19937 random(7);
  for (std::byte& b : noise) b = static_cast<std::byte>(random());
  for (const std::size_t size : {page, block})
    for (const auto* content : {&zeroes, &noise})
      for (std::size_t from = 0; from + size <= file.bytes().size(); from += size) {
        file.put(from, size, content->data());
        const readout r = read_left(at("store"));
        SCOPED_TRACE(std::to_string(size) + " bytes at " + std::to_string(from));
        // Noise over checksums damages the blocks that they are of.
        const std::size_t sums = header.block_checksums_offset;
        if (content == &noise && from < header.chunks_offset && from + size > sums) {
          ASSERT_TRUE(r.opened);
          for (const auto& [key, value] : r.items) ASSERT_EQ(items.at(key), value);
        } else {
          expect_no_more_lost(r, items, places, from, from + size);
        }
        if (HasFatalFailure()) return;
        file.restore(from, size);
      }
}

TEST_F(salvage, a_truncated_store_keeps_what_is_there) {
  const model items = make_store(at("store"), checksums::on);
  const auto header = *storage::pool_file::peek(at("store"));
  const auto whole = bytes_of(at("store"));
  const auto places = places_of(items, whole, header.chunks_offset);
  for (std::size_t length = header.chunks_offset; length < whole.size(); length += 3 * page / 2) {
    write_bytes(at("store"), {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    expect_no_more_lost(read_left(at("store")), items, places, length, whole.size());
    if (HasFatalFailure()) return;
  }
}

// Links to anywhere: the walk ends, with nothing that was not put.
TEST_F(salvage, wild_links_end_the_walk_and_invent_nothing) {
  const model items = make_store(at("store"), checksums::off);
  const auto header = *storage::pool_file::peek(at("store"));
  const auto whole = bytes_of(at("store"));
  std::mt19937_64 random(11);
  for (unsigned run = 0; run < 300; ++run) {
    auto bytes = whole;
    for (unsigned n = 0; n < 40; ++n) {
      const std::size_t word =
          header.chunks_offset + random() % (bytes.size() - header.chunks_offset) / 8 * 8;
      const std::size_t other =
          header.chunks_offset + random() % (bytes.size() - header.chunks_offset) / 8 * 8;
      std::memcpy(bytes.data() + word, bytes.data() + other, 8);
    }
    write_bytes(at("store"), bytes);
    (void)read_left(at("store"));
  }
}

TEST_F(salvage, wild_links_among_named_stores_end_too) {
  make_named(at("store"), checksums::off);
  const auto header = *storage::pool_file::peek(at("store"));
  const auto whole = bytes_of(at("store"));
  std::mt19937_64 random(17);
  const auto word = [&] {
    return header.chunks_offset + random() % ((whole.size() - header.chunks_offset) / 8) * 8;
  };
  for (unsigned run = 0; run < 60; ++run) {
    auto bytes = whole;
    for (unsigned n = 0; n < 60; ++n) std::memcpy(bytes.data() + word(), bytes.data() + word(), 8);
    write_bytes(at("store"), bytes);
    (void)read_left(at("store"));
    std::filesystem::remove(at("copy"));
    (void)detail::copy_content(at("store"), at("copy"), {.allow_losses = true});
  }
}

TEST_F(salvage, a_store_that_was_not_closed_is_read_after_recovery) {
  // A thread that truncates while the file is read would make a copy of two moments.
  auto store = kv::open(
      at("store"), {.create_size = 128 << 10, .engine = {.media = "process", .background = false}});
  ASSERT_TRUE(succeeds(store));
  for (unsigned i = 0; i < 50; ++i) ASSERT_TRUE(succeeds(store->put(key_of(i), "x")));
  write_bytes(at("copy"), bytes_of(at("store")));
  const readout r = read_left(at("copy"));
  EXPECT_EQ(r.items.size(), 50u) << ::testing::PrintToString(r.left.notes) << r.left.lost.size();
  std::vector<std::string> notes;
  EXPECT_EQ(detail::home_image::open(at("store"), notes).error().code, errc::in_use);
}

TEST_F(salvage, other_mechanisms_pools_are_read_too) {
  for (const std::string& mechanism : durable_mechanisms()) {
    SCOPED_TRACE(mechanism);
    {
      auto store = kv::open(at("store"), {.create_size = 256 << 10,
                                          .engine = {.mechanism = mechanism, .media = "process"}});
      ASSERT_TRUE(succeeds(store));
      for (unsigned i = 0; i < 50; ++i) ASSERT_TRUE(succeeds(store->put(key_of(i), "x")));
    }
    EXPECT_EQ(read_left(at("store")).items.size(), 50u);
    const auto copied = detail::copy_content(at("store"), at("copy"), {});
    ASSERT_TRUE(succeeds(copied));
    EXPECT_EQ(copied->left.count, 50u);
    {
      const auto copy =
          kv::open(at("copy"), {.engine = {.mechanism = mechanism, .media = "process"}});
      ASSERT_TRUE(succeeds(copy));
      EXPECT_EQ(*copy->size(), 50u);
      EXPECT_TRUE(succeeds(copy->check()));
    }
    std::filesystem::remove(at("store"));
    std::filesystem::remove(at("copy"));
  }
}

// Nothing is left of a copy that was stopped, and nothing is lost of one that was not.
TEST_F(salvage, a_copy_is_complete_or_not_there_whatever_call_fails) {
  const model items = make_store(at("store"), checksums::on);
  const auto before = bytes_of(at("store"));
  for (const bool permanent : {false, true}) {
    bool hit = true;
    std::uint64_t k = 1;
    for (; hit; ++k) {
      SCOPED_TRACE("call " + std::to_string(k) + (permanent ? " and all later" : "") + " fails");
      bool copied = false;
      {
        const call_failure failure(k, permanent, ENOSPC);
        copied = detail::copy_content(at("store"), at("copy"), {}).has_value();
        hit = failure.hit();
      }
      EXPECT_TRUE(copied || hit);
      // Only the sync of the directory, after the link, may fail and leave the complete copy.
      if (copied || std::filesystem::exists(at("copy"))) {
        EXPECT_EQ(read_left(at("copy")).items, items);
        std::filesystem::remove(at("copy"));
      }
      for (const auto& e : std::filesystem::directory_iterator(at("")))
        EXPECT_EQ(e.path().filename(), "store");
      if (HasFailure()) return;
    }
    EXPECT_GT(k, 10u);
  }
  EXPECT_EQ(bytes_of(at("store")), before) << "the source is only read";
}

TEST_F(salvage, a_copy_that_is_cancelled_leaves_nothing) {
  make_store(at("store"), checksums::on);
  const auto stopped = detail::copy_content(at("store"), at("copy"), {},
                                            [](std::uint64_t, std::uint64_t) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::cancelled);
  EXPECT_FALSE(std::filesystem::exists(at("copy")));
}

TEST_F(salvage, what_cannot_be_copied_is_refused_with_a_reason) {
  make_store(at("store"), checksums::on);
  EXPECT_EQ(detail::copy_content(at("none"), at("copy"), {}).error().code, errc::not_found);
  EXPECT_EQ(detail::copy_content(at("store"), at("store"), {}).error().code, errc::exists);
  EXPECT_EQ(detail::copy_content(at("store"), at("no/copy"), {}).error().code, errc::not_found);
  EXPECT_EQ(detail::copy_content(at("store"), at("copy"), {.size_bytes = 32 << 10}).error().code,
            errc::full);
  EXPECT_EQ(detail::copy_content(at("store"), at("copy"), {.size_bytes = 1}).error().code,
            errc::invalid_argument);
  {
    auto store = kv::open(at("store"), {.engine = {.media = "process"}});
    EXPECT_EQ(detail::copy_content(at("store"), at("copy"), {}).error().code, errc::in_use);
  }
  write_bytes(at("text"), std::vector<std::byte>(100'000, std::byte{'x'}));
  EXPECT_EQ(detail::copy_content(at("text"), at("copy"), {}).error().code, errc::not_a_pool);
  write_bytes(at("short"), std::vector<std::byte>(10, std::byte{'x'}));
  EXPECT_EQ(detail::copy_content(at("short"), at("copy"), {}).error().code, errc::not_a_pool);
  EXPECT_FALSE(std::filesystem::exists(at("copy")));
}

// Tells a document as text.
class teller final : public detail::value_receiver {
 public:
  void scalar(const scalar_copy& key, const scalar_copy& value) override {
    text += key.chars() + "=" + value.chars() + std::to_string(value.word()) + ";";
  }
  void enter(const scalar_copy& key, value_kind) override { text += key.chars() + "{"; }
  void leave() override { text += "}"; }
  std::string text;
};

void make_document(const std::string& path, checksums sums) {
  auto p =
      open_pool<document_dict>(path, {.create_size = 128 << 10,
                                      .layout = std::string(document_layout),
                                      .engine = {.media = "process", .block_checksums = sums}});
  ASSERT_TRUE(succeeds(p.update([](document_dict& d) {
    for (unsigned i = 0; i < 60; ++i) d[key_of(i)] = std::string(i, 't');
    auto& list = d["list"].make_list();
    for (int i = 0; i < 50; ++i) list.append(i);
    auto& inner = d["dict"].make_dict();
    for (int i = 0; i < 30; ++i) inner[i] = "a text that has a block, number " + std::to_string(i);
    inner["deep"].make_list().append({}).make_list().append("end");
  })));
  ASSERT_TRUE(succeeds(p.close()));
}

TEST_F(salvage, a_document_survives_as_far_as_it_can_be_read) {
  for (const checksums sums : {checksums::on, checksums::off}) {
    make_document(at("document"), sums);
    std::vector<std::string> notes;
    const auto tell = [&](detail::content_left* left = nullptr) {
      const auto image = detail::home_image::open(at("document"), notes);
      EXPECT_TRUE(succeeds(image));
      teller t;
      const auto walked = detail::for_each_value_left(*image, t);
      EXPECT_TRUE(succeeds(walked));
      if (walked && left != nullptr) *left = *walked;
      return t.text;
    };
    detail::content_left left;
    const std::string whole = tell(&left);
    EXPECT_TRUE(left.lost.empty());
    const std::uint64_t count = left.count;
    damaged_file file(at("document"));
    for (std::uint64_t bit = 0; bit < file.bytes().size() * 8;
         bit += count_from("STELE_FLIP_STRIDE", 331)) {
      const std::byte flipped = file.bytes()[bit / 8] ^ std::byte{1} << bit % 8;
      file.put(bit / 8, 1, &flipped);
      const std::string told = tell(&left);
      file.restore(bit / 8, 1);
      if (sums == checksums::on && left.lost.empty()) {
        ASSERT_EQ(told, whole) << "bit " << bit;
      }
      if (sums == checksums::on) {
        ASSERT_LE(left.count, count) << "bit " << bit;
      }
    }
    std::filesystem::remove(at("document"));
  }
}

// Cycles, and lengths and links to anywhere.
TEST_F(salvage, a_hostile_document_ends) {
  make_document(at("document"), checksums::off);
  const auto header = *storage::pool_file::peek(at("document"));
  const auto whole = bytes_of(at("document"));
  std::mt19937_64 random(13);
  for (unsigned run = 0; run < 300; ++run) {
    auto bytes = whole;
    const std::size_t heap = bytes.size() - header.chunks_offset;
    for (unsigned n = 0; n < 30; ++n) {
      const std::size_t word = header.chunks_offset + random() % heap / 8 * 8,
                        target = header.chunks_offset + random() % heap / 8 * 8;
      const std::uint64_t link = random() % 4 == 0 ? random() : target - word;
      std::memcpy(bytes.data() + word, &link, 8);
    }
    write_bytes(at("document"), bytes);
    std::vector<std::string> notes;
    const auto image = detail::home_image::open(at("document"), notes);
    ASSERT_TRUE(succeeds(image));
    teller t;
    EXPECT_TRUE(succeeds(detail::for_each_value_left(*image, t)));
    std::filesystem::remove(at("copy"));
    (void)detail::copy_content(at("document"), at("copy"), {.allow_losses = true});
  }
}

}  // namespace
}  // namespace stele::testing
