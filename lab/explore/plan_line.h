// A plan as words: MECHANISM/WORKLOAD and a NAME=VALUE for each of its members, the front of every
// line that is replayed.
#pragma once

#include <explore/subject.h>

#include <charconv>

namespace stele::explore {

std::string format_plan(const plan& p);
// Takes one of those words over into the plan; false when it is none.
bool parse_plan_word(std::string_view word, plan& p);

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace stele::explore
