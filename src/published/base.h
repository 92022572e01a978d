// base: the conventional order - log, commit record, home, truncation - with a fence after each.
// Page: docs/protocol/base.md. Source: Lu, Shu and Sun, "Blurred Persistence" (2016), section 2.3
// and figure 2(b). base-published is the same with a record of 16 bytes for each word, as logs of
// words have it; base logs runs of words.
//
// A log has two slots, used in turn. Each slot has a commit line and room for records. A
// transaction leaves the records of the one before it alone, so a memory controller may write its
// records early (docs/protocol/dp2.md). The first word of the commit line is the TxID. It is
// guarded and stored last. Stores to one line persist in order: while the word is 0, the slot holds
// nothing; when it is not 0, commit line and records are complete on media.
#pragma once

#include <base/assert.h>
#include <format/slot_log.h>
#include <published/mutant.h>
#include <tx/home_writer.h>
#include <tx/log/lanes.h>
#include <tx/log/line_set.h>
#include <tx/mechanism_engine.h>

#include <bit>
#include <vector>

namespace stele::detail {

enum class base_records : std::uint8_t { runs, words };

template <class Media, base_records form>
class ordered_log {
 public:
  using medium = Media;
  static constexpr log_kind kind = log_kind::ordered_writes;
  static constexpr auto upkeep = checksum_upkeep::in_commit;

  ordered_log(pool_medium<Media>& m, home_checksums<Media>& sums, const engine_tuning&)
      : medium_(m),
        file_(m.state.file),
        sums_(sums),
        logs(m, sums),
        home(file_),
        slot_cursors_(logs.size()) {}

  [[nodiscard]] result<> reserve_log(transaction& t) {
    auto& l = logs.of(t);
    logs.release_reserved(l);
    const std::uint64_t bytes = format::slot_size(file_.header().log_size);
    if (16 * 8 * t.lines().size() <= bytes) {
      STELE_ASSERT_WHOLE(8 * words_of(t) <= bytes);
      return {};
    }
    const std::uint64_t words = words_of(t);
    if (words * 8 <= bytes) return {};
    if (auto reserved = logs.reserve_spill(l, t, words); !reserved) return reserved;
    STELE_ASSERT(l.reserved_bytes >= words * 8 && l.reserved_spill % line_size == 0);
    return logs.invalidate_checksums(l.media, l);
  }

  bool commit(transaction& t, std::uint64_t txid) {
    auto& l = logs.of(t);
    const slot at{&l, slot_cursors_[l.number].next};
    STELE_ASSERT(at.number < format::slot_count);
    const format::slot_commit_record line = make_commit_line(t, at, txid);
    if (planted<Media>(mutant::base_commit_first)) write_commit(at, line);
    write_records(t, l, line);  // 1
    // 2: the records are durable before the commit line
    if (!medium_.fence_ok(l.media)) return false;
    write_commit(at, line);  // 3
    // base.md: a slot holds a committed transaction if and only if this word is not 0.
    STELE_ASSERT(commit_word(at) != 0);
    // 4: the commit is durable before home changes
    if (!medium_.fence_ok(l.media)) return false;
    t.begin_home_stores();
    home.store_flushed(l.media, t, sums_);  // 5
    // 6: home is durable before the log is truncated
    if (!medium_.fence_ok(l.media)) return false;
    clear_commit(l.media, at);  // 7
    // 8: the truncation is durable before locks are released
    if (!medium_.fence_ok(l.media)) return false;
    logs.release_reserved(l);
    STELE_ASSERT(commit_word(at) == 0);  // base.md, after 8
    slot_cursors_[l.number].next = (at.number + 1) % format::slot_count;
    return true;
  }

  [[nodiscard]] result<> attach(log_kind were) {
    if (were != kind) clear_all();
    return {};
  }

  // Replays the transaction of each slot that has one; see docs/protocol/base.md. Recovery may be
  // interrupted and run again: a slot is emptied only after home is durable.
  [[nodiscard]] result<> recover() {
    std::vector<log_record> records;
    for (auto& l : logs)
      for (unsigned s = 0;
           s < (planted<Media>(mutant::base_first_slot_only) ? 1 : format::slot_count); ++s)
        if (auto read = read_slot({&l, s}, records); !read) return read;
    const auto sums = sums_.blocks().state();
    if (!sums) return std::unexpected(sums.error());
    std::uint64_t newest = 0;
    line_set lines;
    for (const log_record& r : records) {
      auto replayed = for_each_stored_run(
          file_, r.payload, [&](format::run_header head, const std::uint64_t* words) {
            for (std::uint32_t i = 0; i < head.count; ++i)
              home.store_word(medium_.control, head.offset + 8 * i, words[i], head.mask);
            medium_.control.flush(file_.at(head.offset), head.count * 8);
            for_each_line(head, [&](std::uint64_t line) { lines.add(line); });
          });
      if (!replayed) return replayed;
      newest = std::max(newest, r.txid);
    }
    sums_.recompute(lines.all(), *sums);
    medium_.control.fence();  // home is durable before the logs are emptied
    clear_all();
    medium_.state.clock.store(newest);
    return medium_.check();
  }

 private:
  using mutant = published::mutant;
  using lane = typename log_lanes<Media>::lane;
  using new_word = typename home_writer<Media>::new_word;
  struct slot {
    lane* l;
    unsigned number;
  };
  struct alignas(64) slot_cursor {  // one for each log; only the log's owner uses it
    unsigned next = 0;
  };

  std::uint64_t commit_offset(slot s) const {
    return logs.log_offset(*s.l) + format::slot_commit_offset(s.number);
  }
  std::uint64_t records_offset(slot s) const {
    return logs.log_offset(*s.l) + format::slot_records_offset(s.number, file_.header().log_size);
  }

  std::uint64_t commit_word(slot s) const {
    std::uint64_t word;
    std::memcpy(&word, file_.at(commit_offset(s)), sizeof word);
    return word;
  }

  // Words have 16 bytes each. A transaction whose words outgrow its slot is logged in runs.
  static std::uint64_t words_alone(const transaction& t) {
    std::uint64_t words = 0;
    for (const written_line& line : t.lines())
      words += 2 * static_cast<std::uint64_t>(std::popcount(stored_words(line.mask)));
    return words;
  }
  bool logs_words(const transaction& t) const {
    if constexpr (form == base_records::runs) return false;
    const std::uint64_t bytes = format::slot_size(file_.header().log_size);
    return 16 * 8 * t.lines().size() <= bytes || 8 * words_alone(t) <= bytes;
  }
  std::uint64_t words_of(const transaction& t) const {
    return logs_words(t) ? words_alone(t) : payload_words(t.lines());
  }
  template <class Writer>
  void encode(const transaction& t, Writer& out) const {
    if (logs_words(t)) {
      for (const written_line& line : t.lines())
        for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
          const auto w = static_cast<unsigned>(std::countr_zero(left));
          const std::uint64_t offset = line.offset + 8 * w;
          const std::uint8_t mask = line.word_mask(w);
          out.append_word(format::run_header{offset, mask, 1}.pack());
          // Bytes outside the mask are unspecified memory and must not reach the pool file.
          out.append_word(new_word{}(offset, line.words[w] & expand_mask(mask)));
        }
    } else {
      encode_runs(t.lines(), out, new_word{});
    }
    out.finish();
  }

  format::slot_commit_record make_commit_line(const transaction& t, slot s, std::uint64_t txid) {
    STELE_ASSERT(txid != 0 && txid < format::txid_limit);  // 0: the slot is empty
    const auto& h = file_.header();
    const std::uint64_t offset = s.l->reserved_bytes != 0 ? s.l->reserved_spill : records_offset(s);
    base::checksum sum(h.id ^ txid);
    std::uint64_t words = 0;
    word_buffer out([&](std::span<const std::uint64_t> some) {
      for (const std::uint64_t w : some) sum.add(w);
      words += some.size();
    });
    encode(t, out);
    // The records fit their slot, or the chunks that were reserved for them.
    STELE_ASSERT(words * 8 <=
                 (s.l->reserved_bytes != 0 ? s.l->reserved_bytes : format::slot_size(h.log_size)));
    return {format::guard(txid, h.id, commit_offset(s)), offset, words, sum.value(), {}};
  }

  void write_records(const transaction& t, lane& l, const format::slot_commit_record& line) {
    const std::uint64_t offset = line.offset;
    std::byte *const begin = file_.at(offset), *to = begin;
    if (l.reserved_bytes != 0) t.before_store(offset, l.reserved_bytes);
    word_buffer out([&](std::span<const std::uint64_t> some) {
      for (const std::uint64_t& w : some) l.media.store(to, &w, 8), to += 8;
    });
    encode(t, out);
    // The commit line's checksum is of what was written.
    STELE_ASSERT(static_cast<std::uint64_t>(to - begin) == line.words * 8);
    l.media.flush(begin, static_cast<std::size_t>(to - begin));
  }
  void write_commit(slot s, const format::slot_commit_record& line) {
    std::byte* const to = file_.at(commit_offset(s));
    Media& media = s.l->media;
    // base.md, 3: stores to one line persist in order, so all of the commit line is in one.
    STELE_ASSERT(commit_offset(s) % line_size == 0 && line.txid != 0);
    if (planted<Media>(mutant::base_word_first)) media.store(to, &line.txid, 8);
    media.store(to + offsetof(format::slot_commit_record, offset), &line.offset, 8);
    media.store(to + offsetof(format::slot_commit_record, words), &line.words, 8);
    media.store(to + offsetof(format::slot_commit_record, checksum), &line.checksum, 8);
    media.store(to, &line.txid, 8);
    media.flush(to, sizeof line);
  }
  void clear_commit(Media& media, slot s) {
    constexpr std::uint64_t nothing = 0;
    std::byte* const at = file_.at(commit_offset(s));
    media.store(at, &nothing, 8);
    media.flush(at, 8);
  }
  void clear_all() {
    for (auto& l : logs)
      for (unsigned s = 0; s < format::slot_count; ++s) clear_commit(medium_.control, {&l, s});
    medium_.control.fence();  // slots are empty on media before new commits
  }
  [[nodiscard]] result<> read_slot(slot s, std::vector<log_record>& records) {
    const auto& h = file_.header();
    auto damaged = [&](const char* what) {
      return base::fail(
          errc::corrupt,
          fmt::format("{}: the log slot at offset {} is damaged: {}; restore the pool from a copy",
                      file_.path(), commit_offset(s), what));
    };
    format::slot_commit_record line;
    std::memcpy(&line, file_.at(commit_offset(s)), sizeof line);
    const auto txid = format::unguard(line.txid, h.id, commit_offset(s));
    if (!txid) return damaged("its commit word fails the check bits");
    if (*txid == 0) return {};
    const bool inside =
        line.offset == records_offset(s) ||
        (line.offset >= h.chunks_offset && line.offset < h.size && line.offset % line_size == 0);
    if (!inside || line.words > (h.size - line.offset) / 8)
      return damaged("its commit line points outside the pool");
    STELE_ASSERT(line.offset + line.words * 8 <= h.size);
    log_record r;
    r.txid = *txid;
    r.payload.resize(line.words);
    if (line.words != 0) std::memcpy(r.payload.data(), file_.at(line.offset), line.words * 8);
    base::checksum sum(h.id ^ *txid);
    for (std::uint64_t w : r.payload) sum.add(w);
    if (sum.value() != line.checksum && !planted<Media>(mutant::base_no_checksum))
      return damaged("its records fail the checksum");
    records.push_back(std::move(r));
    return {};
  }

  pool_medium<Media>& medium_;
  const storage::pool_file& file_;
  home_checksums<Media>& sums_;

 public:
  log_lanes<Media> logs;
  home_writer<Media> home;

 private:
  std::vector<slot_cursor> slot_cursors_;
};

template <class Media>
using base_log = ordered_log<Media, base_records::runs>;
template <class Media>
using base_published = ordered_log<Media, base_records::words>;

}  // namespace stele::detail
