// base: the conventional order - log, commit record, home, cut - with a fence after each.
// Page: docs/protocol/base.md. Source: Lu, Shu and Sun, "Blurred Persistence" (2016), section 2.3 and figure 2(b).
//
// A log is a control line, a commit line and the records. The commit line's first word is its TxID, guarded, stored last:
// stores to one line persist in order, so while it is 0 the log holds nothing, and when it is not, everything is there.
#pragma once

#include <tx/engine_on.h>

namespace stele::detail {

template <class Media>
class base_log final : public engine_on<Media> {
 public:
  base_log(pool_state& state, std::unique_ptr<typename Media::shared> shared) : engine_on<Media>(state, std::move(shared), log_kind::ordered_writes) {}

  result<> prepare(transaction& t) override {
    auto& l = this->lanes_[t.log()];
    this->drop_reserved(l);
    const std::uint64_t bytes = this->state_.file.header().log_size - records_at;
    if (16 * 8 * t.lines().size() <= bytes) return {};
    const std::uint64_t words = payload_words(t.lines());
    return words * 8 <= bytes ? result<>{} : this->prepare_spill(l, t, words);
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    using base::mutant;
    using base::planted;
    auto& l = this->lanes_[t.log()];
    const commit_line line = describe(t, l, txid);
    if (planted<Media>(mutant::base_commit_first)) write_commit(l, line);
    write_records(t, l, line.offset);                                                    // 1
    if (!planted<Media>(mutant::base_no_log_fence) && !this->settled(l)) return false;   // 2: records before the commit line
    write_commit(l, line);                                                               // 3
    if (!planted<Media>(mutant::base_no_commit_fence) && !this->settled(l)) return false;  // 4: the commit before home changes
    t.begin_home();
    this->store_home_flushed(l, t, mutant::base_last_home_line);                                        // 5
    if (!planted<Media>(mutant::base_no_data_fence) && !this->settled(l)) return false;  // 6: home before the log is cut
    clear_commit(l.media, l);                                                            // 7
    if (!planted<Media>(mutant::base_no_truncate_fence) && !this->settled(l)) return false;  // 8: the cut before locks go
    this->drop_reserved(l);
    return true;
  }

  // Replays the transaction of each log that has one; see docs/protocol/base.md. Safe to run again: a log is cut after home
  // is durable.
  result<> recover() override {
    std::vector<log_record> records;
    for (auto& l : this->lanes_)
      if (auto read = read_log(l, records); !read) return read;
    std::uint64_t newest = 0;
    for (const log_record& r : records) {
      auto& file = this->state_.file;
      auto replayed = for_each_stored_run(file, r.payload, [&](format::run_head head, const std::uint64_t* words) {
        for (std::uint32_t i = 0; i < head.count; ++i) this->store_word_home(this->control_, file.at(head.offset + 8 * i), words + i, head.mask);
        this->control_.flush(file.at(head.offset), head.count * 8);
      });
      if (!replayed) return replayed;
      newest = std::max(newest, r.txid);
    }
    if (!base::planted<Media>(base::mutant::base_recover_unfenced)) this->control_.fence();  // home before the logs are cut
    clear_all();
    this->state_.clock.store(newest);
    return this->check_medium();
  }

 private:
  static constexpr std::uint64_t commit_at = format::log_control_size;
  static constexpr std::uint64_t records_at = commit_at + line_size;

  struct commit_line {
    std::uint64_t txid;  // guarded; 0: the log is empty
    std::uint64_t offset, words, checksum;
  };

  std::byte* commit_bytes(const typename engine_on<Media>::lane& l) const { return this->state_.file.base() + this->log_offset(l) + commit_at; }

  commit_line describe(const transaction& t, typename engine_on<Media>::lane& l, std::uint64_t txid) {
    const auto& h = this->state_.file.header();
    const std::uint64_t offset = l.reserved_bytes != 0 ? l.reserved_spill : this->log_offset(l) + records_at;
    struct summer {
      base::checksum sum;
      std::uint64_t words = 0;
      void word(std::uint64_t w) { sum.add(w), ++words; }
    } out{base::checksum(h.id ^ txid)};
    this->write_any_runs(t.lines(), out, this->new_value);
    return {format::guard(txid, h.id, this->log_offset(l) + commit_at), offset, out.words, out.sum.value()};
  }

  void write_records(const transaction& t, typename engine_on<Media>::lane& l, std::uint64_t offset) {
    struct writer {
      Media* media;
      std::byte* to;
      void word(std::uint64_t w) { media->store(to, &w, 8), to += 8; }
    } out{&l.media, this->state_.file.at(offset)};
    std::byte* const begin = out.to;
    this->write_any_runs(t.lines(), out, this->new_value);
    l.media.flush(begin, static_cast<std::size_t>(out.to - begin));
  }
  void write_commit(typename engine_on<Media>::lane& l, const commit_line& line) {
    std::byte* const to = commit_bytes(l);
    if (base::planted<Media>(base::mutant::base_word_first)) l.media.store(to, &line.txid, 8);
    for (const std::uint64_t* field : {&line.offset, &line.words, &line.checksum}) l.media.store(to + (reinterpret_cast<const std::byte*>(field) - reinterpret_cast<const std::byte*>(&line)), field, 8);
    l.media.store(to, &line.txid, 8);
    l.media.flush(to, sizeof line);
  }
  void clear_commit(Media& media, typename engine_on<Media>::lane& l) {
    constexpr std::uint64_t nothing = 0;
    media.store(commit_bytes(l), &nothing, 8);
    media.flush(commit_bytes(l), 8);
  }
  void clear_all() {
    for (auto& l : this->lanes_) clear_commit(this->control_, l);
    this->control_.fence();  // the cuts before new commits
  }
  result<> take_over(log_kind logs_were) override {
    if (logs_were != log_kind::ordered_writes) clear_all();
    return {};
  }

  result<> read_log(typename engine_on<Media>::lane& l, std::vector<log_record>& records) {
    const auto& file = this->state_.file;
    const auto& h = file.header();
    auto damaged = [&](const char* what) {
      return base::fail(errc::corrupt, fmt::format("{}: the log at offset {} is damaged: {}; restore the pool from a copy", file.path(), this->log_offset(l), what));
    };
    commit_line line;
    std::memcpy(&line, commit_bytes(l), sizeof line);
    const auto txid = format::unguard(line.txid, h.id, this->log_offset(l) + commit_at);
    if (!txid) return damaged("its commit word fails the check bits");
    if (*txid == 0) return {};
    const bool inside = line.offset == this->log_offset(l) + records_at || (line.offset >= h.chunks_offset && line.offset < h.size && line.offset % line_size == 0);
    if (!inside || line.words > (h.size - line.offset) / 8) return damaged("its commit line points outside the pool");
    log_record r;
    r.txid = *txid;
    r.payload.resize(line.words);
    if (line.words != 0) std::memcpy(r.payload.data(), file.at(line.offset), line.words * 8);
    base::checksum sum(h.id ^ *txid);
    for (std::uint64_t w : r.payload) sum.add(w);
    if (sum.value() != line.checksum) return damaged("its records fail the checksum");
    records.push_back(std::move(r));
    return {};
  }
};

}  // namespace stele::detail
