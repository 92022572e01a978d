// Copies stores and documents into new pools. See content_copy.h.
#include <base/assert.h>
#include <base/check.h>
#include <containers/content_copy.h>
#include <containers/kv_clock.h>
#include <containers/kv_limits.h>
#include <containers/values_left.h>
#include <fmt/format.h>
#include <format/kv_layout.h>
#include <stele/kv.h>
#include <tx/new_pool.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace stele::detail {

using base::fail;

namespace {

// What the allocated blocks of the source take.
struct need {
  std::uint64_t bytes = 0;
  std::set<std::size_t> sizes;  // of blocks: each may leave a chunk half empty
};

need need_of(const home_image& image) {
  need n;
  image.for_each_used_block([&](std::uint64_t, std::size_t size) {
    n.bytes += size;
    n.sizes.insert(size);
  });
  return n;
}

// The first size to try. Free chunks at the end are cut off later, so too much is no harm.
std::uint64_t size_for(const need& n, const format::pool_header& h, const copy_options& o) {
  constexpr std::uint64_t least = std::uint64_t{64} << 10, page = 4096;
  std::uint64_t size = n.bytes + n.bytes / 4;
  const std::uint64_t chunk = size >= (40u << 20) ? 65536 : size >= (2u << 20) ? 16384 : 4096;
  size += (n.sizes.size() + 8) * chunk;
  if (h.home == format::home_kind::log) size += size / 2;
  if (h.parity_block_size != 0) size += size / 2;
  if (h.checkpoint_commits != 0) size *= 2;
  // Logs chosen by pool size take an eighth of it.
  size += o.log_size != 0 ? o.log_size * std::max<std::uint64_t>(o.log_count, 16) : size / 6;
  return std::max(least, (size + page - 1) / page * page);
}

storage::pool_geometry geometry_of(const home_image& image, const copy_options& o,
                                   std::uint64_t size) {
  const auto& h = image.header();
  const bool in_place = h.home == format::home_kind::in_place;
  return {.size = size,
          .log_size = in_place ? o.log_size : 0,
          .log_count = o.log_count,
          .layout = image.layout(),
          .home = h.home,
          .parity_block_size = h.parity_block_size,
          .checkpoint_commits = h.checkpoint_commits,
          .sums = h.block_checksums_offset != 0};
}

std::unexpected<error> differs(const std::string& path) {
  return fail(errc::corrupt,
              fmt::format("the copy of {} is not what was read of it; nothing is left of the copy. "
                          "See that the memory of this machine is sound",
                          path));
}

// The stores of a copy by name, made when they are first needed.
class stores_of_copy {
 public:
  explicit stores_of_copy(kv& unnamed) : unnamed_(unnamed) {}
  result<kv*> get(std::string_view name) {
    if (name.empty()) return &unnamed_;
    const auto known = named_.find(name);
    if (known != named_.end()) return &known->second;
    auto made = unnamed_.open_store(name);
    if (!made) return std::unexpected(made.error());
    return &named_.emplace(std::string(name), std::move(*made)).first->second;
  }

 private:
  kv& unnamed_;
  std::map<std::string, kv, std::less<>> named_;
};

bool has_expired(const found_item& item) {
  return item.expires_ms != 0 && item.expires_ms <= kv_now();
}

std::optional<kv_time> expiry_of(std::uint64_t ms) {
  return ms == 0 ? std::nullopt : std::optional(kv_time_of_expiry(ms));
}
result<> put_with_expiry(kv& to, const kv_pair& item, const std::optional<kv_time>& expiry) {
  return expiry ? to.put_until(item.key, item.value, *expiry) : to.put(item.key, item.value);
}

bool has_item(const kv& store, const kv_pair& item, const std::optional<kv_time>& expiry) {
  const auto same = store.read([&](const kv::view& v) {
    return v.get(item.key) == item.value && v.expiry(item.key) == expiry;
  });
  return same && *same;
}

// Of keys with two records the copy has one, which may be either. Items may expire meanwhile.
result<> compare_items(const home_image& from, stores_of_copy& stores, const content_left& left,
                       std::uint64_t twice) {
  bool same = true;
  std::uint64_t expired_now = 0, count = 0;
  const auto again = for_each_item_left(from, [&](const found_item& item) {
    const auto in = stores.get(item.store);
    const bool has =
        in && (twice != 0 ? (*in)->contains(item.key).value_or(false)
                          : has_item(**in, {item.key, item.value}, expiry_of(item.expires_ms)));
    if (has_expired(item)) return ++expired_now, true;
    return same = has;
  });
  for (std::size_t i = 0; i <= left.stores.size(); ++i) {
    const auto in = stores.get(i == 0 ? "" : left.stores[i - 1]);
    count += in ? (*in)->size().value_or(0) : 0;
  }
  const bool complete = count <= left.count && count + expired_now - left.expired >= left.count;
  return again && same && complete ? result<>() : differs(from.path());
}

// Puts every item of the source, and compares. Items that have expired are left out.
result<content_left> copy_items(const home_image& from, kv& to, const progress& report) {
  stores_of_copy stores(to);
  result<> outcome;
  std::uint64_t twice = 0, expired = 0;
  auto left = for_each_item_left(
      from,
      [&](const found_item& item) {
        if (has_expired(item)) return ++expired, true;
        const auto in = stores.get(item.store);
        if (!in) return outcome = std::unexpected(in.error()), false;
        twice += (*in)->contains(item.key).value_or(false);
        outcome = put_with_expiry(**in, {item.key, item.value}, expiry_of(item.expires_ms));
        return outcome.has_value();
      },
      report);
  if (!outcome) return std::unexpected(outcome.error());
  if (!left) return left;
  for (const std::string& name : left->stores)
    if (const auto made = stores.get(name); !made) return std::unexpected(made.error());
  STELE_ASSERT_ALWAYS(twice + expired <= left->count);  // each of them is one of the items read
  left->count -= twice + expired;
  left->expired = expired;
  if (twice != 0) left->notes.push_back(fmt::format("{} keys had two records", twice));
  if (auto same = compare_items(from, stores, *left, twice); !same)
    return std::unexpected(same.error());
  return left;
}

// The list or dict of the copy that the walk of the source is in.
struct place {
  document_dict* dict = nullptr;
  document_list* list = nullptr;
  std::size_t next = 0;  // of a list: the index of the next value
};
place place_of(document_value& v) {
  return v.kind() == value_kind::list ? place{.list = &v.list()} : place{.dict = &v.dict()};
}

class document_writer final : public value_receiver {
 public:
  explicit document_writer(pool<document_dict>& to) : to_(to) {
    outcome_ = to_.read(
        [&](const document_dict& d) { at_.push_back({.dict = const_cast<document_dict*>(&d)}); });
  }
  void scalar(const scalar_copy& key, const scalar_copy& value) override {
    change(key, [&](document_value& v) { v = value; });
  }
  void enter(const scalar_copy& key, value_kind kind) override {
    place inside;
    change(key, [&](document_value& v) {
      kind == value_kind::list ? void(v.make_list()) : void(v.make_dict());
      inside = place_of(v);
    });
    at_.push_back(inside);
  }
  void leave() override {
    STELE_ASSERT_ALWAYS(!at_.empty());  // one for each enter()
    at_.pop_back();
  }
  const result<>& outcome() const noexcept { return outcome_; }

 private:
  // After an error the rest of the walk changes nothing.
  template <class Change>
  void change(const scalar_copy& key, Change&& body) {
    if (!outcome_) return;
    outcome_ = to_.update([&](document_dict&) {
      const place& p = at_.back();
      STELE_ASSERT((p.dict != nullptr) != (p.list != nullptr));
      body(p.dict != nullptr ? (*p.dict)[key] : p.list->append({}));
    });
  }

  pool<document_dict>& to_;
  std::vector<place> at_;
  result<> outcome_;
};

class document_comparer final : public value_receiver {
 public:
  explicit document_comparer(const document_dict& to) {
    at_.push_back({.dict = const_cast<document_dict*>(&to)});
  }
  void scalar(const scalar_copy& key, const scalar_copy& value) override {
    const document_value* const v = next(key);
    same_ = same_ && v != nullptr && v->load() == value;
  }
  void enter(const scalar_copy& key, value_kind kind) override {
    document_value* const v = next(key);
    same_ = same_ && v != nullptr && v->kind() == kind;
    at_.push_back(same_ ? place_of(*v) : place{});
  }
  void leave() override {
    STELE_ASSERT_ALWAYS(at_.size() > 1);  // the root stays
    at_.pop_back();
  }
  bool same() const noexcept { return same_; }

 private:
  document_value* next(const scalar_copy& key) {
    place& p = at_.back();
    if (!same_) return nullptr;
    STELE_ASSERT((p.dict != nullptr) != (p.list != nullptr));
    if (p.dict != nullptr) return p.dict->find(key);
    return p.next < p.list->size() ? &p.list->at(p.next++) : nullptr;
  }
  std::vector<place> at_;
  bool same_ = true;
};

result<content_left> copy_values(const home_image& from, pool<document_dict>& to,
                                 const progress& report) {
  document_writer writer(to);
  auto left = for_each_value_left(from, writer, report);
  if (!writer.outcome()) return std::unexpected(writer.outcome().error());
  if (!left) return left;
  const auto same = to.read([&](const document_dict& d) {
    document_comparer comparer(d);
    const auto again = for_each_value_left(from, comparer);
    return again && comparer.same();
  });
  if (!same || !*same) return differs(from.path());
  return left;
}

// Fills the runtime's pool and closes it.
result<content_left> fill(const home_image& from, std::unique_ptr<runtime> to,
                          const progress& report) {
  STELE_ASSERT_ALWAYS(is_copied_layout(from.layout()));
  const bool is_store = from.layout() == kv::layout;
  auto handle =
      pool_handle::from_runtime(std::move(to), is_store ? kv::root_size() : sizeof(document_dict));
  if (!handle) return std::unexpected(handle.error());
  result<content_left> left;
  result<> closed;
  if (is_store) {
    auto store = kv::from_handle(std::move(*handle));
    if (!store) return std::unexpected(store.error());
    left = copy_items(from, *store, report);
    closed = store->close();
  } else {
    pool<document_dict> p(std::move(*handle));
    left = copy_values(from, p, report);
    closed = p.close();
  }
  if (left && !closed) return std::unexpected(closed.error());
  return left;
}

// What is wrong with a source that has to be whole; empty: nothing.
std::string damage_of(const content_left& left) {
  if (!left.notes.empty()) return left.notes.front();
  if (left.lost.empty()) return "";
  const auto& first = left.lost.front();
  return fmt::format("{} parts of its content cannot be read, the first at offset {}",
                     left.lost.size(), first.offset);
}

result<> refuse_damaged(const home_image& image, const content_left& left) {
  const std::string damage = damage_of(left);
  if (damage.empty() && image.damaged_ranges().empty()) return {};
  return fail(
      errc::corrupt,
      fmt::format(
          "{} is damaged: {}; `stele pool check --salvage FILE {}` writes what is left of it",
          image.path(), damage.empty() ? "block checksums do not match" : damage, image.path()));
}

// The version of its key-value store; 0: it is no store, or its version cannot be read.
std::uint64_t store_version(const home_image& image) {
  const auto root = image.root();
  return image.layout() == kv::layout && root ? image.word(*root).value_or(0) : 0;
}

// The indexes of a later version may have another form. A damaged version is no reason to lose what
// can be read.
result<> check_version(const home_image& image, const copy_options& options) {
  const std::uint64_t version = store_version(image);
  if (options.allow_losses || version <= format::kv_version) return {};
  return fail(errc::version, fmt::format("{}: its key-value store is of version {}, this program "
                                         "knows {}; use the matching release",
                                         image.path(), version, format::kv_version));
}

}  // namespace

bool is_copied_layout(const std::string& layout) noexcept {
  return layout == kv::layout || layout == document_layout;
}

result<copied_content> copy_content(const std::string& from, const std::string& to,
                                    const copy_options& options, const progress& report) {
  constexpr std::uint64_t room = 16;  // one free chunk for so many that are in use
  std::vector<std::string> notes;
  const auto image = home_image::open(from, notes);
  if (!image) return std::unexpected(image.error());
  if (!is_copied_layout(image->layout()))
    return fail(errc::unsupported,
                fmt::format("{} has the layout '{}', whose types only its program knows: let that "
                            "program copy what it can read (verify = never) into a new pool",
                            from, image->layout()));
  if (auto known = check_version(*image, options); !known) return std::unexpected(known.error());
  const need needed = need_of(*image);
  copied_content done;
  std::uint64_t size =
      options.size_bytes != 0 ? options.size_bytes : size_for(needed, image->header(), options);
  for (;; size *= 2) {
    auto made = new_pool::make(to, geometry_of(*image, options, size));
    if (!made) return std::unexpected(made.error());
    auto runtime = made->take_runtime();
    const auto header = runtime->state().file.header();
    auto left = fill(*image, std::move(runtime), report);
    if (!left && left.error().code == errc::full && options.size_bytes == 0 &&
        size <= storage::max_pool_size / 2)
      continue;
    if (!left) return std::unexpected(left.error());
    left->notes.insert(left->notes.begin(), notes.begin(), notes.end());
    if (image->unverified_blocks() != 0)
      left->notes.push_back(
          fmt::format("{} blocks where the pool first grew have wrong sums, as a growth by a "
                      "program older than "
                      "2026-11-28 leaves them; what they hold was read without them",
                      image->unverified_blocks()));
    if (!options.allow_losses)
      if (auto whole = refuse_damaged(*image, *left); !whole) return std::unexpected(whole.error());
    if (left->expired != 0)  // no damage
      left->notes.push_back(fmt::format("{} items had expired", left->expired));
    const std::uint64_t kept = options.size_bytes != 0
                                   ? header.chunk_count
                                   : 2 + (needed.bytes >> header.chunk_shift) / room;
    if (auto published = made->publish(kept); !published) return std::unexpected(published.error());
    done.left = std::move(*left);
    const auto now = storage::pool_file::peek(to);
    done.size_now = now ? now->size : header.size;
    done.log_bytes = header.home == format::home_kind::log ? header.log_offset : header.home_offset;
    break;
  }
  done.damaged_ranges = image->damaged_ranges();
  done.verified = image->is_verified();
  done.size_before = image->header().size;
  done.home_bytes_before = needed.bytes;
  return done;
}

}  // namespace stele::detail
