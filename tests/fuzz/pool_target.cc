// A hostile pool file, in every use that a program or the command makes of it.
//
// Promises: every error has a sentence. A pool that check() calls sound and that opens can be
// changed, closed and opened again, and is sound then. A store or document that passes its own
// check returns the content that was walked in it.
#include <base/checksum.h>
#include <cli/pool_content.h>
#include <fmt/format.h>
#include <format/block_checksums.h>
#include <stele/document.h>
#include <stele/kv.h>
#include <tests/format/specimens.h>
#include <tests/fuzz/image.h>
#include <tests/fuzz/target.h>
#include <tx/inspect.h>
#include <tx/mechanism/catalog.h>
#include <tx/open.h>

#include <nlohmann/json.hpp>

namespace stele::fuzz {

namespace {

struct judged {
  std::string broken;  // a broken promise; empty: none
  bool sound = false;
  std::string layout, content, why;
};

std::string no_sentence(const char* where, const error& e) {
  return e.message.size() < 12 || e.message.find('\n') != std::string::npos
             ? fmt::format("{} says '{}', which is no sentence", where, e.message)
             : "";
}

judged refused(const char* where, const error& e) {
  judged j;
  j.broken = no_sentence(where, e);
  j.why = e.message;
  return j;
}

// Does what `stele pool check` and `stele pool dump` do.
judged judge(const std::string& path) {
  judged j;
  const auto report = detail::check_pool(path);
  if (!report) return refused("check", report.error());
  j.layout = report->info.header.layout.data();
  if (cli::is_known_layout(j.layout)) {
    auto copy = detail::open_copy_of(path, verification::never);
    if (!copy) return refused("opening a copy", copy.error());
    const auto fine = cli::check_content(std::move(*copy), j.layout);
    if (!fine) return refused("the check of the content", fine.error());
    const auto text = testing::content_text(path);
    if (!text) return refused("the walk of sound content", text.error());
    j.content = *text;
  }
  j.sound = true;
  return j;
}

// Allocates and frees small and large blocks; afterwards only the library's own blocks are left.
result<> churn(detail::runtime& r) {
  void* kept = nullptr;
  auto step = [&](auto&& body) {
    return detail::run_transaction(r, true, durability::durable, body);
  };
  auto made = step([&] {
    kept = detail::allocate(48, 8);
    detail::fill_zero(kept, 48);
    void* const large = detail::allocate(9000, 8);
    detail::fill_zero(large, 9000);
    detail::deallocate(large);
  });
  if (!made) return made;
  return step([&] { detail::deallocate(kept); });
}

std::string use_store(detail::pool_handle handle, const std::string& content) {
  auto store = kv::from_handle(std::move(handle));
  if (!store) return "a sound store does not open: " + store.error().message;
  const auto items = store->range({}, {}, 1 << 20);
  if (!items) return "a sound store cannot be read: " + items.error().message;
  for (const kv_item& i : *items)
    if (const auto found = store->get(i.key); !found || found->value_or("") != i.value)
      return "a sound store does not find a key that it has";
  (void)content;
  const auto put = store->put("fuzz", std::string(100, 'f'));
  if (put && store->get("fuzz").value().value_or("") != std::string(100, 'f'))
    return "a sound store loses what is put";
  if (put && !store->erase("fuzz").value_or(false)) return "a sound store does not erase";
  if (auto fine = store->check(); !fine)
    return "a sound store is damaged by a change: " + fine.error().message;
  const auto closed = store->close();
  return closed ? "" : "a store does not close: " + closed.error().message;
}

std::string use_document(detail::pool_handle handle) {
  pool<document_dict> p(std::move(handle));
  const auto put = p.update([](document_dict& d) {
    d["fuzz"].make_list().append("a text that takes a block of its own");
  });
  if (put && !p.update([](document_dict& d) { return d.erase("fuzz"); }).value_or(false))
    return "a sound document loses what is put";
  const auto fine = p.read([](const document_dict& d) { return d.check(); });
  if (!fine) return "a sound document is damaged by a change: " + fine.error().message;
  const auto closed = p.close();
  return closed ? "" : "a document does not close: " + closed.error().message;
}

std::string use_any(std::unique_ptr<detail::runtime> r) {
  const auto churned = churn(*r);
  if (!churned && churned.error().code != errc::full)
    return "memory of a sound pool cannot be used: " + churned.error().message;
  const auto closed = r->close();
  return closed ? "" : "a pool does not close: " + closed.error().message;
}

// Mostly the pool's own mechanism, sometimes another one of its kind; the bytes decide.
std::string mechanism_for(std::span<const std::byte> input) {
  base::checksum sum(input.size());
  sum.add(input.data(), std::min<std::size_t>(input.size() / 8 * 8, 8192));
  base::rng random(sum.value());
  format::pool_header h;
  std::memcpy(&h, input.data(), sizeof h);
  if (random.below(3) != 0 || h.home != format::home_kind::in_place) return "";
  const auto& all = detail::mechanisms();
  const auto& m = all[random.below(all.size())];
  return m.home != h.home || m.name == "none" ? "" : m.name;
}

// Whether a free chunk has damage. The block checksums of a free chunk are checked only when the
// chunk is in use again, so damage there is found late.
bool is_damaged_where_free(bytes input) {
  const image pool(input);
  const auto h = pool.header();
  if (h.home == format::home_kind::log)
    // Uncommitted blocks may stop counting when their log goes on; verify_log reports them.
    return true;
  const auto state = pool.word(format::block_checksum_state_offset) & (format::guarded_limit - 1);
  if (h.block_checksums_offset == 0 ||
      state != static_cast<std::uint64_t>(format::block_checksum_state::valid))
    return false;
  for (std::uint64_t block = h.chunks_offset; pool.has(block, format::checksum_block_size);
       block += format::checksum_block_size) {
    const std::uint64_t said = pool.word(
        h.block_checksums_offset + 8 * ((block - h.home_offset) / format::checksum_block_size));
    const std::uint64_t sum = said == format::block_checksum_never_written
                                  ? format::zero_block_checksum(h.id, block)
                                  : said;
    if (said != format::block_checksum_unknown &&
        sum != format::compute_block_checksum(input.data() + block, h.id, block))
      return true;
  }
  return false;
}

std::string use(const std::string& path, const judged& before, const std::string& mechanism) {
  auto opened = detail::open_path(
      path, {.engine = {.mechanism = mechanism, .media = "process", .background = false}});
  if (!opened) return no_sentence("opening", opened.error());
  if (!before.sound) {  // its content is not promised
    const auto closed = (*opened)->close();
    return closed ? "" : no_sentence("closing", closed.error());
  }
  if (before.layout != kv::layout && before.layout != document_layout)
    return use_any(std::move(*opened));
  auto handle = detail::pool_handle::from_runtime(
      std::move(*opened), before.layout == kv::layout ? kv::root_size() : sizeof(document_dict));
  if (!handle)
    return handle.error().code == errc::layout
               ? ""
               : "the root of sound content cannot be reached: " + handle.error().message;
  return before.layout == kv::layout ? use_store(std::move(*handle), before.content)
                                     : use_document(std::move(*handle));
}

}  // namespace

std::string run_pool(std::span<const std::byte> input) {
  if (input.size() < format::front_size) return "";
  const std::string path = scratch() + "/pool";
  write_file(path, input);
  const judged before = judge(path);
  if (!before.broken.empty()) return before.broken;
  if (std::string broken = use(path, before, mechanism_for(input)); !broken.empty()) return broken;
  const judged after = judge(path);
  if (!after.broken.empty()) return after.broken;
  if (before.sound && !after.sound && !is_damaged_where_free({input.begin(), input.end()}))
    return "a pool that was sound is not after it was opened, changed and closed: " + after.why;
  if (before.sound && after.sound && before.content != after.content)
    return "the content has changed";
  return "";
}

std::vector<bytes> pool_seeds() {
  std::vector<bytes> all;
  for (const testing::specimen& s : testing::specimens())
    all.push_back(testing::make(s, scratch()));
  return all;
}

}  // namespace stele::fuzz
