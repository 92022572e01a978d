// What engines of every kind have on a given medium: the medium's common part, control words, the session's begin and end.
#pragma once

#include <fmt/format.h>
#include <tx/engine.h>

namespace stele::detail {

// Which log format a session's logs have; part of the session word on media.
enum class log_kind : std::uint8_t {
  none = 0,
  torn_bit = 1,
  by_head = 3,  // rings of lines or of blocks
  chunks = 4,   // log_structured
  ordered_writes = 5,  // two slots a log; 2, with one, is not read any more
  archapt_redo = 6,    // torn-bit rings beside checksums over home
  archapt_undo = 7,
};

template <class Media>
class media_engine : public engine {
 public:
  media_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared, log_kind kind)
      : state_(state), kind_(kind), shared_(std::move(shared)), control_(*shared_, state.file.header().log_count) {}

  result<> start(std::uint8_t logs_were) override {
    const auto mark = read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    state_.clock.store(std::max(state_.clock.load(), *mark));
    if (auto taken = take_over(static_cast<log_kind>(logs_were)); !taken) return taken;
    write_word(format::session_offset, format::session{.open = true, .log_kind = static_cast<std::uint8_t>(kind_)}.pack());
    control_.fence();  // the session is marked open before its first commit
    return check_medium();
  }

  result<> sync() override { return check_medium(); }

  // Home is durable already (mechanisms that write home late do that first).
  result<> close() override {
    write_word(format::watermark_offset, state_.clock.load());
    control_.fence();  // TxIDs go on from here; before the session is marked closed
    write_word(format::session_offset, format::session{.open = false, .log_kind = static_cast<std::uint8_t>(kind_)}.pack());
    control_.fence();
    return check_medium();
  }

  result<> acknowledge_fallback() override {
    return base::fail(errc::unsupported, "the mechanism in use makes no checkpoints; open the pool with archapt-undo or archapt-redo to acknowledge that it went back to one");
  }

  engine_totals totals() const noexcept override {
    engine_totals t;
    t.media += control_.count;
    return t;
  }

 protected:
  // Makes the logs, empty but of this kind, ready for this mechanism's records.
  virtual result<> take_over(log_kind) { return {}; }
  virtual bool any_failed() noexcept = 0;  // of the media that the mechanism has besides control_

  result<> check_medium() {
    if (!control_.failed() && !any_failed()) return {};
    state_.poisoned.store(true);
    return base::fail(errc::io, fmt::format("{}: writing to the device failed; reopen the pool: recovery decides from what reached it", state_.file.path()));
  }

  // A fence that a commit depends on. False: poisoned.
  bool settled(Media& m) {
    m.fence();
    if (!m.failed()) [[likely]]
      return true;
    state_.poisoned.store(true);
    return false;
  }

  result<std::uint64_t> read_word(std::uint64_t offset) const {
    const auto value = format::control_word(state_.file.base(), state_.file.header().id, offset);
    if (!value) return base::fail(errc::corrupt, fmt::format("{}: the control word at offset {} is damaged (check bits); restore the pool from a copy", state_.file.path(), offset));
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
  Media control_;  // for what no lane's owner does: control words, truncation, recovery
};

}  // namespace stele::detail
