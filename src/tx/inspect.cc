// Reads pool files for info, check and repair. See inspect.h.
#include <base/assert.h>
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <media/process.h>
#include <pool/block_checksums.h>
#include <tx/inspect.h>
#include <tx/log/record.h>
#include <tx/open.h>
#include <tx/readers/reader_session.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace stele::detail {

using base::fail;

namespace {

struct read_only_file {
  explicit read_only_file(const std::string& path)
      : fd(storage::open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  read_only_file(const read_only_file&) = delete;
  read_only_file& operator=(const read_only_file&) = delete;
  ~read_only_file() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

std::string name_of_logs(std::uint8_t kind) {
  switch (static_cast<log_kind>(kind)) {
    case log_kind::none:
      return "none";
    case log_kind::torn_bit:
      return "torn-bit ring";
    case log_kind::ordered_writes:
      return "ordered writes (base)";
    case log_kind::lines_or_blocks:
      return "blocks or lines, as each log's head says";
    case log_kind::archapt_redo:
      return "torn-bit rings (redo), home under checksums";
    case log_kind::archapt_undo:
      return "torn-bit rings (undo), home under checksums";
    case log_kind::chunks:
      return "chunks (log_structured)";
  }
  return fmt::format("kind {}", kind);
}

}  // namespace

// A line with the torn bits of the next lap is damage: recovery would read it as a record after the
// next crash.
result<> check_closed_ring(const storage::pool_file& file, const ring_view& ring,
                           std::uint64_t head, const record_form* other) {
  const bool in_lines = (head & format::log_blocks_bit) == 0;
  if (!in_lines && other == nullptr) return {};
  STELE_ASSERT(ring.lines != 0 && ring.log_offset < file.header().home_offset);
  for (std::uint64_t at = head & format::log_position_mask;
       at < (head & format::log_position_mask) + ring.lines; ++at) {
    const std::byte* const from = ring.bytes + at % ring.lines * line_size;
    const bool sense = (at / ring.lines & 1) == 0;
    format::log_line line;
    std::memcpy(&line, from, line_size);
    if (in_lines ? format::is_untorn(line, sense) : other->is_written(from, sense))
      return fail(errc::corrupt, fmt::format("{}: the log at offset {} was closed and has line {} "
                                             "of a lap to come; restore the pool from a copy",
                                             file.path(), ring.log_offset, at % ring.lines));
  }
  return {};
}

ring_view ring_of_log(const storage::pool_file& file, std::uint32_t log) noexcept {
  const auto& h = file.header();
  const std::uint64_t offset = h.log_offset + log * h.log_size;
  STELE_ASSERT(log < h.log_count && h.home == format::home_kind::in_place);
  STELE_ASSERT(offset + h.log_size <= h.home_offset && h.log_size > format::log_control_size);
  return {file.base() + offset + format::log_control_size,
          (h.log_size - format::log_control_size) / line_size, offset};
}

bool has_log_heads(log_kind kind) noexcept {
  return kind == log_kind::torn_bit || kind == log_kind::lines_or_blocks ||
         kind == log_kind::archapt_redo || kind == log_kind::archapt_undo;
}

namespace {

// Counts the records that recovery would read in each log. Errors: corrupt.
result<std::vector<log_report>> read_logs(const pool_state& state, log_kind kind, bool closed) {
  const auto& h = state.file.header();
  std::vector<log_report> logs(h.log_count);
  if (!has_log_heads(kind)) return logs;
  if (h.home != format::home_kind::in_place)
    return fail(errc::corrupt,
                fmt::format("{}: the session word names logs beside home, and the header says that "
                            "home is in the log; restore the pool from a copy",
                            state.file.path()));
  const record_form* const other = other_form_of(kind);
  log_record record;
  for (std::uint32_t i = 0; i < h.log_count; ++i) {
    const ring_view ring = ring_of_log(state.file, i);
    const auto head = read_log_head(state.file, ring.log_offset);
    if (!head) return std::unexpected(head.error());
    if ((*head & format::log_void_bit) != 0) continue;
    if (closed) {
      if (auto empty = check_closed_ring(state.file, ring, *head, other); !empty)
        return std::unexpected(empty.error());
      continue;
    }
    for (std::uint64_t position = *head & format::log_position_mask;;) {
      [[maybe_unused]] const std::uint64_t from = position;
      const auto whole = read_record_by_head(state.file, ring, *head, other, position, record);
      if (!whole) return std::unexpected(whole.error());
      if (!*whole) break;
      STELE_ASSERT(position > from);
      ++logs[i].records;
      logs[i].bytes = (position - (*head & format::log_position_mask)) * line_size;
    }
  }
  return logs;
}

}  // namespace

result<storage::heap::usage> check_heap(const pool_state& state) {
  const auto& h = state.file.header();
  const std::string& path = state.file.path();
  const auto word_at = [&](std::uint64_t offset) { return state.heap.word_at(offset); };
  const std::uint64_t end = h.offset_end(),
                      root = word_at(h.home_offset + offsetof(format::home_header, root_offset)),
                      held = word_at(h.home_offset + offsetof(format::home_header, root_size));
  bool has_block = root == 0 && held == 0;
  if (!has_block) {
    if (root < h.chunks_offset || root >= end || root % 8 != 0 || held > end - root)
      return fail(
          errc::corrupt,
          fmt::format("{}: the root (offset {}, {} bytes) is outside the heap", path, root, held));
    if (auto marked = root_error(format::judge_root(h, root, held, end, word_at), path, root);
        !marked)
      return std::unexpected(marked.error());
  }
  auto used = state.heap.audit([&](std::uint64_t offset, std::size_t bytes) {
    has_block |= offset == root && bytes >= held;
  });
  STELE_ASSERT(!used || used->used_bytes <= h.offset_end());
  if (used && !has_block) return root_without_block(path, root);
  return used;
}

result<pool_info> info_of(const std::string& path) {
  auto header = storage::pool_file::peek(path);
  if (!header) return std::unexpected(header.error());
  pool_info info{.header = *header,
                 .logs_of = {},
                 .in_use_by = {},
                 .durability = durability_of_path(path),
                 .fallback = {}};
  const read_only_file file(path);
  info.in_use_by = storage::lock_holder(file.fd);
  info.serves_readers = info.in_use_by && channel::connect(file.fd, 1000);
  std::array<std::byte, format::header_area_size> front;
  if (::pread(file.fd, front.data(), front.size(), 0) != ssize_t{front.size()})
    return base::fail_errno(errc::io, fmt::format("cannot read {}", path));
  const auto value = format::read_control_word(front.data(), header->id, format::session_offset);
  if (!value)
    return fail(
        errc::corrupt,
        fmt::format("{}: the session word is damaged (check bits); restore the pool from a copy",
                    path));
  const auto session = format::session::unpack(*value);
  const auto fallback = format::read_fallback(front.data(), header->id);
  if (!fallback)
    return fail(errc::corrupt,
                fmt::format("{}: the words that say whether it went back to a checkpoint are "
                            "damaged (check bits); restore the pool from a copy",
                            path));
  info.fallback = *fallback;
  info.left_open = session.open;
  info.logs_of = name_of_logs(session.log_kind);
  return info;
}

result<> check_unused(const std::string& path) {
  const read_only_file file(path);
  if (file.fd < 0) return {};
  const auto holder = storage::lock_holder(file.fd);
  if (!holder) return {};
  return fail(errc::in_use,
              fmt::format("{} is open in process {}; close it there first", path, *holder));
}

namespace {

// A nameless file for a copy of the pool: beside it, else among the temporary files.
storage::descriptor nameless_file(const std::string& path) {
  const std::string beside = std::filesystem::path(path).parent_path().string();
  for (const std::string& in :
       {beside.empty() ? "." : beside, std::filesystem::temp_directory_path().string()})
    if (const int fd = media::os::open(in.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); fd >= 0)
      return storage::descriptor(fd);
  return storage::descriptor(-1);
}

// Lets the process that has the pool open copy it, as it is now, to the empty file `to`.
result<> copy_to(int to, const std::string& path, std::uint64_t pid, const progress& on_progress) {
  const read_only_file pool(path);
  auto copied = copy_open_pool(pool.fd, path, to, on_progress);
  if (copied || copied.error().code != errc::not_found) return copied;
  return fail(errc::in_use, fmt::format("{} is open in process {}, which serves no readers "
                                        "(engine_options::readers); close it there",
                                        path, pid));
}

result<storage::pool_file> copy_of_open(const std::string& path, std::uint64_t pid) {
  const storage::descriptor copy = nameless_file(path);
  if (copy.fd < 0) return base::fail_errno(errc::io, fmt::format("cannot copy {}", path));
  if (auto copied = copy_to(copy.fd, path, pid, {}); !copied)
    return std::unexpected(copied.error());
  return storage::pool_file::open_copy(fmt::format("/proc/self/fd/{}", copy.fd));
}

// A private copy; of a pool that is open by the process that has it, since a copy made while the
// pool changes proves nothing.
result<storage::pool_file> copy_of(const std::string& path, const result<pool_info>& info) {
  if (!info) return std::unexpected(info.error());
  if (info->in_use_by) return copy_of_open(path, *info->in_use_by);
  return storage::pool_file::open_copy(path);
}

// A page of the file that cannot be read while the copy is checked becomes an error, not a signal.
std::unique_ptr<pool_state> guarded_copy(storage::pool_file file) {
  STELE_ASSERT_ALWAYS(file.mapping().fd < 0);  // what is stored to it does not reach a file
  auto state = std::make_unique<pool_state>(std::move(file));
  state->lost_pages_guard =
      media::sigbus_guard(state->file.base(), state->file.reserved_bytes(), state->poisoned);
  return state;
}
result<> check_pages(const pool_state& state) {
  if (!state.poisoned.load()) return {};
  return fail(errc::io, fmt::format("{}: part of the file could not be read (a bad page, or it has "
                                    "been truncated meanwhile); restore the pool from a copy",
                                    state.file.path()));
}

// A guarded copy of the pool, recovered, and the engine that has its home if that is not in place.
struct recovered_pool {
  std::unique_ptr<pool_state> state;
  std::unique_ptr<engine> home_of;
  virtual_home* home() const noexcept { return home_of != nullptr ? home_of->home() : nullptr; }
};

// `logs` gets what the pool's logs held before recovery.
result<recovered_pool> recovered_copy(const std::string& path, const pool_info& info,
                                      std::vector<log_report>& logs) {
  auto file = copy_of(path, info);
  if (!file) return std::unexpected(file.error());
  auto state = guarded_copy(std::move(*file));
  const auto session = format::read_control_word(state->file.base(), state->file.header().id,
                                                 format::session_offset);
  if (!session)
    return fail(
        errc::corrupt,
        fmt::format("{}: the session word is damaged (check bits); restore the pool from a copy",
                    path));
  const auto left = format::session::unpack(*session);
  auto read = read_logs(*state, static_cast<log_kind>(left.log_kind), !left.open);
  if (!read) return std::unexpected(read.error());
  logs = std::move(*read);
  auto recovered = recover_if_open(*state, {.what = media_choice::kind::process});
  if (!recovered) return std::unexpected(recovered.error());
  recovered_pool copy{std::move(state), std::move(*recovered)};
  storage::block_states* const states =
      copy.home() != nullptr ? &copy.home()->block_states() : nullptr;
  STELE_ASSERT((states != nullptr) == (copy.state->file.header().home == format::home_kind::log));
  STELE_ASSERT(logs.size() == copy.state->file.header().log_count);
  if (auto loaded = copy.state->heap.load(states); !loaded) return std::unexpected(loaded.error());
  return copy;
}

// No real pool has used almost all TxIDs, so a newest TxID within 2^40 of the limit is damage. With
// it the pool could be used for few more sessions.
result<> verify_clock(const pool_state& state, std::uint64_t newest) {
  constexpr std::uint64_t enough_for_long = std::uint64_t{1} << 40;
  const auto mark = format::read_control_word(state.file.base(), state.file.header().id,
                                              format::watermark_offset);
  if (mark && std::max(*mark, newest) < format::txid_limit - enough_for_long) return {};
  return fail(errc::corrupt, fmt::format("{}: its newest TxID is damaged, or one that no program "
                                         "draws; restore the pool from a copy",
                                         state.file.path()));
}

result<> verify_block_checksums(const recovered_pool& pool, check_report& report,
                                const progress& on_progress) {
  const pool_state& state = *pool.state;
  const auto session =
      format::read_control_word(state.file.base(), state.file.header().id, format::session_offset);
  if (pool.home() != nullptr)
    return pool.home()->verify(session && !format::session::unpack(*session).open);
  if (report.info.in_use_by) return {};  // the copy's are made from what was copied
  const storage::block_checksums sums(state.file);
  const auto kept = sums.valid();
  if (!kept) return std::unexpected(kept.error());
  report.sums = *kept;
  if (!*kept) return {};
  auto counted = state.heap.for_each_used_run(
      [&](std::uint64_t, std::uint64_t bytes) { report.verified_bytes += bytes; });
  STELE_ASSERT(!counted || report.verified_bytes <= state.file.header().size);
  return counted ? sums.verify(state.heap, on_progress) : counted;
}

result<> verify_all_but_checksums(const recovered_pool& pool, check_report& report) {
  const pool_state& state = *pool.state;
  report.recovered = report.info.left_open && !report.info.in_use_by;
  report.fallback_reason = state.fallback_reason;
  report.newest_commit = state.clock.load();
  if (auto sane = verify_clock(state, report.newest_commit); !sane) return sane;
  const std::uint64_t home = state.file.header().home_offset;
  report.root_offset = state.heap.word_at(home + offsetof(format::home_header, root_offset));
  report.root_size = state.heap.word_at(home + offsetof(format::home_header, root_size));
  auto heap = check_heap(state);
  if (!heap) return std::unexpected(heap.error());
  report.heap = *heap;
  return {};
}

result<> verify(const recovered_pool& pool, check_report& report, const progress& on_progress) {
  if (auto sane = verify_all_but_checksums(pool, report); !sane) return sane;
  return verify_block_checksums(pool, report, on_progress);
}

}  // namespace

result<bool> back_up_if_open(const std::string& path, const std::string& to,
                             const progress& on_progress) {
  const auto info = info_of(path);
  if (!info) return std::unexpected(info.error());
  if (!info->in_use_by) return false;
  auto file = storage::new_file::make(to, info->header.size);
  if (!file) return std::unexpected(file.error());
  if (auto copied = copy_to(file->fd(), path, *info->in_use_by, on_progress); !copied)
    return std::unexpected(copied.error());
  if (auto done = file->publish(); !done) return std::unexpected(done.error());
  return true;
}

result<check_report> check_pool(const std::string& path, const progress& on_progress) {
  auto info = info_of(path);
  if (!info) return std::unexpected(info.error());
  check_report report{.info = *info, .logs = {}, .fallback_reason = {}, .heap = {}};
  auto copy = recovered_copy(path, *info, report.logs);
  if (!copy) return std::unexpected(copy.error());
  auto verified = verify(*copy, report, on_progress);
  // Before the verdict, which may rest on zeroes in place of a lost page.
  if (auto read = check_pages(*copy->state); !read) return std::unexpected(read.error());
  if (!verified) return std::unexpected(verified.error());
  return report;
}

result<std::vector<std::uint64_t>> find_wrong_checksums(const std::string& path) {
  auto info = info_of(path);
  if (!info) return std::unexpected(info.error());
  info->in_use_by.reset();
  check_report report{.info = *info, .logs = {}, .fallback_reason = {}, .heap = {}};
  const auto copy = recovered_copy(path, *info, report.logs);
  if (!copy) return std::unexpected(copy.error());
  if (auto sane = verify_all_but_checksums(*copy, report); !sane)
    return std::unexpected(sane.error());
  const storage::block_checksums sums(copy->state->file);
  const auto kind = sums.state();
  if (!kind) return std::unexpected(kind.error());
  using state = format::block_checksum_state;
  std::vector<std::uint64_t> wrong;
  if ((*kind != state::valid && *kind != state::updating) || sums.first_tail().end == 0)
    return wrong;
  bool others = false;
  const auto note = [&](std::uint64_t block) {
    sums.may_lack_checksum(block) ? wrong.push_back(block) : void(others = true);
  };
  if (auto walked = sums.for_each_mismatch(copy->state->heap, {}, note); !walked)
    return std::unexpected(walked.error());
  if (auto read = check_pages(*copy->state); !read) return std::unexpected(read.error());
  if (others) wrong.clear();
  STELE_ASSERT_WHOLE(std::ranges::is_sorted(wrong));
  return wrong;
}

result<std::unique_ptr<runtime>> open_copy_of(const std::string& path, verification how) {
  auto file = copy_of(path, info_of(path));
  if (!file) return std::unexpected(file.error());
  const auto mechanism =
      find_mechanism(file->header().home == format::home_kind::log ? "log_structured" : "default");
  if (!mechanism) return std::unexpected(mechanism.error());
  media_choice media{.what = media_choice::kind::process};
  media.tuning.background = false;
  return open_on(guarded_copy(std::move(*file)), media, **mechanism,
                 {.engine = {.verify = how, .background = false}});
}

}  // namespace stele::detail
