// A report for people, and for the pipe between two processes.
#include <fmt/format.h>
#include <testing/packed.h>

#include <ostream>
#include <sstream>

namespace stele::testing {

namespace {

template <class Report, class Each>
void for_each_number(Report& r, Each&& each) {
  each(r.states), each(r.distinct_states), each(r.crash_points), each(r.exhausted_points);
  each(r.recoveries), each(r.refused), each(r.not_fitting), each(r.seconds);
}

std::string with_length(const std::string& text) {
  return fmt::format("{} {}", text.size(), text);
}
std::string read_text(std::istream& from) {
  std::size_t size = 0;
  from >> size;
  from.get();
  std::string text(from ? size : 0, ' ');
  from.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

std::string summary_of(const report& r) {
  const double exhausted = r.crash_points == 0 ? 0
                                               : 100.0 * static_cast<double>(r.exhausted_points) /
                                                     static_cast<double>(r.crash_points);
  std::string text = fmt::format(
      "{} crash states ({} distinct) at {} crash points, {:.0f} % of them "
      "exhausted; {} recoveries "
      "explored in turn; {:.0f} states/s",
      r.states, r.distinct_states, r.crash_points, exhausted, r.recoveries,
      r.seconds > 0 ? static_cast<double>(r.states) / r.seconds : 0);
  if (r.refused != 0) text += fmt::format("; {} refused, as the mechanism may", r.refused);
  if (r.not_fitting != 0)
    text += fmt::format("; {} operations found no room in the pool", r.not_fitting);
  return text;
}

}  // namespace

std::string packed(const report& r) {
  std::string text;
  for_each_number(r, [&](auto number) { text += fmt::format("{} ", number); });
  text += with_length(r.replayed) + fmt::format("{} ", r.failures.size());
  for (const crash_failure& f : r.failures) text += with_length(f.what) + with_length(f.replay);
  return text;
}

report unpacked(const std::string& text) {
  std::istringstream from(text);
  report r;
  for_each_number(r, [&](auto& number) { from >> number; });
  r.replayed = read_text(from);
  std::size_t failures = 0;
  from >> failures;
  for (std::size_t i = 0; i < failures && from; ++i) {
    std::string what = read_text(from);
    r.failures.push_back({std::move(what), read_text(from)});
  }
  return r;
}

std::string report::message() const {
  std::string text = structure + ": ";
  if (!replayed.empty())
    text += "replayed " + replayed + (passed() ? "recovered as it should be" : "");
  else if (passed() || states != 0)
    text += summary_of(*this);
  for (const crash_failure& f : failures) {
    text += (text.ends_with('\n') || text.ends_with(": ") ? "" : "\n") + ("FAILS " + f.what);
    if (!f.replay.empty()) text += fmt::format("\n  replay: STELE_REPLAY='{}'", f.replay);
  }
  return text;
}

std::ostream& operator<<(std::ostream& to, const report& r) {
  return to << r.message();
}

}  // namespace stele::testing
