// Finds the records of a damaged key-value store. See items_left.h; format: docs/format/kv.md.
#include <base/assert.h>
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

constexpr std::uint64_t expiry_at = 320, stores_at = 328, root_bytes = 344;

// Whether a used block has the form of a record. A node has not: as lengths, its header is those of
// a larger record; nor has the root, which is larger than its first word would say.
bool is_record(const home_image& image, std::uint64_t offset, std::size_t size) {
  const auto word = image.word(offset);
  if (!word) return false;
  const auto h = kv_record_header::unpack(*word);
  if (std::uint32_t{h.key_bytes} - 1 >= format::kv_max_key_size ||
      h.value_bytes > format::kv_max_value_size)
    return false;
  const std::uint64_t wanted = h.allocated_size(),
                      chunk = std::uint64_t{1} << image.header().chunk_shift;
  // In a small pool with few chunks a block may be larger by more than a quarter.
  return wanted <= size && (size - wanted <= wanted / 4 + 16 ||
                            (size > chunk / 16 && size - wanted <= wanted * 2 / 3) ||
                            (size % chunk == 0 && size - wanted < chunk));
}

// Signed, in bytes.
std::uint64_t distance_of(std::uint64_t reference) {
  constexpr unsigned rest = 64 - format::kv_reference_bits;
  return static_cast<std::uint64_t>((static_cast<std::int64_t>(reference << rest) >> rest) * 8);
}

// The records that one store's indexes lead to.
class index_walk {
 public:
  // `claims`: of the buckets and nodes of all stores.
  index_walk(const home_image& image, claimed_ranges& claims) : image_(image), claims_(claims) {}

  // False: part of the index could not be read, or contradicts itself.
  bool walk_hash(std::uint64_t root) {
    const auto count = image_.word(root + hash_at);
    if (!count) return false;
    bool whole = true;
    for (std::uint64_t s = 0, begin = 0; s < format::kv_segments && begin < *count; ++s) {
      const std::uint64_t size = std::max<std::uint64_t>(format::kv_first_buckets, begin);
      const auto reference = image_.word(root + segments_at + 8 * s);
      const std::uint64_t at = reference ? resolve(root + hash_at, *reference) : 0;
      const std::uint64_t used = std::min(size, *count - begin);
      STELE_ASSERT(used != 0 && used <= size);
      if (at == 0 || !image_.has(at, size * sizeof(bucket)) ||
          !claims_.claim(at, used * sizeof(bucket)))
        return false;
      for (std::uint64_t i = 0; i < used; ++i)
        whole = walk_chain(root + hash_at, at + i * sizeof(bucket)) && whole;
      begin += size;
    }
    return whole;
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
  // Each record once: its offset, and the evidence for it.
  std::vector<std::uint64_t> take_found() {
    std::ranges::sort(found_);
    std::vector<std::uint64_t> merged;
    for (const std::uint64_t f : found_)
      if (!merged.empty() && (merged.back() & ~any_evidence) == (f & ~any_evidence))
        merged.back() |= f & any_evidence;
      else
        merged.push_back(f);
    STELE_ASSERT_WHOLE(std::ranges::adjacent_find(merged, [](std::uint64_t a, std::uint64_t b) {
                         return (a & ~any_evidence) >= (b & ~any_evidence);
                       }) == merged.end());
    return merged;
  }

  // Where a reference leads that counts from `base`; 0: to no place of the heap.
  std::uint64_t resolve(std::uint64_t base, std::uint64_t reference) const {
    if ((reference & format::kv_reference_mask) == 0) return 0;
    const std::uint64_t to = base + distance_of(reference);
    return image_.has(to, 8) ? to : 0;
  }

 private:
  using bucket = std::array<std::uint64_t, format::kv_bucket_slots + 1>;

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
    STELE_ASSERT(children.size() <= kind.children);
    if (!image_.load(at + bytes_at + 8 * std::uint64_t{kind.byte_words}, children.data(),
                     8 * children.size()))
      return false;
    pending.insert(pending.end(), children.begin(), children.end());
    return true;
  }

  const home_image& image_;
  claimed_ranges& claims_;
  std::vector<std::uint64_t> found_;
};

struct loaded_record {
  std::string key, value;
  std::uint64_t expires_ms = 0, bytes = 0;
};

// False: it is damaged; `to.key` is what can be read of its key, else empty.
bool load_record(const home_image& image, claimed_ranges& claims, std::uint64_t at,
                 loaded_record& to) {
  auto& [key, value, expires, bytes] = to;
  key.clear();
  expires = bytes = 0;
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
  if (h.expires != 0) {
    const auto time = image.word(at + h.expiry_offset());
    if (!time || *time == 0) return false;
    expires = *time;
  }
  STELE_ASSERT(key.size() == h.key_bytes && value.size() == h.value_bytes);
  return key_fits && value_fits;
}

// A store's name in a note, which is text.
std::string in_note(const std::string& name) {
  const bool is_text = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
  return is_text ? "'" + name + "'" : "with a name of " + std::to_string(name.size()) + " bytes";
}

// What was found of one store.
struct store_left {
  std::string name;
  bool hash_is_whole = false, tree_is_whole = false;
  std::vector<std::uint64_t> records;  // offsets, with the evidence

  bool is_whole() const noexcept { return hash_is_whole && tree_is_whole; }
  bool counts(std::uint64_t evidence, bool verified) const noexcept {
    STELE_ASSERT(evidence != 0 && (evidence & ~std::uint64_t{any_evidence}) == 0);
    const bool by_index = (evidence & (by_hash | by_tree)) != 0;
    if (by_index && verified) return true;
    if ((evidence & (by_hash | by_tree)) == (by_hash | by_tree)) return true;
    const bool no_index = !hash_is_whole && !tree_is_whole;
    return (evidence & by_heap) != 0 && (by_index || no_index);
  }
};

class record_finder {
 public:
  explicit record_finder(const home_image& image) : image_(image) {}

  // The store without a name first.
  std::vector<store_left> find() {
    STELE_ASSERT_ALWAYS(stores_.empty() && internal_.empty());  // once
    auto root = image_.root();
    bool has_catalog = true;
    std::vector<store_found> others;
    if (!root || !format::is_known_kv_version(image_.word(*root).value_or(0))) {
      others = scan();
      const auto found = root_among(others);
      if (found || !root)
        notes_.emplace_back(found ? "the link to its root is damaged; the root was found"
                                  : "its root cannot be read; the heap leads to the items");
      has_catalog = found.has_value();
      if (found) root = found;
    }
    stores_.push_back(root ? read_indexes(*root) : store_left());
    if (root) {
      if (!stores_.front().hash_is_whole) notes_.emplace_back("its hash index is damaged");
      if (!stores_.front().tree_is_whole) notes_.emplace_back("its ordered index is damaged");
      if (image_.word(*root) != format::kv_first_version) has_catalog = read_named(*root);
    }
    if (!has_catalog) read_catalog_among(others.empty() ? scan() : others);
    add_evidence_of_heap();
    return std::move(stores_);
  }
  std::vector<std::string>& notes() noexcept { return notes_; }

 private:
  // A store that nothing may lead to: both indexes are whole and have the same records, at least
  // one. It may be a catalog or an expiry index, whose version is 0 or the mark.
  struct store_found {
    std::uint64_t at;
    std::vector<std::uint64_t> records;
  };
  std::vector<store_found> scan() const {
    std::vector<store_found> all;
    constexpr std::size_t most = 64;
    unsigned tries = 200;  // of a pool that is hostile
    for (std::uint64_t at = image_.header().chunks_offset;
         tries != 0 && all.size() < most && image_.has(at, root_bytes); at += 8) {
      const auto version = image_.word(at);
      if (!version || (*version > format::kv_version && *version != format::kv_index_mark))
        continue;
      const auto buckets = image_.word(at + hash_at);
      if (!buckets || *buckets == 0 || *buckets % format::kv_first_buckets != 0) continue;
      --tries;
      claimed_ranges claims;
      index_walk hash(image_, claims), tree(image_, claims);
      if (!hash.walk_hash(at) || !tree.walk_tree(at)) continue;
      auto by_one = hash.take_found();
      const auto by_other = tree.take_found();
      const auto offset_of = [](std::uint64_t f) { return f & ~any_evidence; };
      if (!by_one.empty() && std::ranges::equal(by_one, by_other, {}, offset_of, offset_of))
        all.push_back({at, std::move(by_one)});
    }
    return all;
  }

  // Calls test(record) for the records of a store until it returns false. False: it has, or one
  // cannot be read.
  template <class Test>
  bool all_records(const store_found& of, Test&& test) const {
    claimed_ranges claims;
    loaded_record r;
    return std::ranges::all_of(of.records, [&](std::uint64_t found) {
      return load_record(image_, claims, found & ~any_evidence, r) && test(r);
    });
  }
  bool is_expiry_index(const store_found& s) const {
    return all_records(s, [](const loaded_record& r) {
      return r.key.size() == format::kv_expiry_key_bytes && r.value.empty();
    });
  }
  // Of a catalog the place from which its references count; 0: it is none. Every reference leads to
  // a store then, the first one to one that was found.
  std::uint64_t catalog_base(const store_found& s, const std::vector<store_found>& all) const {
    for (const store_found& first : all) {
      std::uint64_t base = 0;
      const bool fits = all_records(s, [&](const loaded_record& r) {
        std::uint64_t reference = 0;
        if (r.value.size() != sizeof reference || r.key.size() > format::kv_max_name_size)
          return false;
        std::memcpy(&reference, r.value.data(), sizeof reference);
        if (base == 0) base = first.at - distance_of(reference);
        const std::uint64_t at = base + distance_of(reference);
        return image_.has(base, 8) && image_.has(at, root_bytes) &&
               format::is_known_kv_version(image_.word(at).value_or(0));
      });
      if (fits && base != 0) return base;
    }
    return 0;
  }

  // The root of the pool is the store that has a catalog; without a catalog the only store.
  std::optional<std::uint64_t> root_among(const std::vector<store_found>& all) {
    std::vector<std::uint64_t> stores;
    bool has_catalog = false;
    for (const store_found& s : all) {
      const auto catalog = store_at(s.at + stores_at, image_.word(s.at + stores_at));
      if (catalog && *catalog != 0) return s.at;
      has_catalog = has_catalog || catalog_base(s, all) != 0;
      if (format::is_known_kv_version(image_.word(s.at).value_or(0)) && !is_expiry_index(s))
        stores.push_back(s.at);
    }
    return stores.size() == 1 && !has_catalog ? std::optional(stores.front()) : std::nullopt;
  }
  // Where no root leads to a catalog.
  void read_catalog_among(const std::vector<store_found>& all) {
    bool found = false;
    for (const store_found& s : all) {
      if (is_expiry_index(s))
        for (const std::uint64_t r : s.records) internal_.push_back(r & ~any_evidence);
      if (const std::uint64_t base = catalog_base(s, all); base != 0) {
        notes_.emplace_back("the link to its named stores is damaged; their catalog was found");
        read_catalog(base, s.at);
        found = true;
      }
    }
    if (!found)
      notes_.emplace_back("no catalog of named stores was found; if it had some, they are missing");
  }

  store_left read_indexes(std::uint64_t root) {
    index_walk walk(image_, claims_);
    store_left left;
    left.hash_is_whole = walk.walk_hash(root);
    left.tree_is_whole = walk.walk_tree(root);
    left.records = walk.take_found();
    return left;
  }
  // Where the word at root + `field` leads, to a store; nullopt: it is damaged; 0: there is none.
  std::optional<std::uint64_t> store_at(std::uint64_t base, std::optional<std::uint64_t> word) {
    if (!word) return std::nullopt;
    if (*word == 0) return 0;
    const std::uint64_t at = index_walk(image_, claims_).resolve(base, *word);
    return at != 0 && image_.has(at, root_bytes) ? std::optional(at) : std::nullopt;
  }
  void add_internal(const store_left& of) {
    for (const std::uint64_t r : of.records) internal_.push_back(r & ~any_evidence);
  }
  // The records of the index at `root` + expiry_at are no items.
  void read_expiry_index(std::uint64_t root) {
    const std::uint64_t base = root + expiry_at;
    if (const auto at = store_at(base, image_.word(base)); at && *at != 0)
      add_internal(read_indexes(*at));
  }

  // False: its catalog cannot be found.
  bool read_named(std::uint64_t root) {
    read_expiry_index(root);
    const std::uint64_t base = root + stores_at;
    const auto at = store_at(base, image_.word(base));
    if (at && *at != 0) read_catalog(base, *at);
    return at.has_value();
  }
  // `base`: from where the references of the catalog count.
  void read_catalog(std::uint64_t base, std::uint64_t at) {
    const store_left catalog = read_indexes(at);
    bool whole = catalog.is_whole();
    add_internal(catalog);
    claimed_ranges claims;
    loaded_record r;
    for (const std::uint64_t found : catalog.records) {
      std::uint64_t reference = 0;
      if (!catalog.counts(found & any_evidence, image_.is_verified()) ||
          !load_record(image_, claims, found & ~any_evidence, r) ||
          r.value.size() != sizeof reference) {
        whole = false;
        continue;
      }
      std::memcpy(&reference, r.value.data(), sizeof reference);
      const auto named = store_at(base, reference);
      if (!named || *named == 0) {
        notes_.push_back(fmt::format("the link to the store {} is damaged", in_note(r.key)));
        continue;
      }
      add_named(*named, r.key);
    }
    if (!whole)
      notes_.emplace_back("its catalog of named stores is damaged; stores may be missing");
  }
  void add_named(std::uint64_t root, const std::string& name) {
    store_left left = read_indexes(root);
    read_expiry_index(root);
    if (name.starts_with('\0')) return add_internal(left);  // it has been dropped
    if (name.size() > format::kv_max_name_size || name.find('\0') != name.npos) {
      notes_.push_back(fmt::format("a named store at offset {} has a damaged name", root));
      return add_internal(left);
    }
    left.name = name;
    if (!left.is_whole())
      notes_.push_back(fmt::format("an index of the store {} is damaged", in_note(name)));
    stores_.push_back(std::move(left));
  }

  void add_evidence_of_heap() {
    std::vector<std::uint64_t> blocks;
    image_.for_each_used_block([&](std::uint64_t offset, std::size_t size) {
      if (is_record(image_, offset, size)) blocks.push_back(offset);
    });
    std::ranges::sort(blocks);
    STELE_ASSERT(!stores_.empty() && stores_.front().name.empty());  // the one without a name
    std::vector<std::uint64_t> known = std::move(internal_);
    for (store_left& s : stores_)
      for (std::uint64_t& r : s.records) {
        known.push_back(r & ~any_evidence);
        if (std::ranges::binary_search(blocks, known.back())) r |= by_heap;
      }
    std::ranges::sort(known);
    for (const std::uint64_t b : blocks)
      if (!std::ranges::binary_search(known, b)) stores_.front().records.push_back(b | by_heap);
    std::ranges::sort(stores_.front().records);
  }

  const home_image& image_;
  claimed_ranges claims_;  // of buckets and nodes
  std::vector<store_left> stores_;
  std::vector<std::uint64_t> internal_;  // records that are no items
  std::vector<std::string> notes_;
};

}  // namespace

result<content_left> for_each_item_left(const home_image& image, const item_left& each,
                                        const progress& report) {
  constexpr std::uint64_t report_interval = 4096;
  content_left left;
  record_finder finder(image);
  std::vector<store_left> stores = finder.find();
  left.notes = std::move(finder.notes());
  std::uint64_t total = 0, done = 0;
  for (const store_left& s : stores) {
    total += s.records.size();
    if (!s.name.empty()) left.stores.push_back(s.name);
  }
  loaded_record r;
  claimed_ranges claims;  // two records that overlap are not both one
  for (store_left& s : stores) {
    // Records that only the heap has come first, so that an item with the same key replaces them.
    // Those that the heap does not have come last, because their lengths may be damaged.
    std::ranges::stable_sort(s.records, {}, [](std::uint64_t f) {
      return (f & any_evidence) == by_heap ? 0 : (f & by_heap) != 0 ? 1 : 2;
    });
    for (const std::uint64_t f : s.records) {
      if (report && done++ % report_interval == 0 && !report(done - 1, total))
        return base::fail(errc::cancelled,
                          fmt::format("reading {} was stopped; nothing was changed", image.path()));
      if (!s.counts(f & any_evidence, image.is_verified())) continue;
      const std::uint64_t at = f & ~std::uint64_t{any_evidence};
      if (!load_record(image, claims, at, r)) {
        left.lost.push_back({s.name.empty() ? r.key : s.name + ": " + r.key, at, r.bytes});
        continue;
      }
      ++left.count;
      STELE_ASSERT(left.count + left.lost.size() <= total);
      left.bytes += r.key.size() + r.value.size();
      if (!each({s.name, r.key, r.value, r.expires_ms})) return left;
    }
  }
  return left;
}

}  // namespace stele::detail
