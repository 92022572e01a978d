// What engines of every kind have on a given medium: the medium's common part, control words, the
// session's begin and end.
#pragma once

#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <tx/engine.h>
#include <tx/log/checksum_deltas.h>
#include <tx/log/line_set.h>

namespace stele::detail {

// Which log format a session's logs have; part of the session word on media.
enum class log_kind : std::uint8_t {
  none = 0,
  torn_bit = 1,
  lines_or_blocks = 3,  // rings of lines or of blocks
  chunks = 4,           // log_structured
  ordered_writes = 5,   // two slots a log; 2, with one, is not read any more
  archapt_redo = 6,     // torn-bit rings beside checksums over home
  archapt_undo = 7,
};

template <class Media>
class media_engine : public engine {
 public:
  media_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared, log_kind kind)
      : state_(state),
        kind_(kind),
        shared_(std::move(shared)),
        control_(*shared_, state.file.header().log_count) {}

  [[nodiscard]] result<> start(std::uint8_t logs_were) override {
    const auto mark = read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    state_.clock.store(std::max(state_.clock.load(), *mark));
    if (state_.clock.load() >= format::txid_limit)
      return base::fail(
          errc::corrupt,
          fmt::format(
              "{}: its newest TxID, {}, is one that no program draws; restore the pool from a copy",
              state_.file.path(), state_.clock.load()));
    if (auto taken = attach_logs(static_cast<log_kind>(logs_were)); !taken) return taken;
    if (auto begun = prepare_home(static_cast<log_kind>(logs_were)); !begun) return begun;
    write_word(format::session_offset,
               format::session{.open = true, .log_kind = static_cast<std::uint8_t>(kind_)}.pack());
    control_.fence();  // the session is marked open before its first commit
    return check_medium();
  }

  [[nodiscard]] result<> sync() override { return check_medium(); }

  // Home is durable already (mechanisms that write home late do that first).
  [[nodiscard]] result<> close() override {
    if (auto ended = finish_block_checksums(); !ended) return ended;
    write_word(format::watermark_offset, state_.clock.load());
    control_.fence();  // TxIDs go on from here; before the session is marked closed
    write_word(format::session_offset,
               format::session{.open = false, .log_kind = static_cast<std::uint8_t>(kind_)}.pack());
    control_.fence();
    return check_medium();
  }

  [[nodiscard]] result<> checkpoint() override {
    return base::fail(errc::unsupported,
                      "the mechanism in use cannot empty its logs while the pool is open; open it "
                      "with the mechanism 'default'");
  }

  // docs/protocol/grow.md, steps 1 to 3.
  [[nodiscard]] result<> grow(const format::growth& to) override {
    using base::mutant;
    using base::planted;
    const auto old = state_.file.header();
    const auto h = storage::grown_header(old, to, state_.file.path());
    if (!h) return std::unexpected(h.error());
    if (auto written = write_tables(old, *h, to.table_chunk); !written) return written;  // 1
    const auto in_force = read_word(format::growth_offset);
    if (!in_force) return std::unexpected(in_force.error());
    const std::uint64_t slot = planted<Media>(mutant::grow_same_slot) || *in_force != 1 ? 1 : 2;
    write_word(format::growth_slot_offset(slot), to.chunk_count);
    write_word(format::growth_slot_offset(slot) + 8, to.table_chunk);
    if (!planted<Media>(mutant::grow_no_slot_fence))
      control_.fence();  // 2: table and slot are durable before it is in force
    write_word(format::growth_offset, slot);
    control_.fence();  // 3: grown
    if (auto checked = check_medium(); !checked) return checked;
    state_.file.apply_growth(to);
    return {};
  }

  [[nodiscard]] result<> refresh_block_checksums() override { return {}; }

  [[nodiscard]] result<> acknowledge_fallback() override {
    return base::fail(errc::unsupported,
                      "the mechanism in use makes no checkpoints; open the pool with archapt-undo "
                      "or archapt-redo to acknowledge that it went back to one");
  }

  engine_totals totals() const noexcept override {
    engine_totals t;
    t.media += control_.count;
    return t;
  }

 protected:
  // Makes the logs, empty but of this kind, ready for this mechanism's records.
  [[nodiscard]] virtual result<> attach_logs(log_kind) { return {}; }
  virtual bool any_failed() noexcept = 0;  // of the media that the mechanism has besides control_

  // Whether the sums of home's blocks (docs/protocol/sums.md) go with what this mechanism makes
  // durable.
  virtual bool maintains_block_checksums() const noexcept { return false; }

  // The first session marks home. S1, S2: sums of a session that did not keep them are made anew,
  // or they do not count in this one.
  [[nodiscard]] result<> prepare_home(log_kind logs_were) {
    const auto state = block_checksums_.state();
    if (!state) return std::unexpected(state.error());
    const auto marked = read_word(format::magic_state_offset);
    if (!marked) return std::unexpected(marked.error());
    const bool marks = *marked == 0 && state_.file.header().home == format::home_kind::in_place &&
                       kind_ != log_kind::none;
    const bool stay =
        *state == format::block_checksum_state::valid && maintains_block_checksums() && !marks;
    if (block_checksums_.present() && *state != format::block_checksum_state::none && !stay) {
      write_checksum_state(format::block_checksum_state::none);
      control_.fence();  // they do not count before home changes without them
    }
    if (control_.failed()) return check_medium();
    if (marks) mark_home();
    const bool fresh =
        *state == format::block_checksum_state::legacy && logs_were == log_kind::none;
    return block_checksums_.present() && maintains_block_checksums() && !stay
               ? compute_block_checksums(fresh)
               : result<>{};
  }
  void mark_home() {
    state_.heap.for_each_magic_word([&](std::uint64_t offset, std::uint64_t word) {
      put(state_.file.at(offset), &word, sizeof word);
    });
    control_.fence();  // home is marked before the pool says so
    write_word(format::magic_state_offset, 1);
  }
  // S5: home is durable, nobody changes it any more.
  [[nodiscard]] result<> finish_block_checksums() {
    return block_checksums_.present() && !maintains_block_checksums() ? compute_block_checksums()
                                                                      : result<>{};
  }
  // A fresh pool has zeroes where it is free, as its sums say.
  [[nodiscard]] result<> compute_block_checksums(bool fresh = false) {
    const bool stay = fresh || base::planted(base::mutant::sums_free_stay);
    if (auto made = block_checksums_.recompute_all(control_, state_.heap, stay); !made) return made;
    control_.fence();  // they are durable before they count
    write_checksum_state(format::block_checksum_state::valid);
    return {};
  }
  void write_checksum_state(format::block_checksum_state s) {
    write_word(format::block_checksum_state_offset, static_cast<std::uint64_t>(s));
  }
  // S3, S4: what records have changed; durable with the control medium's next fence. Before: they
  // are said to move.
  void apply_checksum_deltas(const checksum_deltas& changes, bool at_rest = false) {
    if (base::planted<Media>(base::mutant::sums_not_renewed)) return;
    std::size_t left = base::planted<Media>(base::mutant::sums_last_block) ? 1 : 0;
    changes.for_each([&](std::uint64_t block, checksum_deltas::delta c) {
      if (left != 0) return void(--left);
      base::check(c.known || at_rest, "a log record of this session does not say what it changes");
      const bool has_delta =
          c.known && !(at_rest && block_checksums_.stored(block) == format::block_checksum_unknown);
      has_delta
          ? block_checksums_.apply_delta(control_, block, c.amount)
          : block_checksums_.recompute(control_, block);  // renewed only while nobody stores to it
    });
  }
  // S3, S4, where records do not say what they change: of the blocks that these lines are in;
  // durable with the control medium's next fence. A block for whose note there is no memory may be
  // summed up more than once.
  void recompute_block_checksums(
      std::span<const std::uint64_t> lines,
      format::block_checksum_state state = format::block_checksum_state::valid) noexcept {
    if (!block_checksums_.present() || state == format::block_checksum_state::none ||
        base::planted<Media>(base::mutant::sums_not_renewed))
      return;
    const auto renew = [&](std::uint64_t block) {
      state == format::block_checksum_state::legacy
          ? block_checksums_.recompute_legacy(control_, block)
          : block_checksums_.recompute(control_, block);
    };
    recomputed_blocks_.clear();
    for (std::uint64_t line : lines)
      if (!recomputed_blocks_.try_add(block_checksums_.block_of(line)))
        renew(block_checksums_.block_of(line));
    if (base::planted<Media>(base::mutant::sums_last_block)) recomputed_blocks_.drop_last();
    for (std::uint64_t block : recomputed_blocks_.all()) renew(block);
  }
  // From here until they are kept again, the sums of the blocks that records above the watermark
  // name may be those before the records or after.
  void mark_checksums_moving(base::mutant unsaid) {
    if (base::planted<Media>(unsaid)) return;
    write_checksum_state(format::block_checksum_state::updating);
    if (!base::planted<Media>(base::mutant::sums_move_unfenced))
      control_.fence();  // said before the first sum moves
  }

  // The table and sums of a grown pool, whole: what is there may be left of an attempt that was cut
  // off.
  [[nodiscard]] result<> write_tables(const format::pool_header& old, const format::pool_header& h,
                                      std::uint64_t table_chunk) {
    const auto words = state_.heap.build_grown_table(
        h.chunk_count, table_chunk, storage::table_chunk_count(old, h.chunk_count));
    if (!words) return std::unexpected(words.error());
    std::byte* const base = state_.file.base();
    put(base + h.table_offset, words->data(), 8 * words->size());
    if (h.block_checksums_offset == 0) return {};
    std::vector<std::uint64_t> sums(
        format::block_checksum_count(h.size - h.home_offset),
        format::block_checksum_unknown);  // of new chunks, which may hold what is left of such an
                                          // attempt
    std::memcpy(sums.data(), base + old.block_checksums_offset,
                8 * format::block_checksum_count(old.size - old.home_offset));
    for (std::uint64_t block = block_checksums_.block_of(h.table_offset);
         block + format::checksum_block_size <= h.block_checksums_offset;
         block += format::checksum_block_size)
      sums[(block - h.home_offset) / format::checksum_block_size] = block_checksums_.compute(block);
    put(base + h.block_checksums_offset, sums.data(), 8 * sums.size());
    return {};
  }
  void put(std::byte* to, const void* from, std::size_t size) {
    control_.store(to, from, size);
    control_.flush(to, size);
  }

  [[nodiscard]] result<> check_medium() {
    if (!control_.failed() && !any_failed()) return check_pages();
    state_.poisoned.store(true);
    return base::fail(errc::io, fmt::format("{}: writing to the device failed; reopen the pool: "
                                            "recovery decides from what reached it",
                                            state_.file.path()));
  }

  // A page of the mapping that is gone poisons the pool while a medium does its work; what followed
  // may rest on zeroes.
  [[nodiscard]] result<> check_pages() const {
    if (!state_.poisoned.load()) return {};
    return base::fail(
        errc::poisoned,
        fmt::format("{}: an earlier write failed, or part of the file is gone (truncated, or "
                    "unreadable); reopen the pool, or restore it from a copy",
                    state_.file.path()));
  }

  // A fence that a commit depends on. False: poisoned.
  bool fence_ok(Media& m, const std::source_location& at = std::source_location::current()) {
    media::fence_at(m, at);
    if (!m.failed()) [[likely]]
      return true;
    state_.poisoned.store(true);
    return false;
  }

  [[nodiscard]] result<std::uint64_t> read_word(std::uint64_t offset) const {
    const auto value =
        format::read_control_word(state_.file.base(), state_.file.header().id, offset);
    if (!value)
      return base::fail(errc::corrupt, fmt::format("{}: the control word at offset {} is damaged "
                                                   "(check bits); restore the pool from a copy",
                                                   state_.file.path(), offset));
    return *value;
  }
  void write_word(std::uint64_t offset, std::uint64_t value) {
    const std::uint64_t word = format::guard(value, state_.file.header().id, offset);
    control_.store(state_.file.base() + offset, &word, 8);
    control_.flush(state_.file.base() + offset, 8);
  }

  pool_state& state_;
  const log_kind kind_;
  std::unique_ptr<typename Media::shared> shared_;
  Media control_;  // for what no lane's owner does: control words, truncation, recovery, growth
  storage::block_checksums block_checksums_{state_.file};

 private:
  line_set recomputed_blocks_;  // recompute_block_checksums': kept for its memory
};

}  // namespace stele::detail
