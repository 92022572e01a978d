// SORT and SORT_RO.
#include <algorithm>
#include <cstring>

#include "collections.h"

namespace stele::redis {

namespace {

struct sort_arguments {
  std::string_view by;
  bool has_by = false, is_sorted = true, by_text = false, descends = false;
  long long first = 0, count = -1;
  std::vector<std::string_view> gets;
  api::text* store = nullptr;
};

// Names other keys.
bool is_pattern(std::string_view of) {
  return of.find('*') != of.npos;
}

// Null, or what is wrong.
const char* read_arguments(const call& c, bool may_store, sort_arguments& a) {
  for (int i = 2; i < c.count; ++i) {
    const auto is = [&](const char* word, int more) {
      return equal_ignoring_case(c[i], word) && i + more < c.count;
    };
    if (is("ASC", 0)) {
      a.descends = false;
    } else if (is("DESC", 0)) {
      a.descends = true;
    } else if (is("ALPHA", 0)) {
      a.by_text = true;
    } else if (is("LIMIT", 2)) {
      const auto first = integer_of(c[i + 1]), count = integer_of(c[i + 2]);
      if (!first || !count) return not_an_integer;
      a.first = *first, a.count = *count;
      i += 2;
    } else if (may_store && is("STORE", 1)) {
      a.store = c.text(++i);
    } else if (is("BY", 1)) {
      a.by = c[++i], a.has_by = true;
      a.is_sorted = is_pattern(a.by);
    } else if (is("GET", 1)) {
      a.gets.push_back(c[++i]);
    } else {
      return syntax_error;
    }
  }
  const bool in_cluster = (api::GetContextFlags(c.context) & api::is_cluster) != 0;
  if (in_cluster && a.has_by && a.is_sorted) return "ERR BY option of SORT denied in cluster mode.";
  if (in_cluster && std::ranges::any_of(a.gets, [](std::string_view g) { return g != "#"; }))
    return "ERR GET option of SORT denied in cluster mode.";
  return nullptr;
}

// Reads what patterns name, as far as the caller may.
class named_values {
 public:
  explicit named_values(const call& c) : call_(c), user_(c) {}

  // The string, or the field of a hash, that the pattern names with the element in it.
  std::optional<std::string> find(std::string_view pattern, std::string_view element) {
    if (pattern == "#") return std::string(element);
    const std::size_t star = pattern.find('*');
    if (star == pattern.npos) return std::nullopt;
    std::string_view rest = pattern.substr(star + 1), field;
    if (const std::size_t arrow = rest.find("->"); arrow != rest.npos && arrow + 2 < rest.size()) {
      field = rest.substr(arrow + 2);
      rest = rest.substr(0, arrow);
    }
    std::string name(pattern.substr(0, star));
    name.append(element).append(rest);
    const own_text text(name);
    if (!user_.may(text.get(), api::key_access)) {
      is_denied_ = true;
      return std::nullopt;
    }
    has_read_ = true;
    const open_key key(call_, text.get(), api::for_reading);
    if (field.empty())
      return look<stored_text>(key,
                               [](const stored_text& t) { return std::optional(t.value.str()); });
    return look<stored_hash>(key, [&](const stored_hash& hash) -> std::optional<std::string> {
      const auto at = hash.content.find(field);
      if (at == hash.content.end()) return std::nullopt;
      return at->second.str();
    });
  }
  bool is_denied() const noexcept { return is_denied_; }
  bool has_read() const noexcept { return has_read_; }

 private:
  const call& call_;
  const calling_user user_;
  bool is_denied_ = false, has_read_ = false;
};

struct sorted_element {
  std::string element;
  double score = 0;
  std::optional<std::string> text;
};

// As Redis: by scores or texts, and where those are equal, by the elements.
int compare(const sort_arguments& a, const sorted_element& x, const sorted_element& y) {
  const auto by_bytes = [](const std::string& s, const std::string& t) { return s.compare(t); };
  const auto by_language = [&](const std::string& s, const std::string& t) {
    return a.store != nullptr ? by_bytes(s, t) : std::strcoll(s.c_str(), t.c_str());
  };
  if (!a.by_text) {
    if (x.score != y.score) return x.score < y.score ? -1 : 1;
    return by_bytes(x.element, y.element);
  }
  if (!a.has_by) return by_language(x.element, y.element);
  if (x.text && y.text) return by_language(*x.text, *y.text);
  return static_cast<int>(x.text.has_value()) - static_cast<int>(y.text.has_value());
}

// False: answered with an error.
bool sort_elements(const call& c, const sort_arguments& a, named_values& named,
                   std::vector<sorted_element>& all) {
  for (sorted_element& e : all) {
    const auto by = a.has_by ? named.find(a.by, e.element) : std::optional(e.element);
    if (a.by_text) {
      e.text = by;
    } else if (by) {
      const auto score = sort_key_of(*by);
      if (!score) {
        answer refusal(c);
        refusal.rests_on_all();
        api::ReplyWithError(refusal.to(), "ERR One or more scores can't be converted into double");
        return false;
      }
      STELE_ASSERT(*score == *score);  // an order needs numbers
      e.score = *score;
    }
  }
  std::ranges::stable_sort(all, [&](const sorted_element& x, const sorted_element& y) {
    const int order = compare(a, x, y);
    return a.descends ? order > 0 : order < 0;
  });
  return true;
}

// The part that LIMIT asks for.
void cut(const sort_arguments& a, std::vector<sorted_element>& all) {
  const auto size = static_cast<long long>(all.size());
  const long long first = std::clamp(a.first, 0LL, size);
  const long long count = a.count < 0 ? size - first : std::min(a.count, size - first);
  STELE_ASSERT(count >= 0 && first + count <= size);
  all.erase(all.begin() + first + count, all.end());
  all.erase(all.begin(), all.begin() + first);
  STELE_ASSERT(static_cast<long long>(all.size()) == count);
}

using answers = std::vector<std::optional<std::string>>;

int store(const call& c, const sort_arguments& a, const answers& found) {
  STELE_ASSERT(a.store != nullptr && found.size() % a.gets.size() == 0);
  std::vector<element> elements;
  for (const auto& text : found) elements.emplace_back(text.value_or(""), std::string());
  return store_result(c, a.store, item_kind::list, elements, "SORT", "sortstore");
}

int run_sort(const call& c, bool may_store) {
  sort_arguments a;
  if (const char* const wrong = read_arguments(c, may_store, a))
    return api::ReplyWithError(c.context, wrong);
  std::vector<sorted_element> all;
  stored_item* source = nullptr;
  {
    const open_key key(c, c.text(1), api::for_reading);
    const bool sortable =
        key.is(item_kind::list) || key.is(item_kind::set) || key.is(item_kind::sorted_set);
    if (!sortable && is_wrong_kind(c, key, item_kind::list)) return api::ok;
    source = key.item();
    for (auto& [first, second] : elements_of(key)) all.push_back({std::move(first), 0, {}});
    // A set has no order of its own that a replica would have too.
    const bool in_script = (api::GetContextFlags(c.context) & api::in_script) != 0;
    if (key.is(item_kind::set) && !a.is_sorted && (a.store != nullptr || in_script))
      a.is_sorted = a.by_text = true, a.has_by = false;
    if (!a.is_sorted && a.descends && key.is(item_kind::sorted_set)) std::ranges::reverse(all);
  }
  named_values named(c);
  if (a.is_sorted && !sort_elements(c, a, named, all)) return api::ok;
  cut(a, all);
  answers found;
  if (a.gets.empty()) a.gets.emplace_back("#");
  for (const sorted_element& e : all)
    for (const std::string_view pattern : a.gets) found.push_back(named.find(pattern, e.element));
  STELE_ASSERT(found.size() == all.size() * a.gets.size());
  if (named.is_denied())
    return api::ReplyWithError(
        c.context, "ERR BY or GET option of SORT denied due to insufficient ACL permissions");
  if (a.store != nullptr) return store(c, a, found);
  answer given(c);
  given.rests_on(source);
  if (named.has_read()) given.rests_on_all();
  api::ReplyWithArray(given.to(), static_cast<long>(found.size()));
  for (const auto& text : found) reply_text_or_null(given.to(), text);
  return api::ok;
}

constexpr command commands[] = {
    {"sort", with<run_sort, true>, "write deny-oom getkeys-api", 0, 0, 0, 2, 0},
    {"sort_ro", with<run_sort, false>, "readonly", 1, 1, 1, 2, 0},
};

}  // namespace

constinit const std::span<const command> sort_commands(commands);

}  // namespace stele::redis
