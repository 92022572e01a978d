// What engines of every kind share on a medium: the medium's shared part, control words, growth,
// block checksums, and the begin and end of a session.
#pragma once

#include <base/check.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <tx/engine.h>
#include <tx/log/checksum_deltas.h>
#include <tx/log/line_set.h>

namespace stele::detail {

// The log format of a session; part of the session word on media.
enum class log_kind : std::uint8_t {
  none = 0,
  torn_bit = 1,
  lines_or_blocks = 3,  // rings of lines or of blocks; each head word says which
  chunks = 4,           // log_structured
  ordered_writes = 5,   // two slots a log; kind 2 had one slot and is not read any more
  archapt_redo = 6,     // torn-bit rings, and checksums over matrices of home
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

  // Precondition: home is durable (mechanisms that make it durable late do that first).
  [[nodiscard]] result<> close() override {
    if (auto ended = finish_block_checksums(); !ended) return ended;
    write_word(format::watermark_offset, state_.clock.load());
    control_.fence();  // the watermark, where TxIDs go on, before the session is marked closed
    write_word(format::session_offset,
               format::session{.open = false, .log_kind = static_cast<std::uint8_t>(kind_)}.pack());
    control_.fence();  // the session is marked closed before close() returns
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
      control_.fence();  // 2: table and slot are durable before the slot is in force
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
  // Makes the logs, which are empty and of the kind given, ready for this mechanism's records.
  [[nodiscard]] virtual result<> attach_logs(log_kind) { return {}; }
  virtual bool any_failed() noexcept = 0;  // whether a medium other than control_ has failed

  // Whether this mechanism updates the block checksums of what it makes durable
  // (docs/protocol/sums.md).
  virtual bool maintains_block_checksums() const noexcept { return false; }

  // The first session stores the magic constants in home. S1: block checksums that are not valid
  // are recomputed, if this mechanism maintains them. S2: otherwise they do not count in this
  // session.
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
      control_.fence();  // checksums are durably `none` before home changes without them
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
    control_.fence();  // the magic constants are durable before the control word requires them
    write_word(format::magic_state_offset, 1);
  }
  // S5. Precondition: home is durable and no thread changes it any more.
  [[nodiscard]] result<> finish_block_checksums() {
    return block_checksums_.present() && !maintains_block_checksums() ? compute_block_checksums()
                                                                      : result<>{};
  }
  // In a fresh pool free space is zero, as its checksums say: they stay.
  [[nodiscard]] result<> compute_block_checksums(bool fresh = false) {
    const bool stay = fresh || base::planted(base::mutant::sums_free_stay);
    if (auto made = block_checksums_.recompute_all(control_, state_.heap, stay); !made) return made;
    control_.fence();  // checksums are durable before they count
    write_checksum_state(format::block_checksum_state::valid);
    return {};
  }
  void write_checksum_state(format::block_checksum_state s) {
    write_word(format::block_checksum_state_offset, static_cast<std::uint64_t>(s));
  }
  // S3, S4: applies the deltas of records; durable after the control medium's next fence.
  // Precondition: mark_checksums_moving(). at_rest: no thread stores to home.
  void apply_checksum_deltas(const checksum_deltas& changes, bool at_rest = false) {
    if (base::planted<Media>(base::mutant::sums_not_renewed)) return;
    std::size_t left = base::planted<Media>(base::mutant::sums_last_block) ? 1 : 0;
    changes.for_each([&](std::uint64_t block, checksum_deltas::delta c) {
      if (left != 0) return void(--left);
      base::check(c.known || at_rest, "a log record of this session does not say what it changes");
      const bool has_delta =
          c.known && !(at_rest && block_checksums_.stored(block) == format::block_checksum_unknown);
      // A block is recomputed only while no thread stores to it.
      has_delta ? block_checksums_.apply_delta(control_, block, c.amount)
                : block_checksums_.recompute(control_, block);
    });
  }
  // S3, S4 for records without deltas: recomputes the checksums of the blocks of these lines;
  // durable after the control medium's next fence. Without memory for the set of blocks, a block
  // may be recomputed more than once.
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
  // Until the state is `valid` again, a block that a record above the watermark names may have its
  // checksum from before the record or from after it.
  void mark_checksums_moving(base::mutant unsaid) {
    if (base::planted<Media>(unsaid)) return;
    write_checksum_state(format::block_checksum_state::updating);
    if (!base::planted<Media>(base::mutant::sums_move_unfenced))
      control_.fence();  // the state word is durable before the first checksum changes
  }

  // Writes the whole chunk table and checksum array of a grown pool: an earlier attempt that
  // crashed may have left other bytes there.
  [[nodiscard]] result<> write_tables(const format::pool_header& old, const format::pool_header& h,
                                      std::uint64_t table_chunk) {
    const auto words = state_.heap.build_grown_table(
        h.chunk_count, table_chunk, storage::table_chunk_count(old, h.chunk_count));
    if (!words) return std::unexpected(words.error());
    std::byte* const base = state_.file.base();
    put(base + h.table_offset, words->data(), 8 * words->size());
    if (h.block_checksums_offset == 0) return {};
    // New chunks may hold such bytes too, so their checksums are `unknown`.
    std::vector<std::uint64_t> sums(format::block_checksum_count(h.size - h.home_offset),
                                    format::block_checksum_unknown);
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

  // A lost page of the mapping poisons the pool but does not fail a medium. What was read from it
  // since is zeroes.
  [[nodiscard]] result<> check_pages() const {
    if (!state_.poisoned.load()) return {};
    return base::fail(
        errc::poisoned,
        fmt::format("{}: an earlier write failed, or part of the file is gone (truncated, or "
                    "unreadable); reopen the pool, or restore it from a copy",
                    state_.file.path()));
  }

  // A fence that a commit depends on. False: it failed, and the pool is poisoned.
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
  // The medium of work that no lane's owner does: control words, truncation, recovery, growth.
  Media control_;
  storage::block_checksums block_checksums_{state_.file};

 private:
  line_set recomputed_blocks_;  // local to recompute_block_checksums; a member to keep its memory
};

}  // namespace stele::detail
