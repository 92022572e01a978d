// Backup: a copy of a pool in use, as it was at one moment, when the backup began and no
// transaction ran.
//
// All chunks that were in use at that moment are copied while transactions go on. A thread that
// stores to a page that is not copied yet copies it first (page_snapshot.h). The copy gets an id of
// its own, and so new check bits in every guarded word and new block checksums. The file has no
// name until it is complete. Contract: pool<Root>::backup. A copy of the used part ends behind the
// last chunk in use.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <tx/backup.h>
#include <tx/new_pool.h>
#include <tx/open.h>
#include <tx/page_queue.h>
#include <tx/readers/reader_session.h>

#include <algorithm>
#include <optional>

namespace stele::detail {

using base::fail;
using format::pool_header;

namespace {

constexpr std::uint64_t page = page_snapshot::page_size;
constexpr std::uint64_t max_queued_pages = 8192;  // 32 MiB
// Pages claimed and copied at a time: few enough to stay in the processor's cache, and so that no
// transaction waits long for one of them.
constexpr std::uint64_t max_pages_per_copy = base::schedule_explorer_build ? 1 : 16;

// What a backup holds: the front end's lock until the state that is copied is fixed, and the
// maintenance lock.
struct exclusive_use {
  front_end_hold front_end;
  std::unique_lock<std::mutex> maintenance;
};

class backup_copy final : private page_snapshot {
 public:
  // `whole`: with the free chunks at the end.
  backup_copy(runtime& r, exclusive_use use, storage::new_file file, std::uint64_t id, bool whole,
              const progress& on_progress)
      : page_snapshot(r.state().file.header().size),
        runtime_(r),
        use_(std::move(use)),
        pool_(r.state().file),
        h_(pool_.header()),
        file_(std::move(file)),
        on_progress_(on_progress),
        id_(id),
        whole_(whole),
        page_queue_(std::min<std::uint64_t>(max_queued_pages, h_.size / page)) {
    // No growth changes the header between this copy of it and the end.
    STELE_ASSERT_ALWAYS(use_.maintenance.owns_lock());
    STELE_ASSERT_ALWAYS(id_ != 0);
    STELE_ASSERT_ALWAYS(h_.home == format::home_kind::in_place && h_.size % page == 0);
  }
  ~backup_copy() override {
    if (!is_added_ || runtime_.is_of_parent()) return;
    std::optional<front_end_hold> hold;
    if (!pause_) {
      use_.maintenance.unlock();  // the holder of the front end's lock may wait for it
      hold.emplace(runtime_.hold_front_end());
      pause_.emplace(runtime_.pause());
    }
    runtime_.remove_page_snapshot(*this);
    pause_.reset();
  }

  result<> run() {
    pause_.emplace(runtime_.pause());
    if (auto begun = begin(); !begun) return begun;
    STELE_ASSERT_ALWAYS(is_added_);
    if (!runtime_.in_place()) pause_.reset();
    use_.front_end.release();
    for (const auto& [offset, bytes] : used_)
      if (auto copied = copy(offset, bytes); !copied) return copied;
    STELE_ASSERT_ALWAYS(copied_bytes_ == total_bytes_);
    if (runtime_.state().poisoned.load())
      return fail(
          errc::poisoned,
          fmt::format("writing to {} has failed: there is nothing sound to copy", pool_.path()));
    if (auto written = write_table(); !written) return written;
    // Reserves the free space last, so that no part of the file is written twice.
    if (auto space = file_.reserve(h_.size); !space) return space;
    return file_.publish();
  }

 private:
  // Runs while no transaction does. Lists the used runs, and copies the header area and the chunk
  // table at once, because transactions change single words of them.
  result<> begin() {
    if (auto read = read_created(); !read) return read;
    if (!runtime_.has_place_for_page_snapshot())
      return fail(errc::in_use,
                  fmt::format("{}: another backup is just ending, and 15 snapshots and long reads "
                              "are held, which are the most; try again later",
                              pool_.path()));
    const auto take = [&](std::uint64_t offset, std::uint64_t bytes) {
      used_.emplace_back(offset, bytes);
      total_bytes_ += bytes;
      include_pages(offset, bytes);
    };
    STELE_ASSERT_ALWAYS(!is_added_ && used_.empty());
    if (auto walked = runtime_.state().heap.for_each_used_run(take); !walked) return walked;
    STELE_ASSERT_WHOLE(has_runs_in_order());  // the last one ends what is in use
    if (!whole_)
      if (auto shorter = leave_out_end(); !shorter) return shorter;
    if (h_.block_checksums_offset != 0)
      block_checksums_.resize(format::block_checksum_count(h_.size - h_.home_offset));
    copy_table();
    header_area_.resize(h_.log_offset);
    lay_out(header_area_.data());
    runtime_.add_page_snapshot(*this);
    is_added_ = true;
    return {};
  }

  // The header as at creation and the growth in force are copied from the file, which another
  // program may have stored to. They must be what this process has found when it opened the pool.
  result<> read_created() {
    std::memcpy(&created_, pool_.base(), sizeof created_);
    const auto growth = format::read_growth(pool_.base(), pool_.header().id);
    if (!growth)
      return fail(errc::corrupt,
                  fmt::format("{}: the words of its growth are damaged (check bits): a copy would "
                              "not be the pool; close it, and repair it with 'stele pool check'",
                              pool_.path()));
    growth_ = *growth;
    auto now = growth_.chunk_count == 0 ? result<pool_header>(created_)
                                        : storage::grown_header(created_, growth_, pool_.path());
    if (!now) return std::unexpected(now.error());
    now->checksum = pool_.header().checksum;  // of the size and version that it was opened with
    if (std::memcmp(&*now, &pool_.header(), sizeof *now) != 0)
      return fail(errc::corrupt,
                  fmt::format("{}: its header is not what it was when the pool was opened: a copy "
                              "would not be the pool; close it, and repair it with 'stele pool "
                              "check --repair'",
                              pool_.path()));
    return {};
  }

  // For assertions.
  [[maybe_unused]] bool has_runs_in_order() const noexcept {
    std::uint64_t end = h_.chunks_offset;
    for (const auto& [offset, bytes] : used_) {
      if (offset < end || (offset | bytes) % page != 0 || bytes == 0) return false;
      end = offset + bytes;
    }
    return end <= h_.chunks_end();
  }

  // Makes h_ the header of a pool that ends behind the last chunk in use. A grown pool has at least
  // one chunk more than it was created with.
  result<> leave_out_end() {
    const std::uint64_t end =
        used_.empty() ? h_.chunks_offset : used_.back().first + used_.back().second;
    const std::uint64_t used = (end - h_.chunks_offset) >> h_.chunk_shift;
    STELE_ASSERT_ALWAYS(end >= h_.chunks_offset && used <= h_.chunk_count);
    if (growth_.chunk_count == 0) {
      h_ = shortened(h_, std::max<std::uint64_t>(used, 1));
      return {};
    }
    const auto shorter = storage::grown_header(
        created_, {std::max(used, created_.chunk_count + 1), growth_.table_chunk}, pool_.path());
    if (!shorter) return std::unexpected(shorter.error());
    h_ = *shorter;
    return {};
  }

  result<> copy(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t end = (offset + bytes + page - 1) / page;
    for (std::uint64_t p = offset / page; p < end;) {
      if (auto written = write_queued_pages(); !written) return written;
      const std::uint64_t count = claim_run(p, std::min(max_pages_per_copy, end - p));
      if (auto copied = copy_pages(p, count); !copied) return copied;
      p += std::max<std::uint64_t>(count, 1);
      STELE_ASSERT(p <= end);
      const bool goes_on = report_progress(p * page - offset);
      if (runtime_.is_of_parent()) return leave_to_parent();
      if (!goes_on)
        return fail(
            errc::cancelled,
            fmt::format("the backup of {} was stopped; nothing is left of it", pool_.path()));
    }
    copied_bytes_ += bytes;
    if (auto written = write_queued_pages(); !written) return written;
    if (failed_.load())
      return fail(errc::io,
                  fmt::format("cannot write the copy of {}; nothing is left of it", pool_.path()));
    return {};
  }
  // The report has forked: the copy is written by the parent alone, and its destructor may remove
  // the file.
  result<> leave_to_parent() {
    (void)new storage::new_file(std::move(file_));
    return runtime_.unusable();
  }
  // Calls on_progress at the start and then for each MiB. False: the caller cancels.
  bool report_progress(std::uint64_t of_run) {
    constexpr std::uint64_t step = std::uint64_t{1} << 20;
    const std::uint64_t now = std::min(copied_bytes_ + of_run, total_bytes_);
    if (!on_progress_ || now < next_report_) return true;
    next_report_ = now + step;
    const report_scope reporting(runtime_);
    return on_progress_(now, total_bytes_);
  }
  // Copies by words: truncation may be storing to block checksums here. The copy gets new ones.
  static void copy_words(std::byte* to, const std::byte* from, std::size_t size) noexcept {
    for (std::size_t at = 0; at < size; at += 8) {
      const std::uint64_t word =
          __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from + at), __ATOMIC_RELAXED);
      std::memcpy(to + at, &word, 8);
    }
  }
  result<> copy_pages(std::uint64_t first, std::uint64_t count) {
    alignas(64) std::byte bytes[max_pages_per_copy * page];
    STELE_ASSERT(count <= max_pages_per_copy && first * page < h_.size);
    const std::uint64_t from = first * page, size = std::min(count * page, h_.size - from);
    copy_words(bytes, pool_.at(from), size);
    mark_copied(first, count);
    return put({bytes, size}, from);
  }
  void copy_before_store(std::uint64_t offset) noexcept override {
    STELE_ASSERT(offset % page == 0 && offset < h_.size);
    STELE_ASSERT(offset >= h_.chunks_offset);  // table and header were copied at once
    const std::span<const std::byte> bytes(pool_.at(offset), std::min(page, h_.size - offset));
    if (!page_queue_.try_push(bytes, offset) && !put(bytes, offset)) failed_.store(true);
  }
  result<> write_queued_pages() {
    return page_queue_.drain(
        [&](std::span<const std::byte> bytes, std::uint64_t offset) { return put(bytes, offset); });
  }
  // Writes whole blocks to their place in the copy, and keeps their checksums for write_table().
  // Thread-safe for different pages.
  result<> put(std::span<const std::byte> bytes, std::uint64_t offset) {
    STELE_ASSERT(offset >= h_.home_offset && offset + bytes.size() <= h_.size);
    STELE_ASSERT((offset - h_.home_offset) % format::checksum_block_size == 0 &&
                 bytes.size() % format::checksum_block_size == 0);
    for (std::uint64_t at = 0; !block_checksums_.empty() && at < bytes.size();
         at += format::checksum_block_size)
      block_checksums_[(offset + at - h_.home_offset) / format::checksum_block_size] =
          format::compute_block_checksum(bytes.data() + at, id_, offset + at);
    return file_.write(bytes, offset);
  }

  // Copies the home header and the chunk table, in whole checksum blocks, and guards their words
  // anew. In a grown pool the table is not beside the header.
  void copy_table() {
    const std::uint64_t table_end = h_.table_offset + 8 * h_.chunk_count;
    const auto block_of = [&](std::uint64_t offset) {
      return offset - (offset - h_.home_offset) % format::checksum_block_size;
    };
    const auto bytes_of = [&](std::uint64_t from, std::uint64_t to) {
      return std::vector<std::byte>(pool_.at(from), pool_.at(to));
    };
    if (block_of(h_.table_offset) != h_.home_offset)
      home_header_ = bytes_of(h_.home_offset, h_.home_offset + format::checksum_block_size);
    table_from_ = block_of(h_.table_offset);
    table_ = bytes_of(table_from_, block_of(table_end - 1) + format::checksum_block_size);
    STELE_ASSERT_ALWAYS(table_from_ <= h_.table_offset && table_end <= table_from_ + table_.size());
    // Where the table begins in the block of the header, that is copied with it.
    STELE_ASSERT_ALWAYS(home_header_.empty() == (table_from_ == h_.home_offset));
    for (std::uint64_t at = h_.table_offset; at < table_end; at += 8)
      reguard(table_.data() + (at - table_from_), at);
    const std::uint64_t magic_at = offsetof(format::home_header, magic);
    reguard((home_header_.empty() ? table_ : home_header_).data() + magic_at,
            h_.home_offset + magic_at);
  }
  // Writes the home header, the chunk table and the block checksums, and the pool header last.
  result<> write_table() {
    STELE_ASSERT_ALWAYS(!table_.empty() && header_area_.size() == h_.log_offset);
    if (!home_header_.empty())
      if (auto written = put(home_header_, h_.home_offset); !written) return written;
    if (auto written = put(table_, table_from_); !written) return written;
    if (!block_checksums_.empty())
      if (auto written =
              file_.write(std::as_bytes(std::span(block_checksums_)), h_.block_checksums_offset);
          !written)
        return written;
    return file_.write(header_area_, 0);
  }
  void reguard(std::byte* word_at, std::uint64_t offset) const {
    STELE_ASSERT(offset % 8 == 0 && offset >= h_.home_offset);
    std::uint64_t word;
    std::memcpy(&word, word_at, 8);
    word = format::guard(word & (format::guarded_limit - 1), id_, offset);
    std::memcpy(word_at, &word, 8);
  }

  // Makes the header area of the copy: the pool header as at creation with the new id, the growth
  // in force, a closed session, the watermark at the newest commit, valid checksums, empty logs.
  void lay_out(std::byte* front) const {
    pool_header h = created_;
    if (growth_.chunk_count == 0) h.chunk_count = h_.chunk_count, h.size = h_.size;
    h.id = id_;
    h.checksum = format::header_checksum(h);
    storage::pool_file::write_header(front, h);
    put_word(front, format::watermark_offset, runtime_.state().clock.load());
    if (h_.block_checksums_offset != 0)
      put_word(front, format::block_checksum_state_offset,
               static_cast<std::uint64_t>(format::block_checksum_state::valid));
    put_word(front, format::magic_state_offset,
             format::read_control_word(pool_.base(), pool_.header().id, format::magic_state_offset)
                 .value_or(0));
    if (growth_.chunk_count == 0) return;
    put_word(front, format::growth_slot_offset(1), h_.chunk_count);
    put_word(front, format::growth_slot_offset(1) + 8, growth_.table_chunk);
    put_word(front, format::growth_offset, 1);
  }
  void put_word(std::byte* front, std::uint64_t offset, std::uint64_t value) const {
    STELE_ASSERT_ALWAYS(offset % 8 == 0 && offset + 8 <= header_area_.size());
    STELE_ASSERT_ALWAYS(value < format::guarded_limit);
    const std::uint64_t word = format::guard(value, id_, offset);
    std::memcpy(front + offset, &word, sizeof word);
  }

  runtime& runtime_;
  exclusive_use use_;
  const storage::pool_file& pool_;
  pool_header h_;  // of the copy, but for its id
  pool_header created_{};
  format::growth growth_{};
  storage::new_file file_;
  const progress& on_progress_;
  std::optional<pool_pause> pause_;
  bool is_added_ = false;  // to the snapshots that keep pages
  const std::uint64_t id_;
  const bool whole_;
  std::uint64_t copied_bytes_ = 0, total_bytes_ = 0, next_report_ = 0, table_from_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used_;
  std::vector<std::byte> header_area_, home_header_, table_;
  std::vector<std::uint64_t> block_checksums_;
  page_queue page_queue_;
  std::atomic<bool> failed_{false};  // a transaction could not write the page that it copied
};

// Errors: those of begin_maintenance; unsupported.
result<exclusive_use> begin_backup(runtime& r) {
  if (r.state().file.header().home == format::home_kind::log)
    return fail(errc::unsupported,
                fmt::format("{} cannot be backed up while it is open: a pool of log_structured "
                            "cannot yet; close it and copy the file",
                            r.state().file.path()));
  front_end_hold front_end = r.hold_front_end();
  auto maintenance = begin_maintenance(r, "backed up");
  if (!maintenance) return std::unexpected(std::move(maintenance.error()));
  return exclusive_use{std::move(front_end), std::move(*maintenance)};
}

result<> back_up_now(runtime& r, exclusive_use use, storage::new_file file, bool whole,
                     const progress& on_progress) {
  const auto id = storage::generate_pool_id();
  if (!id) return std::unexpected(id.error());
  return backup_copy(r, std::move(use), std::move(file), *id, whole, on_progress).run();
}

result<> back_up_by_name(runtime& r, const std::string& path, bool whole,
                         const progress& on_progress) {
  auto begun = begin_backup(r);
  if (!begun) return std::unexpected(begun.error());
  auto file = storage::new_file::make(path, r.state().file.header().size);
  if (!file) return std::unexpected(file.error());
  return back_up_now(r, std::move(*begun), std::move(*file), whole, on_progress);
}

}  // namespace

result<> back_up(runtime& r, const std::string& path, const progress& on_progress) {
  if (r.reading() != nullptr && r.reading()->is_attached())
    return r.reading()->back_up(path, on_progress);
  return back_up_by_name(r, path, true, on_progress);
}

result<> back_up_used_part(runtime& r, const std::string& path, const progress& on_progress) {
  return back_up_by_name(r, path, false, on_progress);
}

result<> back_up_to(runtime& r, storage::new_file file, const progress& on_progress) {
  auto begun = begin_backup(r);
  if (!begun) return std::unexpected(begun.error());
  return back_up_now(r, std::move(*begun), std::move(file), true, on_progress);
}

}  // namespace stele::detail
