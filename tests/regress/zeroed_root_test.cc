// A page of zeros in a pool without block checksums is not taken for an empty root: the root, the
// catalog of named stores, a named store and the expiry index have marks that are not 0.
#include <gmock/gmock.h>
#include <stele/document.h>
#include <stele/kv.h>
#include <tests/conformance/pools.h>
#include <tx/home_image.h>
#include <tx/inspect.h>

#include <fstream>

namespace stele::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t page = 4096;

struct words {
  using pool_resident = void;
  field<std::uint64_t> first, last[900];  // of more than one page
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class zeroed_root : public ::testing::Test {
 protected:
  pool_options options(const std::string& mechanism = "default") const {
    return {.create_size = 1 << 20, .engine = {.mechanism = mechanism, .media = "adr"}};
  }
  void make_store(const std::string& mechanism = "default") {
    std::filesystem::remove(path_);
    auto s = kv::open(path_, options(mechanism));
    ASSERT_TRUE(succeeds(s));
    for (int i = 0; i < 300; ++i)
      ASSERT_TRUE(succeeds(s->put("k" + std::to_string(i), "value " + std::to_string(i))));
    ASSERT_TRUE(succeeds(s->close()));
  }
  std::uint64_t root() const {
    const auto report = detail::check_pool(path_);
    EXPECT_TRUE(succeeds(report));
    return report->root_offset;
  }
  // Zeroes the page with the byte at `offset`.
  void zero_page(std::uint64_t offset) const {
    std::string bytes = read_file(path_);
    std::fill_n(bytes.begin() + offset / page * page, page, '\0');
    write_file(path_, bytes);
  }
  template <class Opened>
  void is_refused(const Opened& opened) const {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, errc::corrupt);
    EXPECT_THAT(opened.error().message, HasSubstr("has lost its mark"));
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("p");
};

TEST_F(zeroed_root, of_a_store_is_refused_with_every_mechanism_in_place) {
  for (const auto& mechanism : detail::mechanisms()) {
    if (mechanism.name == "log_structured") continue;  // its home is in summed logs
    SCOPED_TRACE(mechanism.name);
    make_store(mechanism.name);
    zero_page(root());
    is_refused(kv::open(path_, {.engine = {.media = "adr"}}));
    is_refused(kv::open_read_only(path_));
    is_refused(detail::check_pool(path_));
  }
}

TEST_F(zeroed_root, of_a_document_and_of_a_structure_is_refused) {
  {
    auto p = pool<document_dict>::open(path_, options());
    ASSERT_TRUE(succeeds(p));
    ASSERT_TRUE(succeeds(p->update([](document_dict& d) { d["a"] = 1; })));
    ASSERT_TRUE(succeeds(p->close()));
  }
  zero_page(root());
  is_refused(pool<document_dict>::open(path_, {.engine = {.media = "adr"}}));
  is_refused(detail::check_pool(path_));
  std::filesystem::remove(path_);
  {
    auto p = pool<words>::open(path_, options());
    ASSERT_TRUE(succeeds(p));
    ASSERT_TRUE(succeeds(p->update([](words& w) { w.last[899] = 1; })));
    ASSERT_TRUE(succeeds(p->close()));
  }
  zero_page(root() + sizeof(words));
  is_refused(pool<words>::open(path_, {.engine = {.media = "adr"}}));
  auto unverified =
      pool<words>::open(path_, {.engine = {.media = "adr", .verify = verification::never}});
  EXPECT_TRUE(succeeds(unverified)) << "who wants to read what is left may";
}

TEST_F(zeroed_root, is_noticed_by_a_check_of_the_open_pool) {
  auto p = pool<words>::open(path_, options());
  ASSERT_TRUE(succeeds(p));
  ASSERT_TRUE(succeeds(p->check()));
  ASSERT_TRUE(succeeds(p->read([](const words& w) {
    auto* const mark = reinterpret_cast<std::uint64_t*>(const_cast<words*>(&w) + 1);
    EXPECT_NE(*mark, 0u);
    *mark = 0;
  })));
  is_refused(p->check());
}

TEST_F(zeroed_root, no_bit_of_the_mark_or_of_its_form_can_flip_unnoticed) {
  make_store();
  const std::uint64_t at = root();
  const std::string whole = read_file(path_);
  const auto header = storage::pool_file::peek(path_);
  ASSERT_TRUE(succeeds(header));
  for (const std::uint64_t word :
       {at + kv::root_size(), header->home_offset + offsetof(format::home_header, root_form)})
    for (unsigned bit = 0; bit < 64; ++bit) {
      std::string bytes = whole;
      bytes[word + bit / 8] = static_cast<char>(bytes[word + bit / 8] ^ 1 << bit % 8);
      write_file(path_, bytes);
      const auto opened = kv::open(path_, {.engine = {.media = "adr"}});
      ASSERT_FALSE(opened) << word << ", bit " << bit;
      EXPECT_EQ(opened.error().code, errc::corrupt);
    }
}

TEST_F(zeroed_root, of_a_program_before_the_mark_opens_and_a_later_form_is_refused_by_name) {
  make_store();
  std::string bytes = read_file(path_);
  const auto header = storage::pool_file::peek(path_);
  const std::uint64_t at = root(),
                      form = header->home_offset + offsetof(format::home_header, root_form);
  std::fill_n(bytes.begin() + form, 8, '\0');
  std::fill_n(bytes.begin() + at + kv::root_size(), 8, '\0');
  write_file(path_, bytes);
  {
    auto s = kv::open(path_, {.engine = {.media = "adr"}});
    ASSERT_TRUE(succeeds(s));
    EXPECT_EQ(s->size().value_or(0), 300u);
    EXPECT_TRUE(succeeds(s->check()));
    EXPECT_TRUE(succeeds(s->close()));
  }
  const std::uint64_t later = format::guard(at | 2, 0, form);
  std::memcpy(bytes.data() + form, &later, 8);
  write_file(path_, bytes);
  const auto opened = kv::open(path_, {.engine = {.media = "adr"}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, errc::version);
  EXPECT_THAT(opened.error().message, HasSubstr("later form than 1"));
}

// The items of all stores, or why they cannot be read.
std::string content_of(const std::string& path) {
  auto s = kv::open(path, {.engine = {.media = "adr"}});
  if (!s) return s.error().message;
  std::string text;
  const auto add = [&](kv& store) {
    text += store.name() + ":";
    const auto items = store.range("", "", 1000);
    if (!items) return text += items.error().message, void();
    for (const auto& i : *items) text += i.key + "=" + i.value + ";";
  };
  add(*s);
  const auto names = s->stores();
  if (!names) return names.error().message;
  for (const std::string& name : *names) {
    auto named = s->open_store(name, kv::if_missing::refuse);
    if (!named) return named.error().message;
    add(*named);
  }
  return text;
}
bool is_sound(const std::string& path) {
  const auto s = kv::open(path, {.engine = {.media = "adr"}});
  return s && s->check();
}

// A value of more than a page is not guarded without block checksums; the values here are short.
TEST_F(zeroed_root, no_page_of_zeros_makes_items_or_stores_vanish) {
  {
    auto s = kv::open(path_, options());
    ASSERT_TRUE(succeeds(s));
    for (const char* name : {"users", "orders", "empty"}) {
      auto named = s->open_store(name);
      ASSERT_TRUE(succeeds(named));
      for (int i = 0; i < (*name == 'e' ? 0 : 100); ++i) {
        ASSERT_TRUE(succeeds(named->put("k" + std::to_string(i), "value")));
        ASSERT_TRUE(
            succeeds(named->put_for("t" + std::to_string(i), "value", std::chrono::hours(24))));
      }
    }
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(succeeds(s->put("k" + std::to_string(i), "value")));
    ASSERT_TRUE(succeeds(s->close()));
  }
  const std::string whole = read_file(path_), expected = content_of(path_);
  ASSERT_EQ(std::ranges::count(expected, '='), 700);
  unsigned pages = 0;
  for (std::uint64_t at = 0; at < whole.size(); at += page) {
    if (whole.find_first_not_of('\0', at) >= at + page) continue;
    write_file(path_, whole);
    zero_page(at);
    ++pages;
    if (content_of(path_) != expected) {
      EXPECT_FALSE(is_sound(path_)) << "page at " << at;
    }
  }
  EXPECT_GT(pages, 20u);
}

struct wider_words {
  words narrow;
  field<std::uint64_t> more;
};
result<> widen(migration& m) {
  words& old = m.root<words>();
  m.make_root<wider_words>()->narrow.last[899] = old.last[899].load();
  destroy(&old);
  return {};
}
result<> change_in_place(migration& m) {
  m.root<wider_words>().more = 2;
  return {};
}

// Once it got another root, and once the one that it had is changed.
TEST_F(zeroed_root, of_a_migrated_pool_is_refused) {
  pool_options o = options();
  o.layout = "words";
  {
    auto p = pool<words>::open(path_, o);
    ASSERT_TRUE(succeeds(p));
    ASSERT_TRUE(succeeds(p->update([](words& w) { w.last[899] = 1; })));
    ASSERT_TRUE(succeeds(p->close()));
  }
  for (const auto& [version, change] : {std::pair(1, &widen), std::pair(2, &change_in_place)}) {
    SCOPED_TRACE(version);
    o.layout_version = version;
    o.migrate = change;
    {
      auto p = pool<wider_words>::open(path_, o);
      ASSERT_TRUE(succeeds(p));
      EXPECT_EQ(p->read([](const wider_words& w) { return w.narrow.last[899].load(); }).value(),
                1u);
      ASSERT_TRUE(succeeds(p->close()));
    }
    const std::string whole = read_file(path_);
    zero_page(root() + sizeof(wider_words));
    is_refused(pool<wider_words>::open(path_, o));
    is_refused(detail::check_pool(path_));
    write_file(path_, whole);
  }
}

TEST_F(zeroed_root, is_told_by_what_reads_a_damaged_pool) {
  make_store();
  zero_page(root());
  std::vector<std::string> notes;
  ASSERT_TRUE(succeeds(detail::home_image::open(path_, notes)));
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("has lost its mark")));
}

}  // namespace
}  // namespace stele::testing
