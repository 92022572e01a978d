// base: the conventional order - log, commit record, home, truncation - with a fence after each.
// Page: docs/protocol/base.md. Source: Lu, Shu and Sun, "Blurred Persistence" (2016), section 2.3
// and figure 2(b).
//
// A log has two slots, used in turn. Each slot has a commit line and room for records. A
// transaction leaves the records of the one before it alone, so a memory controller may write its
// records early (docs/protocol/dp2.md). The first word of the commit line is the TxID. It is
// guarded and stored last. Stores to one line persist in order: while the word is 0, the slot holds
// nothing; when it is not 0, commit line and records are complete on media.
#pragma once

#include <format/slot_log.h>
#include <tx/lane_engine.h>

#include <vector>

namespace stele::detail {

template <class Media>
class base_log final : public lane_engine<Media> {
 public:
  base_log(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : lane_engine<Media>(state, std::move(shared), log_kind::ordered_writes),
        slot_cursors_(state.file.header().log_count) {}

  [[nodiscard]] result<> reserve_log(transaction& t) override {
    auto& l = this->lanes_[t.log()];
    this->release_reserved(l);
    const std::uint64_t bytes = format::slot_size(this->state_.file.header().log_size);
    if (16 * 8 * t.lines().size() <= bytes) return {};
    const std::uint64_t words = payload_words(t.lines());
    if (words * 8 <= bytes) return {};
    if (auto reserved = this->reserve_spill(l, t, words); !reserved) return reserved;
    return this->invalidate_block_checksums(l.media, l) ? result<>{} : this->check_medium();
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    using base::mutant;
    using base::planted;
    auto& l = this->lanes_[t.log()];
    const slot at{&l, slot_cursors_[l.number].next};
    const format::slot_commit_record line = make_commit_line(t, at, txid);
    if (planted<Media>(mutant::base_commit_first)) write_commit(at, line);
    write_records(t, l, line.offset);  // 1
    if (!planted<Media>(mutant::base_no_log_fence) && !this->fence_ok(l))
      return false;          // 2: the records are durable before the commit line
    write_commit(at, line);  // 3
    if (!planted<Media>(mutant::base_no_commit_fence) && !this->fence_ok(l))
      return false;  // 4: the commit is durable before home changes
    t.begin_home_stores();
    this->store_home_flushed(l, t, mutant::base_last_home_line);  // 5
    if (!planted<Media>(mutant::base_no_data_fence) && !this->fence_ok(l))
      return false;             // 6: home is durable before the log is truncated
    clear_commit(l.media, at);  // 7
    if (!planted<Media>(mutant::base_no_truncate_fence) && !this->fence_ok(l))
      return false;  // 8: the truncation is durable before locks are released
    this->release_reserved(l);
    slot_cursors_[l.number].next = (at.number + 1) % format::slot_count;
    return true;
  }

  // Replays the transaction of each slot that has one; see docs/protocol/base.md. Recovery may be
  // interrupted and run again: a slot is emptied only after home is durable.
  [[nodiscard]] result<> recover() override {
    std::vector<log_record> records;
    for (auto& l : this->lanes_)
      for (unsigned s = 0;
           s < (base::planted<Media>(base::mutant::base_first_slot_only) ? 1 : format::slot_count);
           ++s)
        if (auto read = read_slot({&l, s}, records); !read) return read;
    const auto sums = this->block_checksums_.state();
    if (!sums) return std::unexpected(sums.error());
    std::uint64_t newest = 0;
    line_set lines;
    for (const log_record& r : records) {
      auto& file = this->state_.file;
      auto replayed = for_each_stored_run(
          file, r.payload, [&](format::run_header head, const std::uint64_t* words) {
            for (std::uint32_t i = 0; i < head.count; ++i)
              this->store_word_home(this->control_, file.at(head.offset + 8 * i), words + i,
                                    head.mask);
            this->control_.flush(file.at(head.offset), head.count * 8);
            for_each_line(head, [&](std::uint64_t line) { lines.add(line); });
          });
      if (!replayed) return replayed;
      newest = std::max(newest, r.txid);
    }
    this->recompute_block_checksums(lines.all(), *sums);
    if (!base::planted<Media>(base::mutant::base_recover_unfenced))
      this->control_.fence();  // home is durable before the logs are emptied
    clear_all();
    this->state_.clock.store(newest);
    return this->check_medium();
  }

 private:
  bool maintains_block_checksums() const noexcept override { return true; }
  using lane = typename lane_engine<Media>::lane;
  struct slot {
    lane* l;
    unsigned number;
  };
  struct alignas(64) slot_cursor {  // one for each log; only the log's owner uses it
    unsigned next = 0;
  };

  std::uint64_t commit_offset(slot s) const {
    return this->log_offset(*s.l) + format::slot_commit_offset(s.number);
  }
  std::uint64_t records_offset(slot s) const {
    return this->log_offset(*s.l) +
           format::slot_records_offset(s.number, this->state_.file.header().log_size);
  }

  format::slot_commit_record make_commit_line(const transaction& t, slot s, std::uint64_t txid) {
    const auto& h = this->state_.file.header();
    const std::uint64_t offset = s.l->reserved_bytes != 0 ? s.l->reserved_spill : records_offset(s);
    struct checksum_writer {
      base::checksum sum;
      std::uint64_t words = 0;
      void append_word(std::uint64_t w) { sum.add(w), ++words; }
    } out{base::checksum(h.id ^ txid)};
    this->write_any_runs(t.lines(), out, this->new_value);
    return {format::guard(txid, h.id, commit_offset(s)), offset, out.words, out.sum.value(), {}};
  }

  void write_records(const transaction& t, typename lane_engine<Media>::lane& l,
                     std::uint64_t offset) {
    struct writer {
      Media* media;
      std::byte* to;
      void append_word(std::uint64_t w) { media->store(to, &w, 8), to += 8; }
    } out{&l.media, this->state_.file.at(offset)};
    std::byte* const begin = out.to;
    if (l.reserved_bytes != 0) t.before_store(offset, l.reserved_bytes);
    this->write_any_runs(t.lines(), out, this->new_value);
    l.media.flush(begin, static_cast<std::size_t>(out.to - begin));
  }
  void write_commit(slot s, const format::slot_commit_record& line) {
    std::byte* const to = this->state_.file.at(commit_offset(s));
    Media& media = s.l->media;
    if (base::planted<Media>(base::mutant::base_word_first)) media.store(to, &line.txid, 8);
    media.store(to + offsetof(format::slot_commit_record, offset), &line.offset, 8);
    media.store(to + offsetof(format::slot_commit_record, words), &line.words, 8);
    media.store(to + offsetof(format::slot_commit_record, checksum), &line.checksum, 8);
    media.store(to, &line.txid, 8);
    media.flush(to, sizeof line);
  }
  void clear_commit(Media& media, slot s) {
    constexpr std::uint64_t nothing = 0;
    std::byte* const at = this->state_.file.at(commit_offset(s));
    media.store(at, &nothing, 8);
    media.flush(at, 8);
  }
  void clear_all() {
    for (auto& l : this->lanes_)
      for (unsigned s = 0; s < format::slot_count; ++s) clear_commit(this->control_, {&l, s});
    this->control_.fence();  // slots are empty on media before new commits
  }
  [[nodiscard]] result<> attach_logs(log_kind logs_were) override {
    if (logs_were != log_kind::ordered_writes) clear_all();
    return {};
  }

  [[nodiscard]] result<> read_slot(slot s, std::vector<log_record>& records) {
    const auto& file = this->state_.file;
    const auto& h = file.header();
    auto damaged = [&](const char* what) {
      return base::fail(
          errc::corrupt,
          fmt::format("{}: the log slot at offset {} is damaged: {}; restore the pool from a copy",
                      file.path(), commit_offset(s), what));
    };
    format::slot_commit_record line;
    std::memcpy(&line, file.at(commit_offset(s)), sizeof line);
    const auto txid = format::unguard(line.txid, h.id, commit_offset(s));
    if (!txid) return damaged("its commit word fails the check bits");
    if (*txid == 0) return {};
    const bool inside =
        line.offset == records_offset(s) ||
        (line.offset >= h.chunks_offset && line.offset < h.size && line.offset % line_size == 0);
    if (!inside || line.words > (h.size - line.offset) / 8)
      return damaged("its commit line points outside the pool");
    log_record r;
    r.txid = *txid;
    r.payload.resize(line.words);
    if (line.words != 0) std::memcpy(r.payload.data(), file.at(line.offset), line.words * 8);
    base::checksum sum(h.id ^ *txid);
    for (std::uint64_t w : r.payload) sum.add(w);
    if (sum.value() != line.checksum && !base::planted<Media>(base::mutant::base_no_checksum))
      return damaged("its records fail the checksum");
    records.push_back(std::move(r));
    return {};
  }

  std::vector<slot_cursor> slot_cursors_;
};

}  // namespace stele::detail
