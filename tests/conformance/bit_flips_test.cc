// Every single flipped bit of a pool at rest: it is found, or it changes nothing that the pool answers.
//
// All of them on an image in memory, by the steps that opening a file takes; a sample of them on files, through the API.
#include <media/image.h>
#include <stele/hash_map.h>
#include <stele/map.h>
#include <stele/string.h>
#include <tests/conformance/pools.h>
#include <tx/open.h>

#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

constexpr std::size_t pool_size = 65536;

struct content {
  using pool_resident = void;
  hash_map<string, string> texts;
  map<std::uint64_t, std::uint64_t> numbers;
};

// Everything that the pool answers.
std::string answers(const content& c) {
  std::string all;
  c.numbers.for_each([&](const auto& k, const auto& v) { all += std::to_string(k) + "=" + std::to_string(v) + "\n"; });
  c.texts.for_each([&](const auto& k, const auto& v) { all += k.str() + "=" + v.str() + "\n"; });
  return all;
}

std::string make_pool(const std::string& path) {
  auto p = open_pool<content>(path, {.create_size = pool_size, .sums = checksums::on});
  for (std::uint64_t i = 0; i < 120; ++i)
    EXPECT_TRUE(holds(p.update([&](content& c) {
      c.texts.insert("key " + std::to_string(i), std::string(i, static_cast<char>('a' + i % 26)));
      c.numbers.insert(i, i * i);
    })));
  EXPECT_TRUE(holds(p.update([](content& c) {
    for (std::uint64_t i = 0; i < 120; i += 3) c.numbers.erase(i);
  })));
  std::string said = *p.read(answers);
  EXPECT_TRUE(holds(p.close()));
  return said;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// What a pool with this image answers, or the error that opening it gives.
result<std::string> open_image(media::image_view& view) {
  auto file = storage::pool_file::adopt(view.base, view.size);
  if (!file) return std::unexpected(file.error());
  detail::media_choice media;
  media.what = detail::media_choice::kind::image;
  media.image = &view;
  media.tuning.background = false;
  const pool_options options{.background = false};
  auto opened = detail::open_on(std::make_unique<detail::pool_state>(std::move(*file)), media, **detail::find_mechanism("default"), options);
  if (!opened) return std::unexpected(opened.error());
  auto handle = detail::pool_handle::over(std::move(*opened), sizeof(content));
  if (!handle) return std::unexpected(handle.error());
  const pool<content> p(std::move(*handle));
  return p.read(answers);
}

TEST(bit_flips, each_of_a_closed_pool_is_found_or_harmless) {
  scratch_directory dir;
  const std::string said = make_pool(dir.file("pool"));
  const std::vector<std::byte> bytes = bytes_of(dir.file("pool"));
  ASSERT_EQ(bytes.size(), pool_size);
  const std::unique_ptr<std::byte, void (*)(void*)> memory(static_cast<std::byte*>(std::aligned_alloc(4096, pool_size)), std::free);  // as a mapping is
  std::byte* const image = memory.get();
  std::memcpy(image, bytes.data(), pool_size);
  media::image_view view(image, pool_size);
  ASSERT_EQ(open_image(view).value(), said);
  view.undo();
  std::uint64_t found = 0, harmless = 0;
  for (std::size_t bit = 0; bit < pool_size * 8; ++bit) {
    image[bit / 8] ^= std::byte{1} << bit % 8;
    const auto answered = open_image(view);
    view.undo();
    image[bit / 8] ^= std::byte{1} << bit % 8;
    if (!answered)
      ++found;
    else if (*answered == said)
      ++harmless;
    else
      FAIL() << "bit " << bit % 8 << " of byte " << bit / 8 << " gives a wrong answer";
  }
  EXPECT_EQ(found + harmless, pool_size * 8);
  EXPECT_GT(found, pool_size * 8 / 8) << "what is in use takes more than that";
  RecordProperty("found", std::to_string(found));
  RecordProperty("harmless", std::to_string(harmless));
  std::printf("%lu bits found, %lu harmless\n", found, harmless);
}

TEST(bit_flips, a_sample_of_them_on_files) {
  scratch_directory dir;
  const std::string path = dir.file("pool"), said = make_pool(path);
  const std::vector<std::byte> image = bytes_of(path);
  base::rng random(7);
  for (unsigned i = 0; i < 400; ++i) {
    std::vector<std::byte> flipped = image;
    const std::size_t bit = random.below(pool_size * 8);
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(reinterpret_cast<const char*>(flipped.data()), pool_size);
    const auto opened = pool<content>::open(path);
    if (!opened) continue;
    EXPECT_EQ(opened->read(answers).value(), said) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

}  // namespace
}  // namespace stele::testing
