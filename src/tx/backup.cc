// A copy of a pool that is in use, as it was at one moment.
//
// Everything in use is copied while transactions run, then what they have stored to since, again and again while that gets less;
// the last time they wait. What a copy must have of its own is made on the way: an id, and with it the check bits of every guarded
// word and the sums of blocks. The file has no name until it is whole. Contract: pool<Root>::backup.
#include <base/check.h>
#include <fmt/format.h>
#include <pool/block_sums.h>
#include <pool/new_file.h>
#include <sys/random.h>
#include <tx/open.h>

#include <algorithm>

namespace stele::detail {

using base::fail;
using format::pool_header;

namespace {

constexpr std::uint64_t page = page_marks::page_size;
constexpr std::uint64_t piece = std::uint64_t{1} << 20;  // copied at a time
constexpr unsigned most_passes = 8;
constexpr std::uint64_t few_pages = 256;  // so few that transactions may wait for them

class backup_copy {
 public:
  backup_copy(runtime& r, storage::new_file file, const progress& told)
      : runtime_(r), pool_(r.state().file), h_(pool_.header()), file_(std::move(file)), told_(told), marks_(h_.size), sums_(h_.sums_offset != 0 ? format::sums_for(h_.size - h_.home_offset) : 0) {
    while (id_ == 0) id_ = draw_id();
  }
  ~backup_copy() { runtime_.mark_pages(nullptr); }

  result<> run() {
    {
      const runtime::pause still(runtime_);  // from here on commits mark what they store to
      runtime_.mark_pages(&marks_);
      const auto take = [&](std::uint64_t offset, std::uint64_t bytes) { used_.emplace_back(offset, bytes), all_ += bytes; };
      if (auto walked = runtime_.state().heap.for_each_used_run(take); !walked) return walked;
    }
    for (const auto& [offset, bytes] : used_)
      if (auto copied = copy(offset, bytes); !copied) return copied;
    for (std::uint64_t pass = 0, before = ~std::uint64_t{0}; pass < most_passes; ++pass) {
      const auto again = copy_marked();
      if (!again) return std::unexpected(again.error());
      if (*again <= few_pages || *again >= before) break;
      before = *again;
    }
    if (auto ended = end(); !ended) return ended;
    return file_.publish();
  }

 private:
  static std::uint64_t draw_id() {
    std::uint64_t id = 0;
    return ::getrandom(&id, sizeof id, 0) == sizeof id ? id : 0;
  }

  result<> copy(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += piece) {
      const std::uint64_t size = std::min(piece, bytes - at);
      buffer_.resize(size);
      std::memcpy(buffer_.data(), pool_.at(offset + at), size);
      if (auto written = put(offset + at); !written) return written;
      done_ += size;
      if (told_ && !told_(std::min(done_, all_), all_)) return fail(errc::cancelled, fmt::format("the backup of {} was stopped; nothing is left of it", pool_.path()));
    }
    return {};
  }
  // The buffer, whole blocks, to this place; with its sums, for later.
  result<> put(std::uint64_t offset) {
    for (std::uint64_t at = 0; !sums_.empty() && at < buffer_.size(); at += format::sum_block_size)
      sums_[(offset + at - h_.home_offset) / format::sum_block_size] = format::sum_of_block(buffer_.data() + at, id_, offset + at);
    return file_.write(buffer_, offset);
  }
  // How many pages there were.
  result<std::uint64_t> copy_marked() {
    std::uint64_t count = 0;
    for (std::uint64_t p = h_.chunks_offset / page; p < marks_.pages(); ++p) {
      if (!marks_.take(p)) continue;
      ++count;
      if (auto copied = copy(p * page, std::min(page, h_.size - p * page)); !copied) return std::unexpected(copied.error());
    }
    return count;
  }

  result<> end() {
    const runtime::pause still(runtime_);
    if (runtime_.state().poisoned.load()) return fail(errc::poisoned, fmt::format("writing to {} has failed: there is nothing sound to copy", pool_.path()));
    if (auto copied = copy_marked(); !copied) return std::unexpected(copied.error());
    if (auto copied = copy_table(); !copied) return copied;
    std::vector<std::byte> front(format::header_area);
    lay_out(front.data());
    return file_.write(front, 0);
  }

  // Home header and chunk table, with sums after them.
  result<> copy_table() {
    const std::uint64_t table_end = h_.table_offset + 8 * h_.chunk_count;
    if (h_.table_offset > h_.chunks_offset)  // a pool that has grown: the table lies apart from the home header
      if (auto copied = copy(h_.home_offset, format::sum_block_size); !copied) return copied;
    const std::uint64_t from = h_.table_offset - (h_.table_offset - h_.home_offset) % format::sum_block_size;
    const std::uint64_t to = (table_end - h_.home_offset + format::sum_block_size - 1) / format::sum_block_size * format::sum_block_size + h_.home_offset;
    buffer_.resize(to - from);
    std::memcpy(buffer_.data(), pool_.at(from), buffer_.size());
    for (std::uint64_t at = h_.table_offset; at < table_end; at += 8) reguard(buffer_.data() + (at - from), at);
    if (auto written = put(from); !written || sums_.empty()) return written;
    return file_.write(std::as_bytes(std::span(sums_)), h_.sums_offset);
  }
  void reguard(std::byte* word_at, std::uint64_t offset) const {
    std::uint64_t word;
    std::memcpy(&word, word_at, 8);
    word = format::guard(word & (format::guarded_limit - 1), id_, offset);
    std::memcpy(word_at, &word, 8);
  }

  // The header as it was at creation, under the new id; a closed session, all commits at home, empty logs.
  void lay_out(std::byte* front) const {
    pool_header h;
    std::memcpy(&h, pool_.base(), sizeof h);
    h.id = id_;
    h.checksum = format::header_checksum(h);
    storage::pool_file::lay_out(front, h);
    put_word(front, format::watermark_offset, runtime_.state().clock.load());
    const auto growth = format::growth_in(pool_.base(), h_.id);
    if (!growth || growth->chunk_count == 0) return;
    put_word(front, format::growth_slot_offset(1), growth->chunk_count);
    put_word(front, format::growth_slot_offset(1) + 8, growth->table_chunk);
    put_word(front, format::growth_offset, 1);
  }
  void put_word(std::byte* front, std::uint64_t offset, std::uint64_t value) const {
    const std::uint64_t word = format::guard(value, id_, offset);
    std::memcpy(front + offset, &word, sizeof word);
  }

  runtime& runtime_;
  const storage::pool_file& pool_;
  const pool_header& h_;
  storage::new_file file_;
  const progress& told_;
  page_marks marks_;
  std::uint64_t id_ = 0, done_ = 0, all_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::byte> buffer_;
};

}  // namespace

result<> back_up(runtime& r, const std::string& path, const progress& told) {
  const auto& h = r.state().file.header();
  if (auto outside = outside_transactions(r, "backed up"); !outside) return outside;
  if (h.home == format::home_kind::log || h.parity_block_size != 0)
    return fail(errc::unsupported, fmt::format("{} cannot be backed up while it is open: pools of log_structured and archapt cannot yet; close it and copy the file", r.state().file.path()));
  const std::lock_guard one(r.upkeep());
  auto file = storage::new_file::make(path, h.size);
  if (!file) return std::unexpected(file.error());
  return backup_copy(r, std::move(*file), told).run();
}

}  // namespace stele::detail
