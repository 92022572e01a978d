// Walks a damaged document. See values_left.h; format: docs/format/document.md.
#include <base/assert.h>
#include <base/check.h>
#include <containers/claimed_ranges.h>
#include <containers/values_left.h>
#include <fmt/format.h>
#include <stele/detail/segment_sizes.h>

#include <array>

namespace stele::detail {

namespace {

// docs/format/document.md.
constexpr std::uint64_t list_bytes = sizeof(document_list), dict_bytes = sizeof(document_dict);
constexpr std::uint64_t value_bytes = sizeof(document_value);
constexpr std::uint64_t count_of_list = 8, sizes_of_list = 16, first_segment = 24, directory = 32;
constexpr std::uint64_t sizes_of_dict = 8, segments_of_dict = 16, dict_segments = 32,
                        count_of_dict = 272, first_of_dict = 280, last_of_dict = 288;
// From a node's key, where links to items lead.
constexpr std::int64_t node_of_item = -8;
constexpr std::uint64_t next_of_node = 0, key_of_node = 8, before_of_item = 16, after_of_item = 24,
                        value_of_item = 32, node_bytes = 56;
constexpr std::uint64_t in_block = 15, inline_capacity = document_value::inline_capacity;

// A value as it lies in the image. `container`: the offset of its list or dict.
struct value_read {
  scalar_copy scalar;
  std::uint64_t container = 0;
};

class value_reader {
 public:
  value_reader(const home_image& image, claimed_ranges& claims) : image_(image), claims_(claims) {}

  // The place that the link at `offset` leads to; 0: null, to no place of the heap, or unreadable.
  std::uint64_t link(std::uint64_t offset) const {
    const auto distance = image_.word(offset);
    if (!distance || *distance == 0) return 0;
    const std::uint64_t to = offset + *distance;
    return image_.has(to, 8) ? to : 0;
  }

  // Claims the block of a text: each value is read once.
  std::optional<value_read> read(std::uint64_t at) {
    std::array<std::uint64_t, 2> words;
    if (!image_.load(at, words.data(), sizeof words)) return std::nullopt;
    const auto kind = static_cast<value_kind>(words[0] & 15);
    if (kind > value_kind::dict) return std::nullopt;
    if (kind == value_kind::text || kind == value_kind::bytes) return read_chars(at, words, kind);
    if (words[0] > 15) return std::nullopt;
    value_read v{scalar_copy(kind, kind < value_kind::list ? words[1] : 0, {}), 0};
    if (kind < value_kind::list) return v;
    v.container = link(at + 8);
    return v.container != 0 ? std::optional(v) : std::nullopt;
  }

 private:
  std::optional<value_read> read_chars(std::uint64_t at, const std::array<std::uint64_t, 2>& words,
                                       value_kind kind) {
    const std::uint64_t length = words[0] >> 4 & 15;
    if (length != in_block) {
      STELE_ASSERT(length < sizeof words);
      const auto* const from = reinterpret_cast<const char*>(words.data()) + 1;
      return value_read{scalar_copy(kind, 0, std::string(from, length)), 0};
    }
    const std::uint64_t size = words[0] >> 8, block = link(at + 8);
    if (size <= inline_capacity || block == 0 || !image_.has(block, size) ||
        !claims_.claim(block, size))
      return std::nullopt;
    std::string chars(size, '\0');
    if (!image_.load(block, chars.data(), size)) return std::nullopt;
    return value_read{scalar_copy(kind, 0, std::move(chars)), 0};
  }

  const home_image& image_;
  claimed_ranges& claims_;
};

// A list or dict on the way of the walk. Of a dict, the offsets of its items; of a list, those of
// its segments.
struct level {
  value_kind kind = value_kind::dict;
  std::string name;  // as a part of a path
  std::uint64_t next = 0, count = 0;
  segment_sizes sizes{0};
  std::vector<std::uint64_t> places;
};

class document_reader {
 public:
  document_reader(const home_image& image, value_receiver& receiver)
      : image_(image), values_(image, claims_), receiver_(receiver) {}

  result<content_left> walk(const progress& report) {
    constexpr std::uint64_t report_interval = 4096;
    const auto root = image_.root();
    if (!root || !enter_dict(*root, ""))
      left_.lost.push_back({"the root", root.value_or(0), dict_bytes});
    for (std::uint64_t done = 0; !levels_.empty(); ++done) {
      if (report && done % report_interval == 0 && !report(done, done + 1))
        return base::fail(
            errc::cancelled,
            fmt::format("reading {} was stopped; nothing was changed", image_.path()));
      level& l = levels_.back();
      // What a dict counts are the items that were found; of a list segments may be missing.
      STELE_ASSERT(l.next <= l.count);
      STELE_ASSERT(l.kind == value_kind::list || l.count == l.places.size());
      const std::uint64_t i = l.next++;
      if (i >= l.count)
        leave();
      else if (l.kind == value_kind::dict)
        visit_item(l.places[i]);
      else
        visit_element(i);
    }
    return std::move(left_);
  }

 private:
  void lose(std::string_view part, std::uint64_t at, std::uint64_t bytes) {
    std::string path;
    for (const level& l : levels_) path += l.name;
    left_.lost.push_back({path.append(part), at, bytes});
  }
  static std::string name_of(const scalar_copy& key) {
    return key.kind() == value_kind::integer
               ? fmt::format("[{}]", static_cast<std::int64_t>(key.word()))
               : fmt::format("[\"{}\"]", key.chars());
  }

  void leave() {
    STELE_ASSERT(!levels_.empty());
    levels_.pop_back();
    if (!levels_.empty()) receiver_.leave();
  }

  void visit_item(std::uint64_t item) {
    const auto key = values_.read(item);
    const bool is_key = key && (key->scalar.kind() == value_kind::text ||
                                key->scalar.kind() == value_kind::integer);
    if (!is_key) return lose("[?]", item, node_bytes);
    visit(key->scalar, item + value_of_item, name_of(key->scalar));
  }
  void visit_element(std::uint64_t i) {
    const level& l = levels_.back();
    const std::size_t segment = l.sizes.segment_of(i);
    STELE_ASSERT(segment < l.places.size() && i >= l.sizes.start_of(segment));
    const std::uint64_t begin = l.places[segment];
    visit({}, begin == 0 ? 0 : begin + value_bytes * (i - l.sizes.start_of(segment)),
          fmt::format("[{}]", i));
  }
  void visit(const scalar_copy& key, std::uint64_t at, const std::string& name) {
    const auto value = at != 0 ? values_.read(at) : std::nullopt;
    if (value && value->container == 0) {
      ++left_.count;
      left_.bytes += value_bytes + value->scalar.chars().size() + key.chars().size();
      return receiver_.scalar(key, value->scalar);
    }
    STELE_ASSERT(!value || value->scalar.kind() >= value_kind::list);
    const value_kind parent = levels_.back().kind;
    if (value && (value->scalar.kind() == value_kind::dict ? enter_dict(value->container, name)
                                                           : enter_list(value->container, name))) {
      ++left_.count;
      return receiver_.enter(key, value->scalar.kind());
    }
    lose(name, at, value_bytes);
    if (parent == value_kind::list) receiver_.scalar(key, {});
  }

  // False: there is no dict that the walk has not entered yet.
  bool enter_dict(std::uint64_t at, const std::string& name) {
    if (!image_.has(at, dict_bytes) || !claims_.claim(at, dict_bytes)) return false;
    level l{.kind = value_kind::dict, .name = name, .sizes = segment_sizes{0}, .places = {}};
    const bool forward = follow(values_.link(at + first_of_dict), after_of_item, l.places);
    if (!forward) {
      std::vector<std::uint64_t> behind;
      (void)follow(values_.link(at + last_of_dict), before_of_item, behind);
      add_from_index(at, l.places);
      l.places.insert(l.places.end(), behind.rbegin(), behind.rend());
    }
    l.count = l.places.size();
    levels_.push_back(std::move(l));
    const auto count = image_.word(at + count_of_dict);
    if (!count || *count != levels_.back().count)
      lose(count && *count > levels_.back().count
               ? fmt::format(": {} items", *count - levels_.back().count)
               : ": its number of items",
           at, dict_bytes);
    return true;
  }
  // Adds the items that the links lead to. False: the order ends early.
  bool follow(std::uint64_t item, std::uint64_t link_at, std::vector<std::uint64_t>& items) {
    while (item != 0) {
      if (!claim_item(item)) return false;
      items.push_back(item);
      const auto link = image_.word(item + link_at);
      if (!link) return false;
      if (*link == 0) return true;
      item = values_.link(item + link_at);
    }
    return false;
  }
  bool claim_item(std::uint64_t item) {
    const std::uint64_t node = item + static_cast<std::uint64_t>(node_of_item);
    return image_.has(node, node_bytes) && claims_.claim(node, node_bytes);
  }
  // Adds the items that only the dict's index leads to.
  void add_from_index(std::uint64_t at, std::vector<std::uint64_t>& items) {
    constexpr std::uint64_t distance_bits = 0x0000'FFFF'FFFF'FFF8;
    const segment_sizes sizes{image_.word(at + sizes_of_dict).value_or(0)};
    if (sizes.empty() || !sizes.valid(dict_segments)) return;
    for (std::uint64_t i = 0; i < sizes.slots(); ++i) {
      const std::size_t segment = sizes.segment_of(i);
      const std::uint64_t begin = values_.link(at + segments_of_dict + 8 * segment),
                          bucket = begin + 8 * (i - sizes.start_of(segment));
      if (begin == 0 || !image_.has(begin, 8 * sizes.size_of(segment))) return;
      const std::uint64_t word = image_.word(bucket).value_or(0);
      const std::int64_t distance = static_cast<std::int64_t>((word & distance_bits) << 16) >> 16;
      std::uint64_t node = distance == 0 ? 0 : bucket + static_cast<std::uint64_t>(distance);
      // A node that the order has led to is claimed; the chain goes on behind it.
      for (std::uint64_t steps = 0; node != 0 && steps < (word >> 48); ++steps) {
        if (!image_.has(node, node_bytes)) break;
        if (claim_item(node + key_of_node)) items.push_back(node + key_of_node);
        node = values_.link(node + next_of_node);
      }
    }
  }

  bool enter_list(std::uint64_t at, const std::string& name) {
    if (!image_.has(at, list_bytes) || !claims_.claim(at, list_bytes)) return false;
    const auto count = image_.word(at + count_of_list), sizes = image_.word(at + sizes_of_list);
    if (!count || !sizes) return false;
    level l{.kind = value_kind::list,
            .name = name,
            .count = *count,
            .sizes = segment_sizes{*sizes},
            .places = {}};
    if (*count != 0 &&
        (l.sizes.empty() || !l.sizes.valid(max_segments) || *count > l.sizes.slots()))
      return false;
    const std::uint64_t later = values_.link(at + directory);
    for (std::size_t s = 0; *count != 0 && s < l.sizes.segment_count(); ++s) {
      std::uint64_t place = values_.link(s == 0 ? at + first_segment : later + 8 * (s - 1));
      if (s != 0 && later == 0) place = 0;
      const std::uint64_t bytes = value_bytes * l.sizes.size_of(s);
      if (place != 0 && (!image_.has(place, bytes) || !claims_.claim(place, bytes))) place = 0;
      l.places.push_back(place);
      // Nothing behind it can be read: its values are lost together.
      if (place == 0 && l.count > l.sizes.start_of(s)) {
        l.count = l.sizes.start_of(s);
        levels_.push_back(l);
        lose(fmt::format(": {} values from [{}] on", *count - l.count, l.count), at, bytes);
        levels_.pop_back();
        break;
      }
    }
    levels_.push_back(std::move(l));
    return true;
  }

  static constexpr std::size_t max_segments = 64;

  const home_image& image_;
  claimed_ranges claims_;  // of lists, dicts, items, segments, texts
  value_reader values_;
  value_receiver& receiver_;
  std::vector<level> levels_;
  content_left left_;
};

}  // namespace

result<content_left> for_each_value_left(const home_image& image, value_receiver& receiver,
                                         const progress& report) {
  return document_reader(image, receiver).walk(report);
}

}  // namespace stele::detail
