// A plan as words: MECHANISM/WORKLOAD, then a NAME=VALUE for each member. It begins every replay
// line.
#pragma once

#include <explore/subject.h>

#include <charconv>

namespace stele::explore {

std::string format_plan(const plan& p);
// Sets the member of the plan that the word names; false when it names none.
bool parse_plan_word(std::string_view word, plan& p);

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace stele::explore
