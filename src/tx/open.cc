// Opens a pool: file, recovery, heap, engine, root. Also the functions behind the members of
// pool<Root>.
#include <base/assert.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <pool/volatile_storage.h>
#include <stele/pool.h>
#include <tx/mechanism/catalog.h>
#include <tx/open.h>
#include <tx/readers/reader_session.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <base/check.h>
#include <base/checksum.h>
#include <cxxabi.h>
#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace stele::detail {

using base::fail;
using kind = media_choice::kind;

namespace {

// What an acknowledged commit survives. This depends on the medium's instructions and on the
// storage behind the mapping.
durability_level durability_of(const media_choice& m, const mechanism_entry& mechanism,
                               const storage::pool_file& file) {
  if (mechanism.name == "none") return durability_level::none;
  if (m.what == kind::file) return durability_of_path(file.path());
  if (!file.direct_access() || m.what == kind::process || m.emulates_whole_cache)
    return durability_level::process;
  return m.what == kind::eadr ? durability_level::power_with_cache : durability_level::power;
}

// Errors: unsupported, when the pool gives less durability than options.require.
result<> check_required(const pool_options& options, durability_level given,
                        const std::string& path) {
  if (given >= options.require) return {};
  return fail(
      errc::unsupported,
      fmt::format("{} would give its commits the durability '{}', and '{}' is asked for: put it on "
                  "a disk with media 'file', or on persistent memory that is mapped "
                  "directly (DAX), and use a mechanism other than 'none'; nothing was changed",
                  path, name_of(given), name_of(options.require)));
}

// `automatic`: on for the media file and process, where commits do not pay for each flushed line.
// Errors: invalid_argument.
result<bool> wants_block_checksums(const engine_options& options, const media_choice& media,
                                   const mechanism_entry& mechanism) {
  const bool possible = mechanism.home == format::home_kind::in_place;
  if (options.block_checksums == checksums::on && !possible)
    return fail(
        errc::invalid_argument,
        fmt::format("pools for the mechanism '{}' have no sums of blocks; leave them at automatic",
                    mechanism.name));
  return possible && (options.block_checksums == checksums::on ||
                      (options.block_checksums == checksums::automatic &&
                       (media.what == kind::file || media.what == kind::process)));
}

// "auto": adr (cache-line write-back) on directly mapped persistent memory, else file (the file's
// sync). On volatile storage (tmpfs, or on top of it): process; commits survive the process only.
result<media_choice> choose_media(const engine_options& options, const std::string& path) {
  if (!options.tape.empty() && options.media != "auto" && options.media != "adr")
    return fail(errc::unsupported,
                fmt::format("a tape records the medium adr, not '{}'; leave the medium out",
                            options.media));
  if (!options.tape.empty() && registered_lab_media() == nullptr)
    return fail(errc::unsupported,
                "tapes are recorded by programs that link the laboratory (stele-lab tape record); "
                "this one does not");
  if (options.media != "auto") return parse_media(options.media);
  if (!options.tape.empty()) return media_choice{.what = kind::adr};
  return media_choice{.what = storage::is_volatile(path)        ? kind::process
                              : storage::is_direct_access(path) ? kind::adr
                                                                : kind::file};
}

// User space can write back single lines, but not a whole cache.
result<> check_bulk(const engine_options& options, const media_choice& m) {
  if (options.bulk != bulk_persistence::whole_cache || m.what == kind::file ||
      m.emulates_whole_cache || !options.tape.empty())
    return {};
  return fail(errc::unsupported,
              "no program can write a processor's whole cache back: bulk persistence of the whole "
              "cache needs the medium file, or a tape; use log_walk");
}

result<format::session> read_session(const storage::pool_file& file) {
  const auto value =
      format::read_control_word(file.base(), file.header().id, format::session_offset);
  if (!value || (*value & 0xFFFF) != (format::session{}.pack() & 0xFFFF))
    return fail(
        errc::corrupt,
        fmt::format("{}: the session word is damaged (check bits); restore the pool from a copy",
                    file.path()));
  return format::session::unpack(*value);
}

// Verifies home after recovery by its block checksums, if `how` and the pool's size ask for it. A
// log-structured pool is verified by the checksums of its log blocks.
result<> verify_block_checksums(const pool_state& state, const virtual_home* home, verification how,
                                bool closed) {
  constexpr std::uint64_t quickly_read = std::uint64_t{256} << 20;
  const storage::block_checksums sums(state.file);
  if (how == verification::never ||
      (how == verification::automatic && state.file.header().size > quickly_read))
    return {};
  if (home != nullptr) return home->verify(closed);
  const auto kept = sums.valid();
  if (!kept) return std::unexpected(kept.error());
  return *kept ? sums.verify(state.heap) : result<>{};
}

}  // namespace

result<std::unique_ptr<engine>> recover_if_open(pool_state& state, const media_choice& media) {
  auto session = read_session(state.file);
  if (!session) return std::unexpected(session.error());
  if (!session->open && state.file.header().home == format::home_kind::in_place) return nullptr;
  if (state.file.header().home == format::home_kind::log)
    session->log_kind = static_cast<std::uint8_t>(log_kind::chunks);  // a fresh pool's is none
  const mechanism_entry* recoverer =
      recovery_mechanism_of(static_cast<log_kind>(session->log_kind));
  if (recoverer == nullptr) {
    if (const std::string theirs = published_with_logs(static_cast<log_kind>(session->log_kind));
        !theirs.empty())
      return fail(
          errc::unsupported,
          fmt::format("{0} has logs of the mechanism {1}, which is in libstele_published: this "
                      "program cannot recover them; 'stele pool check --repair {0}' recovers "
                      "and closes it",
                      state.file.path(), theirs));
    if (session->log_kind == 0) return nullptr;
    return fail(errc::version, fmt::format("{} was left open by a mechanism that this program does "
                                           "not know (log kind {}); use the matching release",
                                           state.file.path(), session->log_kind));
  }
  const auto& h = state.file.header();
  if (recoverer->home != h.home)
    return fail(errc::corrupt, fmt::format("{}: its session word names logs (kind {}) that such a "
                                           "pool cannot have; restore the pool from a copy",
                                           state.file.path(), session->log_kind));
  STELE_ASSERT_ALWAYS(recoverer->make != nullptr);
  media_choice recovery_media = media;
  // Only recovery of a log-structured pool uses threads: it reads in parallel.
  recovery_media.tuning.background =
      recovery_media.tuning.background && recoverer->home == format::home_kind::log;
  std::unique_ptr<engine> e = recoverer->on(state, recovery_media);
  if (auto recovered = e->recover(); !recovered) return std::unexpected(recovered.error());
  if (e->home() == nullptr) e.reset();
  return e;
}

result<std::unique_ptr<runtime>> open_on(std::unique_ptr<pool_state> state,
                                         const media_choice& media,
                                         const mechanism_entry& mechanism,
                                         const pool_options& options) {
  if (mechanism.home != state->file.header().home)
    return fail(
        errc::invalid_argument,
        fmt::format("{} is a pool {}; the mechanism '{}' works on the other kind: open it with {}",
                    state->file.path(),
                    mechanism.home == format::home_kind::log ? "with its home in place"
                                                             : "without a home, all log",
                    mechanism.name,
                    mechanism.home == format::home_kind::log ? "'default'" : "'log_structured'"));
  const auto left = read_session(state->file);
  if (!left) return std::unexpected(left.error());
  auto recovered = recover_if_open(*state, media);
  if (!recovered) return std::unexpected(recovered.error());
  std::unique_ptr<engine> e = std::move(*recovered);
  virtual_home* const home = e != nullptr ? e->home() : nullptr;
  STELE_ASSERT_ALWAYS((home != nullptr) == (mechanism.home == format::home_kind::log));
  if (auto loaded = state->heap.load(home != nullptr ? &home->block_states() : nullptr); !loaded)
    return std::unexpected(loaded.error());
  if (auto checked = verify_block_checksums(*state, home, options.engine.verify, !left->open);
      !checked)
    return std::unexpected(checked.error());
  const auto session = read_session(state->file);
  if (!session) return std::unexpected(session.error());
  if (e == nullptr) e = mechanism.on(*state, media);
  if (auto started = e->start(session->log_kind); !started) return std::unexpected(started.error());
  STELE_ASSERT_ALWAYS(e->home() == home);
  STELE_ASSERT_ALWAYS(state->clock.load() < format::txid_limit);
  STELE_ASSERT_ALWAYS(state->file.header().version == format::pool_version);  // heap.md V1 and V2
  const durability_level survives = durability_of(media, mechanism, state->file);
  return std::make_unique<runtime>(std::move(state), std::move(e), options, mechanism.name,
                                   survives);
}

pool_handle::pool_handle(std::unique_ptr<runtime> r) : runtime_(std::move(r)) {
  STELE_ASSERT_ALWAYS(runtime_ != nullptr);
}
pool_handle::pool_handle(pool_handle&&) noexcept = default;
pool_handle& pool_handle::operator=(pool_handle&& other) noexcept {
  if (this == &other) return *this;
  const pool_handle last(std::move(*this));
  runtime_ = std::move(other.runtime_);
  root_ = other.root_;
  return *this;
}
pool_handle::~pool_handle() {
  if (runtime_ != nullptr && runtime_->is_of_parent()) runtime_.release()->leave_to_parent();
}

durability_level durability_of_path(const std::string& path) {
  return storage::is_volatile(path) ? durability_level::process : durability_level::power;
}

}  // namespace stele::detail

namespace stele {

std::optional<verification> verification_of(std::string_view name) noexcept {
  if (name == "auto") return verification::automatic;
  if (name == "always") return verification::always;
  if (name == "never") return verification::never;
  return std::nullopt;
}

}  // namespace stele

namespace stele::detail {

// Layout names that the library gives begin so.
constexpr std::string_view type_prefix = "type ";

// The layout name of a pool whose root has this type: the type's name, of a long one its begin and
// a hash of all.
std::string layout_of_type(const char* root_type) {
  if (root_type == nullptr) return "";
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(root_type, nullptr, nullptr, &failed), std::free);
  std::string name = std::string(type_prefix) + (failed == 0 ? readable.get() : root_type);
  constexpr std::size_t most = format::layout_name_size - 1;
  if (name.size() > most) {
    base::checksum sum(0);
    for (const char c : name) sum.add(static_cast<unsigned char>(c));
    const auto hash = fmt::format("#{:016x}", sum.value());
    name.resize(most - hash.size());
    name += hash;
  }
  STELE_ASSERT_ALWAYS(name.size() < format::layout_name_size);  // a zero ends it
  return name;
}

// Refuses a pool of another layout than the program's.
result<> check_layout(const pool_options& options, const std::string& layout_of_root,
                      const std::string& held, const std::string& path) {
  if (!options.layout.empty() && held != options.layout)
    return fail(
        errc::layout,
        fmt::format("{} holds the layout '{}', not '{}'; open it with the program that made it",
                    path, held, options.layout));
  const bool compares = options.layout.empty() && options.layout_version == 0 && !options.migrate &&
                        !layout_of_root.empty() && held.starts_with(type_prefix);
  if (compares && held != layout_of_root)
    return fail(
        errc::layout,
        fmt::format("the root of {} has the type '{}', this program's is '{}': open it with "
                    "the program that made it; if the type only has a new name, open it "
                    "with pool_options::layout = \"{}\"",
                    path, held.substr(type_prefix.size()),
                    layout_of_root.substr(type_prefix.size()), held));
  return {};
}

// Null: other processes cannot read the pool.
static std::shared_ptr<const shared_memory> clock_for_readers(const engine_options& options) {
  if (!options.readers) return nullptr;
  auto memory = shared_memory::make(sizeof(std::uint64_t), true);
  return memory ? std::make_shared<const shared_memory>(std::move(*memory)) : nullptr;
}

// Errors: unsupported, in a program without the published mechanisms.
static result<const mechanism_entry*> mechanism_of_log_home(const std::string& path) {
  auto found = find_mechanism("log_structured");
  if (found) return found;
  return fail(
      errc::unsupported,
      fmt::format("{} is a pool of log_structured, a mechanism of libstele_published, which "
                  "this program does not have: the command stele has it, and so has a "
                  "program in C++ that calls stele::use_published()",
                  path));
}

result<std::unique_ptr<runtime>> open_path(const std::string& path, const pool_options& options,
                                           const std::string& layout_of_root) {
  const engine_options& how = options.engine;
  auto mechanism = find_mechanism(how.mechanism);
  if (!mechanism) return std::unexpected(mechanism.error());
  const auto valid = choose_media(how, path);  // refuses bad options before a file is created
  if (!valid) return std::unexpected(valid.error());
  if (auto possible = check_bulk(how, *valid); !possible) return std::unexpected(possible.error());
  if (options.max_size > storage::max_pool_size)
    return fail(errc::invalid_argument,
                fmt::format("max_size is {} bytes; a pool has at most {} (64 TiB)",
                            options.max_size, storage::max_pool_size));
  bool fresh = false;
  if (options.create_size != 0 && ::access(path.c_str(), F_OK) != 0) {
    auto shape = (*mechanism)
                     ->geometry_for({options.create_size, how.log_size, how.log_count,
                                     options.layout.empty() ? layout_of_root : options.layout},
                                    how.tuning);
    const auto sums = wants_block_checksums(how, *valid, **mechanism);
    if (!sums) return std::unexpected(sums.error());
    shape.sums = *sums;
    auto made = storage::pool_file::create(path, shape);
    if (!made && made.error().code != errc::exists) return std::unexpected(made.error());
    fresh = made.has_value();
  }
  auto media = choose_media(how, path);
  if (!media) return std::unexpected(media.error());
  media->tuning = {.background = how.background,
                   .shared_log = media->what == kind::file,
                   .bulk = media->emulates_whole_cache && how.bulk == bulk_persistence::automatic
                               ? bulk_persistence::whole_cache
                               : how.bulk,
                   .of_mechanism = how.tuning,
                   .media_latency_ns = media->tuning.media_latency_ns};
  const auto map = media->what == kind::file ? storage::map_kind::private_log : (*mechanism)->map;
  auto file = storage::pool_file::open(path, map, how.map_at, options.max_size);
  if (!file) return std::unexpected(file.error());
  if (how.mechanism.empty() && file->header().home == format::home_kind::log)
    mechanism = mechanism_of_log_home(path);
  if (!mechanism) return std::unexpected(mechanism.error());
  if (options.max_size > file->header().size && !can_grow(file->header(), **mechanism)) {
    if (fresh) ::unlink(path.c_str());
    return std::unexpected(fixed_size_error(path));
  }
  if (auto enough = check_required(options, durability_of(*media, **mechanism, *file), path);
      !enough) {
    if (fresh) ::unlink(path.c_str());
    return std::unexpected(enough.error());
  }
  STELE_ASSERT_ALWAYS(file->mapping().fd >= 0);  // it holds the lock
  STELE_ASSERT_ALWAYS(file->reserved_bytes() >= file->header().size);
  const auto& name = file->header().layout;
  const std::string held(name.begin(), std::find(name.begin(), name.end(), '\0'));
  if (auto same = check_layout(options, layout_of_root, held, path); !same)
    return std::unexpected(same.error());
  auto state = std::make_unique<pool_state>(std::move(*file), clock_for_readers(how));
  auto chosen = options;
  if (media->what == kind::file) chosen.engine.defer_ordered = deferral::always;
  if (how.tape.empty()) return open_on(std::move(state), *media, **mechanism, chosen);
  STELE_ASSERT_ALWAYS(media->what == kind::adr);  // choose_media() has refused others
  auto recorded =
      registered_lab_media()->record(how.tape, *state, (*mechanism)->logs, media->tuning);
  if (!recorded) return std::unexpected(recorded.error());
  state->tape = std::move(recorded->tape);
  return open_on(std::move(state), recorded->medium, **mechanism, chosen);
}

result<pool_handle> pool_handle::open(const std::string& path, const pool_options& options,
                                      std::size_t root_size, const char* root_type) {
  auto opened = open_path(path, options, layout_of_type(root_type));
  if (!opened) return std::unexpected(opened.error());
  auto handle = from_runtime(std::move(*opened), root_size);
  if (handle) handle->core().serve_readers();  // not before: a migration may move the root
  return handle;
}

result<pool_handle> pool_handle::open_read_only(const std::string& path,
                                                const pool_options& options, std::size_t root_size,
                                                const char* root_type) {
  auto opened = reader_session::open(path);
  if (!opened) return std::unexpected(opened.error());
  const auto& name = (*opened)->state().file.header().layout;
  const std::string held(name.begin(), std::find(name.begin(), name.end(), '\0'));
  if (auto same = check_layout(options, layout_of_type(root_type), held, path); !same)
    return std::unexpected(same.error());
  return from_reader(std::move(*opened), root_size, options.layout_version);
}

result<pool_handle> pool_handle::from_reader(std::unique_ptr<runtime> r, std::size_t root_size,
                                             std::uint64_t layout_version) {
  pool_handle handle(std::move(r));
  auto root = handle.runtime_->find_root(root_size, layout_version);
  if (!root) return std::unexpected(root.error());
  STELE_ASSERT_ALWAYS(*root != nullptr);
  handle.root_ = *root;
  return handle;
}

result<pool_handle> pool_handle::from_runtime(std::unique_ptr<runtime> r, std::size_t root_size) {
  pool_handle handle(std::move(r));
  auto root = handle.runtime_->root(root_size);
  if (!root) return std::unexpected(root.error());
  STELE_ASSERT_ALWAYS(*root != nullptr);
  handle.root_ = *root;
  return handle;
}

namespace {

std::unexpected<error> fail_version(const std::string& path, std::uint64_t held,
                                    std::uint64_t known) {
  if (held > known)
    return fail(errc::layout, fmt::format("{} holds version {} of its layout, this program knows "
                                          "versions up to {}: open it with a newer one",
                                          path, held, known));
  return fail(errc::layout,
              fmt::format("{} holds version {} of its layout, this program's is {}, and it has no "
                          "migration (the option migrate): open it with the program that made it",
                          path, held, known));
}

}  // namespace

// Index of a word of the home header.
static constexpr std::size_t root_form_word = offsetof(format::home_header, root_form) / 8;

// Stores where the root is and which form it has. `header`: of home.
static void name_root(std::uint64_t* header, std::uint64_t offset, std::uint64_t size,
                      bool has_mark) {
  STELE_ASSERT_ALWAYS(this_access.size != 0);
  STELE_ASSERT_ALWAYS(offset >= this_access.heap_base - this_access.pool_base &&
                      offset + size <= this_access.size);
  store(header, offset);
  store(header + 1, size);
  const std::uint64_t word_at =
      reinterpret_cast<std::uintptr_t>(header + root_form_word) - this_access.pool_base;
  store(header + root_form_word, has_mark ? format::guarded_root_form(word_at, offset) : 0);
}

void* allocate_root(std::size_t size) {
  auto* const root = static_cast<std::byte*>(allocate(format::marked_root_size(size), line_size));
  const auto at = reinterpret_cast<std::uintptr_t>(root) - this_access.pool_base;
  STELE_ASSERT_ALWAYS(at % line_size == 0);
  STELE_ASSERT_ALWAYS(at + format::marked_root_size(size) <= this_access.size);
  fill_zero(root, size);
  store(reinterpret_cast<std::uint64_t*>(root + format::root_mark_offset(0, size)),
        format::guarded_root_mark(at, size));
  return root;
}

// Migrates a pool of an earlier layout version to the program's version. Runs in the transaction of
// root().
result<void*> runtime::migrate_root(std::uint64_t* header, std::uint64_t held_version,
                                    std::size_t size) {
  const std::string& path = state_->file.path();
  if (held_version > facts_.options.layout_version || !facts_.options.migrate)
    return fail_version(path, held_version, facts_.options.layout_version);
  STELE_ASSERT_ALWAYS(this_access.size != 0 && held_version != facts_.options.layout_version);
  migration m(held_version, base() + load(header), load(header + 1));
  if (auto done = facts_.options.migrate(m); !done) return std::unexpected(std::move(done.error()));
  const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(m.new_root()) - base());
  const bool is_former = offset == load(header) && size == load(header + 1);
  if (m.root_size() != size || offset < state_->file.header().chunks_offset ||
      offset > this->size() - size)
    return fail(errc::layout,
                fmt::format("the migration of {} leaves a root of {} bytes, this program's is {}: "
                            "give the migration the new root",
                            path, m.root_size(), size));
  store(header + 2, facts_.options.layout_version);
  if (!is_former) name_root(header, offset, size, m.new_root_has_mark());
  return m.new_root();
}

bool is_used_block(std::uintptr_t address, std::size_t size);  // access.cc

namespace {

result<> verify_root_mark(runtime& r, std::uint64_t offset, std::uint64_t held) {
  const auto verdict =
      format::judge_root(r.state().file.header(), offset, held, r.size(), [&](std::uint64_t at) {
        return load(reinterpret_cast<const std::uint64_t*>(r.base() + at));
      });
  return root_error(verdict, r.state().file.path(), offset);
}

// The root object that the words of the home header name. held: its size in the
// pool.
result<void*> root_at(runtime& r, std::uint64_t offset, std::uint64_t held, std::size_t size,
                      verification verify) {
  const std::string& path = r.state().file.path();
  if (offset < r.heap_begin() || offset % 8 != 0 || held > r.size() || offset > r.size() - held)
    return fail(errc::corrupt,
                fmt::format("{}: the root offset {} is outside the heap", path, offset));
  std::byte* const root = r.base() + offset;
  if (verify != verification::never) {
    if (auto marked = verify_root_mark(r, offset, held); !marked)
      return std::unexpected(marked.error());
    if (!is_used_block(reinterpret_cast<std::uintptr_t>(root), held))
      return root_without_block(path, offset);
  }
  if (held == size) return root;
  return fail(errc::layout,
              fmt::format("the root of {} is {} bytes, this program's is {}: another layout; "
                          "open it with the program that made it",
                          path, held, size));
}

}  // namespace

std::unexpected<error> root_without_block(const std::string& path, std::uint64_t offset) {
  return fail(errc::corrupt,
              fmt::format("{}: the root at offset {} is in no block in use that holds it; restore "
                          "the pool from a copy, or save what is left with `stele pool check "
                          "--salvage`",
                          path, offset));
}

result<> root_error(format::root_verdict verdict, const std::string& path, std::uint64_t offset) {
  switch (verdict) {
    case format::root_verdict::sound:
      break;
    case format::root_verdict::form_damaged:
      return fail(errc::corrupt,
                  fmt::format("{}: the word that says which form its root has is damaged (check "
                              "bits); restore the pool from a copy, or save what is left with "
                              "`stele pool check --salvage`",
                              path));
    case format::root_verdict::form_unknown:
      return fail(errc::version, fmt::format("{}: its root has a later form than {}, the latest "
                                             "that this program knows; use the matching release",
                                             path, format::marked_root_form));
    case format::root_verdict::mark_missing:
      return fail(errc::corrupt,
                  fmt::format("{}: the root at offset {} has lost its mark: it was zeroed or "
                              "overwritten; restore the pool from a copy, or save what is left "
                              "with `stele pool check --salvage`",
                              path, offset));
  }
  return {};
}

result<void*> runtime::find_root(std::size_t size, std::uint64_t known_version) {
  const std::string& path = state_->file.path();
  const auto* const header =
      reinterpret_cast<const std::uint64_t*>(base() + state_->file.header().home_offset);
  return run_transaction(*this, false, durability::durable, [&]() -> result<void*> {
    const std::uint64_t offset = load(header), held = load(header + 1), version = load(header + 2);
    if (offset == 0)
      return fail(errc::not_found,
                  fmt::format("{} is empty: no program has opened it for writing yet", path));
    if (version != known_version)
      return fail(errc::layout, fmt::format("{} holds version {} of its layout, this program's "
                                            "is {}: only a "
                                            "program that opens it for writing can migrate it",
                                            path, version, known_version));
    return root_at(*this, offset, held, size, verification::automatic);
  });
}

// Returns the root object. The first open allocates it, zeroed.
result<void*> runtime::root(std::size_t size) {
  STELE_ASSERT_ALWAYS(reading() == nullptr);
  auto* const header = reinterpret_cast<std::uint64_t*>(base() + state_->file.header().home_offset);
  return run_transaction(*this, true, durability::durable, [&]() -> result<void*> {
    const std::uint64_t offset = load(header), held = load(header + 1), version = load(header + 2);
    if (offset != 0) {
      auto found = root_at(*this, offset, held, size, facts_.options.engine.verify);
      if (version == facts_.options.layout_version ||
          (!found && found.error().code != errc::layout))
        return found;
      return migrate_root(header, version, size);
    }
    void* const root = allocate_root(size);
    name_root(header, static_cast<std::uint64_t>(static_cast<std::byte*>(root) - base()), size,
              true);
    if (version != facts_.options.layout_version) store(header + 2, facts_.options.layout_version);
    return root;
  });
}

result<> sync_pool(runtime& r) {
  if (r.is_of_parent()) return r.unusable();
  // A pool that is open for reading has no commits of this process.
  auto synced = r.reading() == nullptr ? r.mechanism().sync() : result<>();
  return synced ? r.check_in_place() : synced;
}
result<> check_usable(runtime& r) {
  auto usable = r.check_usable();
  return usable ? r.check_in_place() : usable;
}
result<> close_pool(runtime& r) {
  if (report_scope::exists(r))
    return fail(errc::in_use,
                fmt::format("{} cannot be closed by the report of its backup; do it when the "
                            "backup has ended, or end the backup by what the report returns",
                            r.state().file.path()));
  return r.close();
}
std::uint64_t newest_commit(const runtime& r) noexcept {
  return r.newest_commit();
}
void notify_when_durable(runtime& r, std::uint64_t commit, std::function<void(result<>)> callback) {
  r.notify_when_durable(commit, std::move(callback));
}
pool_counters counters_of(const runtime& r) noexcept {
  return r.counters();
}
pool_space space_of(runtime& r) {
  return r.space();
}
durability_level durability_of(const runtime& r) noexcept {
  return r.durability_in_force();
}
std::string mechanism_of(const runtime& r) {
  return r.mechanism_name();
}

}  // namespace stele::detail
