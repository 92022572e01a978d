// What a medium leaves out of the events of one place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lab_media/omitting.h>

#include <source_location>
#include <string>
#include <vector>

namespace stele::media {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down what reaches it, by line: "flush 0", "stream 1", "fence".
class listed : public omitting<listed> {
 public:
  void store(void* to, const void*, std::size_t size) { add("store ", to, size); }
  std::vector<std::string> take() { return std::exchange(events_, {}); }

  alignas(line_size) std::byte memory[8 * line_size] = {};

 private:
  friend omitting<listed>;
  void flush_now(const void* at, std::size_t size) { add("flush ", at, size); }
  void stream_now(void* to, const void*, std::size_t size) { add("stream ", to, size); }
  void fence_now() { events_.emplace_back("fence"); }
  void add(const std::string& what, const void* at, std::size_t size) {
    const auto first =
        static_cast<std::size_t>(static_cast<const std::byte*>(at) - memory) / line_size;
    for (std::size_t i = 0; i < line_count(at, size); ++i)
      events_.push_back(what + std::to_string(first + i));
  }
  std::vector<std::string> events_;
};

void flush_line(listed& m, std::size_t line) {
  m.flush(m.memory + line * line_size, line_size);
}
void stream_lines(listed& m, std::size_t line, std::size_t count) {
  m.stream(m.memory + line * line_size, m.memory, count * line_size);
}
// Two fences of one function.
void two_fences(listed& m, bool both = true) {
  m.fence();
  if (!both) return;
  flush_line(m, 7);
  m.fence();
}
// A step that its caller's place may leave out.
bool is_left_out(const std::source_location& at = std::source_location::current()) {
  return event_sites::omitted_of(event_sites::event::step, at) == event_sites::omitted::all;
}
struct two_callers {
  static bool first() { return is_left_out(); }
  static bool second() { return is_left_out(); }
};
template <class Medium>
struct of_template {
  [[gnu::always_inline]] static void each(auto&& body) { body(); }
  static void fence_in_a_body(Medium& m) {
    each([&] { m.fence(); });
  }
};

class EventSites : public ::testing::Test {
 protected:
  ~EventSites() override { event_sites::omit(""); }
  listed medium;
};

TEST_F(EventSites, leave_nothing_out_unless_told) {
  flush_line(medium, 1);
  stream_lines(medium, 2, 2);
  two_fences(medium);
  EXPECT_THAT(medium.take(),
              ElementsAre("flush 1", "stream 2", "stream 3", "fence", "flush 7", "fence"));
}

TEST_F(EventSites, leave_out_all_of_a_function) {
  event_sites::omit("fence event_sites_test.cc:two_fences");
  two_fences(medium);
  medium.fence();
  EXPECT_THAT(medium.take(), ElementsAre("flush 7", "fence"));
  event_sites::omit(
      "flush event_sites_test.cc:flush_line, stream event_sites_test.cc:stream_lines");
  flush_line(medium, 1);
  stream_lines(medium, 2, 2);
  EXPECT_THAT(medium.take(), IsEmpty());
}

TEST_F(EventSites, leave_out_one_of_a_function_in_each_call) {
  for (const auto& [words, left] :
       {std::pair{"fence event_sites_test.cc:two_fences#1",
                  std::vector<std::string>{"flush 7", "fence"}},
        {"fence event_sites_test.cc:two_fences#2", {"fence", "flush 7"}}})
    for (int i = 0; i < 2; ++i) {
      event_sites::omit(words);
      two_fences(medium), two_fences(medium);
      const auto seen = medium.take();
      ASSERT_EQ(seen.size(), 2 * left.size()) << words;
      EXPECT_TRUE(std::equal(left.begin(), left.end(),
                             seen.begin() + static_cast<std::ptrdiff_t>(left.size())));
    }
  event_sites::omit("fence event_sites_test.cc:two_fences#2");
  two_fences(medium, false), two_fences(medium, false), two_fences(medium);
  EXPECT_THAT(medium.take(), ElementsAre("fence", "fence", "fence", "flush 7"));
}

TEST_F(EventSites, leave_out_a_step_of_one_caller) {
  EXPECT_FALSE(two_callers::first());
  event_sites::omit("pause event_sites_test.cc:first");
  EXPECT_TRUE(two_callers::first());
  EXPECT_FALSE(two_callers::second());
  event_sites::omit("fence event_sites_test.cc:first");
  EXPECT_FALSE(two_callers::first());
}

TEST_F(EventSites, know_functions_of_templates_and_lambdas) {
  event_sites::omit("fence event_sites_test.cc:fence_in_a_body");
  of_template<listed>::fence_in_a_body(medium);
  EXPECT_THAT(medium.take(), IsEmpty());
}

TEST_F(EventSites, leave_out_the_last_line_before_a_fence) {
  event_sites::omit(
      "last flush event_sites_test.cc:flush_line, last stream event_sites_test.cc:stream_lines");
  flush_line(medium, 1);
  flush_line(medium, 2);
  medium.fence();
  flush_line(medium, 3);
  medium.fence();
  EXPECT_THAT(medium.take(), ElementsAre("flush 1", "fence", "fence"));
  stream_lines(medium, 1, 3);
  stream_lines(medium, 4, 1);
  medium.fence();
  EXPECT_THAT(medium.take(),
              ElementsAre("stream 1", "stream 2", "store 3", "store 4", "flush 3", "fence"));
}

TEST_F(EventSites, leave_out_the_last_line_of_each_stream) {
  event_sites::omit("short stream event_sites_test.cc:stream_lines");
  stream_lines(medium, 1, 3);
  stream_lines(medium, 4, 1);
  EXPECT_THAT(medium.take(), ElementsAre("stream 1", "stream 2"));
}

}  // namespace
}  // namespace stele::media
