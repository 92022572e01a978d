// The omitted places and the callback.
#include <lab_media/event_sites.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace stele::media {

namespace {

struct omission {
  event_sites::event what;
  event_sites::omitted part;
  std::string name;     // file and function
  unsigned line = 0;    // 0: any
  unsigned number = 0;  // in a call of the function; 0: any
};
std::vector<omission> omissions;
unsigned generation = 0;  // of the omissions
std::function<void(const std::string&)> fence_callback;

// Where a thread is in a call of the function that an omission names.
struct call_progress {
  unsigned generation = 0, line = 0, number = 0;
};

// Removes the front of a text up to a separator, and the separator; returns the front.
std::string_view take_front(std::string_view& text, std::string_view separator) {
  const std::size_t size = std::min(text.find(separator), text.size());
  const std::string_view front = text.substr(0, size);
  text.remove_prefix(std::min(size + separator.size(), text.size()));
  return front;
}

unsigned number_in(std::string_view text) {
  unsigned number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

omission parse_omission(std::string_view words) {
  using enum event_sites::event;
  using enum event_sites::omitted;
  omission o{fence, all, "", 0, 0};
  if (words.starts_with("last ")) o.part = last_line_before_fence;
  if (words.starts_with("short ")) o.part = last_line;
  if (o.part != all) (void)take_front(words, " ");
  const std::string_view what = take_front(words, " ");
  o.what = what == "flush" ? flush : what == "stream" ? stream : what == "fence" ? fence : step;
  std::string_view place = take_front(words, "#");
  o.number = number_in(words);
  o.name = take_front(place, ":");
  if (const std::size_t colon = place.find(':'); colon != std::string_view::npos)
    o.line = number_in(take_front(place, ":"));
  o.name += ':';
  o.name += place;
  return o;
}

std::string_view file_of(const std::source_location& at) {
  const std::string_view path = at.file_name();
  return path.substr(path.rfind('/') + 1);
}

// The compiler's name has the return type, the class, template arguments and the parameters; of a
// lambda it begins with the function around it.
std::string_view function_of(const std::source_location& at) {
  constexpr std::string_view unnamed = "(anonymous namespace)";  // as clang writes it
  const std::string_view all = at.function_name();
  const auto begins_parameters = [&](std::size_t i) {
    return all[i] == '(' && !all.substr(i).starts_with(unnamed);
  };
  std::size_t end = 0;
  for (int depth = 0; end < all.size() && (!begins_parameters(end) || depth != 0); ++end)
    depth += all[end] == '<' ? 1 : all[end] == '>' ? -1 : 0;
  const std::string_view front = all.substr(0, end);
  return front.substr(front.find_last_of(": *&") + 1);
}

// The number of an event in its call of the function.
unsigned count_in_call(std::size_t of_omission, unsigned line) {
  static thread_local std::vector<call_progress> calls;
  if (calls.size() <= of_omission) calls.resize(of_omission + 1);
  call_progress& c = calls[of_omission];
  if (c.generation != generation || line <= c.line) c = {generation, 0, 0};
  c.line = line;
  return ++c.number;
}

}  // namespace

void event_sites::omit(std::string_view words) {
  omissions.clear();
  ++generation;
  while (!words.empty()) omissions.push_back(parse_omission(take_front(words, ", ")));
}
void event_sites::on_fence(std::function<void(const std::string&)> callback) {
  fence_callback = std::move(callback);
}

std::string event_sites::name_of(const std::source_location& at) {
  return std::string(file_of(at)) + ":" + std::to_string(at.line()) + ":" +
         std::string(function_of(at));
}

bool event_sites::is_at(std::string_view name, const std::source_location& at) {
  return take_front(name, ":") == file_of(at) && name == function_of(at);
}

event_sites::omitted event_sites::omitted_of(event what, const std::source_location& at) {
  if (what == event::fence && fence_callback) fence_callback(name_of(at));
  for (std::size_t i = 0; i < omissions.size(); ++i) {
    const omission& o = omissions[i];
    if (o.what != what || (o.line != 0 && o.line != at.line()) || !is_at(o.name, at)) continue;
    if (o.number == 0 || count_in_call(i, at.line()) == o.number) return o.part;
  }
  return omitted::nothing;
}

}  // namespace stele::media
