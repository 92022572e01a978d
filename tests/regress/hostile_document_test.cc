// Documents whose content contradicts itself: each use ends with an answer or an error, never with
// a signal, an endless walk or a store outside the pool; and one check finds what another does.
#include <cli/pool_content.h>
#include <containers/test_bed.h>
#include <gmock/gmock.h>
#include <stele/document.h>
#include <stele/kv.h>
#include <tx/inspect.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace stele::testing {
namespace {

using ::testing::HasSubstr;

// Offsets of docs/format/document.md.
constexpr std::size_t list_length = 8, list_shape = 16, first_segment = 24, dict_shape = 8,
                      dict_segment = 16, dict_first = 280, value_link = 8, item_after = 24;

field<std::uint64_t>& word(const void* of, std::size_t at) {
  return *reinterpret_cast<field<std::uint64_t>*>(reinterpret_cast<char*>(const_cast<void*>(of)) +
                                                  at);
}

std::uint64_t exchange(field<std::uint64_t>& of, std::uint64_t value) {
  const std::uint64_t before = of.load();
  of = value;
  return before;
}

class hostile_document : public ::testing::Test {
 protected:
  hostile_document() {
    pool_options options{.create_size = 1 << 20, .engine = {.media = "adr"}};
    options.layout = document_layout;
    auto opened = pool<document_dict>::open(dir_.file("p"), options);
    EXPECT_TRUE(opened) << opened.error().message;
    p_.emplace(std::move(*opened));
    change([](document_dict& d) {
      d["text"] = std::string(100, 't');
      auto& list = d["list"].make_list();
      for (int i = 0; i < 20; ++i) list.append("a text that has a block of its own");
      auto& inner = d["dict"].make_dict();
      for (int i = 0; i < 20; ++i) inner[i] = i;
    });
  }
  void change(const std::function<void(document_dict&)>& how) {
    const auto done = p_->update(how);
    ASSERT_TRUE(done) << done.error().message;
  }
  // Reads and changes everything; each must end.
  void use() {
    const std::function<void(document_dict&)> uses[] = {
        [](document_dict& d) { d.visit_blocks([](const void*) {}); },
        [](document_dict& d) { d["list"].list().for_each([](auto& v) { (void)v.load(); }); },
        [](document_dict& d) { (void)d["list"].list().at(15).load(); },
        [](document_dict& d) { (void)d["text"].text(); },
        [](document_dict& d) { (void)d["dict"].dict().find(3); },
        [](document_dict& d) { d["dict"].dict().for_each([](auto&, auto& v) { v = 1; }); },
        [](document_dict& d) { d["list"].list().append(1); },
        [](document_dict& d) { d["list"].list().insert(2, "new"); },
        [](document_dict& d) { d["list"].list().erase(1, 3); },
        [](document_dict& d) { d["dict"].dict()[99] = 2; },
        [](document_dict& d) { d["text"] = std::string(100, 'u'); },
        [](document_dict& d) { d.clear(); }};
    for (const auto& one : uses) {
      const auto done = p_->update([&](document_dict& d) -> result<> {
        one(d);
        return std::unexpected(error{errc::cancelled, "rolled back, for the next use"});
      });
      if (done.error().code != errc::cancelled) {
        EXPECT_GT(done.error().message.size(), 12u);
      }
    }
  }
  // What the document's own check, that of the open pool and the command's say is one.
  void is_refused_by_each_check() {
    EXPECT_FALSE(p_->read([](const document_dict& d) { return d.check(); }));
    EXPECT_FALSE(p_->check());
    ASSERT_TRUE(p_->close());
    auto copy = detail::open_copy_of(dir_.file("p"), verification::never);
    ASSERT_TRUE(copy);
    EXPECT_FALSE(cli::check_content(std::move(*copy), std::string(document_layout)));
  }
  scratch_directory dir_;
  std::optional<pool<document_dict>> p_;
};

TEST_F(hostile_document, lengths_and_shapes_that_no_list_has_are_errors) {
  for (const std::size_t at : {list_length, list_shape})
    for (const std::uint64_t value :
         {std::uint64_t{1} << 45, std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{0x2d01},
          std::uint64_t{33}}) {
      SCOPED_TRACE(value);
      std::uint64_t before = 0;
      change([&](document_dict& d) { before = exchange(word(&d["list"].list(), at), value); });
      use();
      change([&](document_dict& d) { word(&d["list"].list(), at) = before; });
    }
  ASSERT_TRUE(p_->check());
}

TEST_F(hostile_document, links_that_lead_anywhere_are_errors) {
  const auto damage = [&](const std::function<field<std::uint64_t>&(document_dict&)>& place) {
    for (const std::uint64_t to : {std::uint64_t{0}, std::uint64_t{1} << 40, std::uint64_t{1} << 46,
                                   0 - (std::uint64_t{1} << 40), std::uint64_t{1} << 63,
                                   std::uint64_t{20}, std::uint64_t{8}}) {
      SCOPED_TRACE(to);
      std::uint64_t before = 0;
      change([&](document_dict& d) { before = exchange(place(d), to); });
      use();
      change([&](document_dict& d) { place(d) = before; });
    }
  };
  damage([](document_dict& d) -> auto& { return word(&d["list"], value_link); });
  damage([](document_dict& d) -> auto& { return word(&d["dict"], value_link); });
  damage([](document_dict& d) -> auto& { return word(&d["text"], value_link); });
  damage([](document_dict& d) -> auto& { return word(&d["list"].list(), first_segment); });
  damage([](document_dict& d) -> auto& { return word(&d["list"].list(), first_segment + 8); });
  damage([](document_dict& d) -> auto& { return word(&d["dict"].dict(), dict_segment); });
  damage([](document_dict& d) -> auto& { return word(&d["dict"].dict(), dict_first); });
  damage([](document_dict& d) -> auto& { return word(&d["dict"].dict(), dict_shape); });
  ASSERT_TRUE(p_->check());
}

TEST_F(hostile_document, a_text_longer_than_the_pool_is_an_error) {
  for (const unsigned bits : {21u, 40u, 55u})
    change([&](document_dict& d) {
      const std::uint64_t before = word(&d["text"], 0).load();
      word(&d["text"], 0) = 0xf4 | std::uint64_t{1} << bits << 8;
      EXPECT_THROW((void)d["text"].text(), failure);
      word(&d["text"], 0) = before;
    });
}

TEST_F(hostile_document, circles_of_items_and_of_containers_end) {
  change([](document_dict& d) {  // the first item of the inner dict comes after itself
    auto& inner = d["dict"].dict();
    const char* const first = reinterpret_cast<const char*>(&inner) + dict_first;
    const char* const item = first + word(&inner, dict_first).load();
    word(item, item_after) = 0 - item_after;
  });
  const auto walked = p_->read(
      [](const document_dict& d) { d.find("dict")->dict().for_each([](auto&, auto&) {}); });
  ASSERT_FALSE(walked);
  EXPECT_THAT(walked.error().message, HasSubstr("circle"));
  use();
  change([](document_dict& d) {  // a value of the list is the list
    auto& inner = d["list"].list().at(0);
    word(&inner, 0) = static_cast<std::uint64_t>(value_kind::list);
    word(&inner, value_link) = reinterpret_cast<std::uintptr_t>(&d["list"].list()) -
                               (reinterpret_cast<std::uintptr_t>(&inner) + value_link);
  });
  use();
}

TEST_F(hostile_document, a_link_to_a_free_block_is_found_by_each_check) {
  change([](document_dict& d) {
    const std::uint64_t head = word(&d["text"], 0).load(), link = word(&d["text"], 8).load();
    d["text"] = 1;  // frees its block
    word(&d["text"], 8) = link;
    word(&d["text"], 0) = head;
  });
  is_refused_by_each_check();
}

TEST_F(hostile_document, a_text_longer_than_its_block_is_found_by_each_check) {
  change([](document_dict& d) { word(&d["text"], 0) = 0xf4 | std::uint64_t{900} << 8; });
  is_refused_by_each_check();
}

TEST_F(hostile_document, a_link_into_a_block_is_found_by_each_check) {
  change([](document_dict& d) { word(&d["text"], 8) = word(&d["text"], 8).load() + 8; });
  is_refused_by_each_check();
}

}  // namespace
}  // namespace stele::testing
