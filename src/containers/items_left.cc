// Finds the records of a damaged key-value store. See items_left.h; format: docs/format/kv.md.
#include <base/check.h>
#include <containers/claimed_ranges.h>
#include <containers/items_left.h>
#include <fmt/format.h>
#include <format/kv_layout.h>
#include <stele/element.h>

#include <algorithm>
#include <array>

namespace stele::detail {

namespace {

using format::kv_record_header;

// Offsets in the root: docs/format/kv.md.
constexpr std::uint64_t hash_at = 8, segments_at = 16, tree_at = 336;

// How a record was found. In the low bits of its offset, which is a multiple of 8.
enum evidence : std::uint64_t { by_hash = 1, by_tree = 2, by_heap = 4, any_evidence = 7 };

class record_finder {
 public:
  explicit record_finder(const home_image& image) : image_(image) {}

  // Each record once: its offset, and the evidence for it.
  std::vector<std::uint64_t> find() {
    auto root = image_.root();
    if (!root || !format::is_known_kv_version(image_.word(*root).value_or(0))) {
      const auto found = find_root();
      if (found || !root)
        notes_.emplace_back(found ? "the link to its root is damaged; the root was found"
                                  : "its root cannot be read; the heap leads to the items");
      if (found) root = found;
    }
    hash_is_whole_ = root && walk_hash(*root);
    tree_is_whole_ = root && walk_tree(*root);
    if (root && !hash_is_whole_) notes_.emplace_back("its hash index is damaged");
    if (root && !tree_is_whole_) notes_.emplace_back("its ordered index is damaged");
    image_.for_each_used_block([&](std::uint64_t offset, std::size_t size) {
      if (is_record(offset, size)) found_.push_back(offset | by_heap);
    });
    std::ranges::sort(found_);
    std::vector<std::uint64_t> merged;
    for (const std::uint64_t f : found_)
      if (!merged.empty() && (merged.back() & ~any_evidence) == (f & ~any_evidence))
        merged.back() |= f & any_evidence;
      else
        merged.push_back(f);
    return merged;
  }
  bool counts(std::uint64_t evidence) const noexcept {
    const bool by_index = (evidence & (by_hash | by_tree)) != 0;
    if (by_index && image_.is_verified()) return true;
    if ((evidence & (by_hash | by_tree)) == (by_hash | by_tree)) return true;
    const bool no_index = !hash_is_whole_ && !tree_is_whole_;
    return (evidence & by_heap) != 0 && (by_index || no_index);
  }
  std::vector<std::string>& notes() noexcept { return notes_; }

 private:
  using bucket = std::array<std::uint64_t, format::kv_bucket_slots + 1>;

  // Where a reference leads that counts from `base`; 0: to no place of the heap.
  std::uint64_t resolve(std::uint64_t base, std::uint64_t reference) const {
    constexpr unsigned rest = 64 - format::kv_reference_bits;
    if ((reference & format::kv_reference_mask) == 0) return 0;
    const std::int64_t distance = (static_cast<std::int64_t>(reference << rest) >> rest) * 8;
    const std::uint64_t to = base + static_cast<std::uint64_t>(distance);
    return image_.has(to, 8) ? to : 0;
  }

  // A root that nothing leads to: both indexes are whole and have the same records, at least one.
  std::optional<std::uint64_t> find_root() const {
    constexpr std::uint64_t line = 64, root_bytes = 344;
    const std::uint64_t begin = image_.header().chunks_offset;
    unsigned tries = 100;  // of a pool that is hostile
    for (std::uint64_t at = begin; tries != 0 && image_.has(at, root_bytes); at += line) {
      const auto version = image_.word(at), buckets = image_.word(at + hash_at);
      if (!version || !format::is_known_kv_version(*version) || !buckets || *buckets == 0 ||
          *buckets % format::kv_first_buckets != 0)
        continue;
      --tries;
      record_finder hash(image_), tree(image_);
      if (!hash.walk_hash(at) || !tree.walk_tree(at) || hash.found_.empty()) continue;
      std::ranges::sort(hash.found_);
      std::ranges::sort(tree.found_);
      if (std::ranges::equal(
              hash.found_, tree.found_, {}, [](std::uint64_t f) { return f & ~any_evidence; },
              [](std::uint64_t f) { return f & ~any_evidence; }))
        return at;
    }
    return std::nullopt;
  }

  // Whether a used block has the form of a record. A node has not: as lengths, its header is those
  // of a larger record; nor has the root, which is larger than its first word would say.
  bool is_record(std::uint64_t offset, std::size_t size) const {
    const auto word = image_.word(offset);
    if (!word) return false;
    const auto h = kv_record_header::unpack(*word);
    if (std::uint32_t{h.key_bytes} - 1 >= format::kv_max_key_size ||
        h.value_bytes > format::kv_max_value_size)
      return false;
    const std::uint64_t wanted = h.allocated_size(),
                        chunk = std::uint64_t{1} << image_.header().chunk_shift;
    // In a small pool with few chunks a block may be larger by more than a quarter.
    return wanted <= size && (size - wanted <= wanted / 4 + 16 ||
                              (size > chunk / 16 && size - wanted <= wanted * 2 / 3) ||
                              (size % chunk == 0 && size - wanted < chunk));
  }

  // False: part of the index could not be read, or contradicts itself.
  bool walk_hash(std::uint64_t root) {
    const auto count = image_.word(root + hash_at);
    if (!count) return false;
    bool whole = true;
    for (std::uint64_t s = 0, begin = 0; s < format::kv_segments && begin < *count; ++s) {
      const std::uint64_t size = std::max<std::uint64_t>(format::kv_first_buckets, begin);
      const auto reference = image_.word(root + segments_at + 8 * s);
      const std::uint64_t at = reference ? resolve(root + hash_at, *reference) : 0;
      if (at == 0 || !image_.has(at, size * sizeof(bucket))) return false;
      const std::uint64_t used = std::min(size, *count - begin);
      for (std::uint64_t i = 0; i < used; ++i)
        whole = walk_chain(root + hash_at, at + i * sizeof(bucket)) && whole;
      begin += size;
    }
    return whole;
  }
  bool walk_chain(std::uint64_t base, std::uint64_t at) {
    bucket b;
    for (bool first = true;; first = false) {
      if (!first && !claims_.claim(at, sizeof b)) return false;
      if (!image_.load(at, b.data(), sizeof b)) return false;
      for (unsigned i = 0; i < format::kv_bucket_slots; ++i)
        if (b[i] != 0 && !add_by_hash(base, b[i])) return false;
      const std::uint64_t link = b[format::kv_bucket_slots];
      if ((link & format::kv_reference_mask) == 0) return true;
      at = resolve(base, link);
      if (at == 0) return false;
    }
  }
  // Without block checksums the tag shows a damaged slot.
  bool add_by_hash(std::uint64_t base, std::uint64_t slot) {
    const std::uint64_t at = resolve(base, slot);
    if (at == 0) return false;
    if (!image_.is_verified()) {
      std::string key;
      if (!load_key(at, key) || hash_bytes(key.data(), key.size()) >> format::kv_reference_bits !=
                                    slot >> format::kv_reference_bits)
        return false;
    }
    found_.push_back(at | by_hash);
    return true;
  }
  bool load_key(std::uint64_t at, std::string& key) const {
    const auto word = image_.word(at);
    const auto h = kv_record_header::unpack(word.value_or(0));
    if (!word || std::uint32_t{h.key_bytes} - 1 >= format::kv_max_key_size) return false;
    key.resize(h.key_bytes);
    return image_.load(at + 8, key.data(), key.size());
  }

  bool walk_tree(std::uint64_t root) {
    const std::uint64_t base = root + tree_at;
    const auto top = image_.word(base);
    if (!top) return false;
    bool whole = true;
    std::vector<std::uint64_t> pending = {*top};
    while (!pending.empty()) {
      const std::uint64_t reference = pending.back();
      pending.pop_back();
      if (reference == 0) continue;
      const std::uint64_t at = resolve(base, reference);
      if (at == 0)
        whole = false;
      else if ((reference & format::kv_record_bit) != 0)
        found_.push_back(at | by_tree);
      else
        whole = add_children(at, pending) && whole;
    }
    return whole;
  }
  bool add_children(std::uint64_t at, std::vector<std::uint64_t>& pending) {
    constexpr std::uint64_t own_record_at = 16, bytes_at = 24;
    constexpr std::uint8_t full_kind = 3;
    const auto word = image_.word(at), own = image_.word(at + own_record_at);
    const auto h = format::kv_node_header::unpack(word.value_or(0));
    if (!word || !own || h.kind > full_kind) return false;
    const auto kind = format::kv_node_kinds[h.kind];
    if (h.count > kind.children || !claims_.claim(at, kind.bytes())) return false;
    std::vector<std::uint64_t> children(h.kind == full_kind ? kind.children : h.count);
    pending.push_back(*own);
    if (!image_.load(at + bytes_at + 8 * std::uint64_t{kind.byte_words}, children.data(),
                     8 * children.size()))
      return false;
    pending.insert(pending.end(), children.begin(), children.end());
    return true;
  }

  const home_image& image_;
  bool hash_is_whole_ = false, tree_is_whole_ = false;
  claimed_ranges claims_;  // of overflow buckets and nodes
  std::vector<std::uint64_t> found_;
  std::vector<std::string> notes_;
};

// Loads a record. False: it is damaged; `key` is what can be read of its key, else empty.
bool load_record(const home_image& image, claimed_ranges& claims, std::uint64_t at,
                 std::string& key, std::string& value, std::uint64_t& bytes) {
  key.clear();
  bytes = 0;
  const auto word = image.word(at);
  if (!word) return false;
  const auto h = kv_record_header::unpack(*word);
  if (std::uint32_t{h.key_bytes} - 1 >= format::kv_max_key_size ||
      h.value_bytes > format::kv_max_value_size || !image.has(at, h.bytes()) ||
      !claims.claim(at, h.bytes()))
    return false;
  bytes = h.bytes();
  key.resize(kv_record_header::padded(h.key_bytes));
  if (!image.load(at + 8, key.data(), key.size())) return key.clear(), false;
  const auto is_padding = [](char c) { return c == 0; };
  const bool key_fits = std::all_of(key.begin() + h.key_bytes, key.end(), is_padding);
  key.resize(h.key_bytes);
  value.resize(kv_record_header::padded(h.value_bytes));
  if (!image.load(at + h.value_offset(), value.data(), value.size())) return false;
  const bool value_fits = std::all_of(value.begin() + h.value_bytes, value.end(), is_padding);
  value.resize(h.value_bytes);
  return key_fits && value_fits;
}

}  // namespace

result<content_left> for_each_item_left(const home_image& image, const item_left& each,
                                        const progress& report) {
  constexpr std::uint64_t report_interval = 4096;
  content_left left;
  record_finder finder(image);
  std::vector<std::uint64_t> records = finder.find();
  left.notes = std::move(finder.notes());
  // Records that only the heap has come first, so that an item with the same key replaces them.
  // Those that the heap does not have come last, because their lengths may be damaged.
  std::ranges::stable_sort(records, {}, [](std::uint64_t r) {
    return (r & any_evidence) == by_heap ? 0 : (r & by_heap) != 0 ? 1 : 2;
  });
  std::string key, value;
  claimed_ranges claims;  // two records that overlap are not both one
  std::uint64_t bytes = 0, done = 0;
  for (const std::uint64_t r : records) {
    if (report && done++ % report_interval == 0 && !report(done - 1, records.size()))
      return base::fail(errc::cancelled,
                        fmt::format("reading {} was stopped; nothing was changed", image.path()));
    const std::uint64_t at = r & ~std::uint64_t{any_evidence};
    const bool counts = finder.counts(r & any_evidence);
    if (!counts) continue;
    if (!load_record(image, claims, at, key, value, bytes)) {
      left.lost.push_back({key, at, bytes});
      continue;
    }
    ++left.count;
    left.bytes += key.size() + value.size();
    if (!each(key, value)) break;
  }
  return left;
}

}  // namespace stele::detail
