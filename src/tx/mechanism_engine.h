// The engine of a mechanism. A mechanism is a class template over Media that names its parts and
// has its commit and its recovery; this fits it to the interface that the runtime calls. The
// mechanism is bound at compile time: a commit is one virtual call.
//
// A mechanism has (redo.h is the shortest; docs/guide/mechanism.md has the steps)
//   using medium = Media;
//   static constexpr log_kind kind;           its log format, in the session word
//   static constexpr checksum_upkeep upkeep;  when it keeps the block checksums of home true
//   NAME(pool_medium<Media>&, home_checksums<Media>&, const engine_tuning&);
//   result<> reserve_log(transaction&);       before the TxID is drawn; may wait. On an error
//                                             neither home nor a log has changed
//   bool commit(transaction&, txid);          the point of no return. False: the medium failed
//   result<> recover();
// Parts by these names are used here: logs (log_lanes), truncation (log_truncation). What else the
// interface names a mechanism may have, if it differs from what is said here: attach, close,
// assign_txid, flush_deferred, harden_deferred, durable_through, add_totals, ... One that takes
// part in running transactions has the functions of a store_observer, or load_observer(log).
#pragma once

#include <base/assert.h>
#include <base/flatten.h>
#include <base/mutant.h>
#include <pool/header_version.h>
#include <tx/engine.h>
#include <tx/observers.h>
#include <tx/pool_growth.h>
#include <tx/transaction_inl.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <type_traits>

namespace stele::detail {

template <class Mechanism>
class observer_of_stores final : public store_observer {
 public:
  explicit observer_of_stores(Mechanism& m) noexcept : mechanism_(m) {}

  bool begin(transaction& t) override {
    const bool observes = mechanism_.begin(t);
    STELE_ASSERT(!observes || !t.exceeds_log);
    return observes;
  }
  void store(transaction& t, written_line& line, const written_line& stored) override {
    STELE_ASSERT(line.offset == stored.offset && stored.mask != 0);
    mechanism_.store(t, line, stored);
  }
  std::uint64_t word(const written_line& line, unsigned word) const noexcept override {
    STELE_ASSERT(line.word_mask(word) != 0);
    if constexpr (requires { mechanism_.word(line, word); })
      return mechanism_.word(line, word);
    else
      return line.words[word];
  }
  void abort(transaction& t) noexcept override { mechanism_.abort(t); }

 private:
  Mechanism& mechanism_;
};

template <class Mechanism>
class mechanism_engine final : public engine {
 public:
  using Media = typename Mechanism::medium;

  mechanism_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared,
                   const engine_tuning& tuning)
      : medium_(state, std::move(shared)),
        sums_(medium_, Mechanism::upkeep),
        mechanism_(medium_, sums_, tuning) {}

  traits what() const noexcept override {
    if constexpr (requires { Mechanism::what; })
      return Mechanism::what;
    else
      return {};
  }

  // Flattened: a call spills registers, and stores after a fence delay the next one
  // (docs/decisions/7-tried.md). Not for the explorer, to compile quickly.
  commit_status commit(transaction& t) override {
    STELE_ASSERT(!t.only_reads());
    if constexpr (!Media::under_exploration)
      return commit_flattened(t);
    else
      return t.commit_by(mechanism_);
  }
  [[nodiscard]] result<> recover() override { return mechanism_.recover(); }

  [[nodiscard]] result<> start(std::uint8_t logs_were) override {
    const auto were = static_cast<log_kind>(logs_were);
    const auto mark = medium_.read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    auto& state = medium_.state;
    state.clock.store(std::max(state.clock.load(), *mark));
    if (state.clock.load() >= format::txid_limit)
      return base::fail(
          errc::corrupt,
          fmt::format(
              "{}: its newest TxID, {}, is one that no program draws; restore the pool from a copy",
              state.file.path(), state.clock.load()));
    if (auto taken = attach(were); !taken) return taken;
    STELE_ASSERT_ALWAYS(is_idle());
    raise_version();
    const auto magic = medium_.read_word(format::magic_state_offset);
    if (!magic) return std::unexpected(magic.error());
    // The first session stores the magic constants in home.
    const bool marks = *magic == 0 && state.file.header().home == format::home_kind::in_place &&
                       Mechanism::kind != log_kind::none;
    if (auto begun =
            sums_.begin_session(were == log_kind::none, marks, [this] { store_magic_words(); });
        !begun)
      return begun;
    write_session(true);
    // The session is marked open, and the pool has the present version, before the first commit.
    medium_.control.fence();
    return medium_.check();
  }
  // The mechanism makes home durable and empties its logs first.
  [[nodiscard]] result<> close() override {
    if constexpr (requires { mechanism_.close(); }) {
      if (auto closed = mechanism_.close(); !closed) return closed;
    } else if constexpr (truncates_later) {
      if (auto closed = mechanism_.truncation.close(); !closed) return closed;
    }
    if (auto sound = medium_.check(); !sound) return sound;
    STELE_ASSERT_ALWAYS(is_idle());
    if (auto ended = sums_.end_session(); !ended) return ended;
    medium_.write_word(format::watermark_offset, medium_.state.clock.load());
    medium_.control.fence();  // the watermark, where TxIDs go on, before the session is closed
    write_session(false);
    medium_.control.fence();  // the session is marked closed before close() returns
    return medium_.check();
  }

  void leave_to_parent() noexcept override {
    if constexpr (requires { medium_.shared->leave_to_parent(); })
      medium_.shared->leave_to_parent();
  }

  virtual_home* home() noexcept override {
    if constexpr (requires { mechanism_.home(); })
      return mechanism_.home();
    else
      return nullptr;
  }

  detail::store_observer* store_observer() noexcept override {
    if constexpr (observes_stores)
      return &observer_;
    else
      return nullptr;
  }
  detail::load_observer* load_observer(unsigned log) noexcept override {
    detail::load_observer* of_mechanism = nullptr;
    if constexpr (requires { mechanism_.load_observer(log); })
      of_mechanism = mechanism_.load_observer(log);
    // A medium may record the loads.
    if constexpr (requires { medium_.shared->record_loads(log, of_mechanism); })
      return medium_.shared->record_loads(log, of_mechanism);
    else
      return of_mechanism;
  }

  void flush_deferred() override {
    if constexpr (requires { mechanism_.flush_deferred(); }) mechanism_.flush_deferred();
  }
  std::uint64_t durable_through() const noexcept override {
    if constexpr (requires { mechanism_.durable_through(); })
      return mechanism_.durable_through();
    else
      return pool_state::no_commit;
  }
  [[nodiscard]] result<> sync() override {
    if constexpr (requires { mechanism_.harden_deferred(); })
      mechanism_.harden_deferred();
    else
      flush_deferred();
    return medium_.check();
  }

  [[nodiscard]] result<> checkpoint() override {
    if constexpr (truncates_later)
      return mechanism_.truncation.empty_logs();
    else
      return medium_.check();  // each commit has truncated its log, durably
  }
  [[nodiscard]] result<> refresh_block_checksums() override {
    if constexpr (Mechanism::upkeep == checksum_upkeep::at_truncation)
      return checkpoint();
    else
      return {};
  }
  [[nodiscard]] result<> grow(const format::growth& to) override {
    STELE_ASSERT_ALWAYS(to.chunk_count > medium_.state.file.header().chunk_count);
    const auto hold = exclude_truncations();
    return grow_pool(medium_, sums_.blocks(), to);
  }
  [[nodiscard]] result<> write_control_word(std::uint64_t offset, std::uint64_t value) override {
    const auto hold = exclude_truncations();
    medium_.write_word(offset, value);
    medium_.control.fence();  // the word is durable before the caller goes on
    return medium_.check();
  }

  engine_totals totals() const noexcept override {
    engine_totals t;
    t.media += medium_.control.count;
    if constexpr (has_lanes) mechanism_.logs.add_totals(t);
    if constexpr (truncates_later) t.truncations = mechanism_.truncation.count;
    if constexpr (requires { mechanism_.add_totals(t); }) mechanism_.add_totals(t);
    return t;
  }
  void note(unsigned log, media::tape_mark m, std::uint64_t argument) override {
    if constexpr (has_lanes)
      mechanism_.logs.note(log, m, argument);
    else
      mechanism_.note(log, m, argument);
  }

 private:
  // Truncations use the same medium and read the end of home from the header.
  [[nodiscard]] std::unique_lock<std::mutex> exclude_truncations() {
    if constexpr (truncates_later)
      return mechanism_.truncation.lock();
    else
      return {};
  }

  // For assertions: no commit is under way, and none is deferred.
  bool is_idle() const noexcept {
    const pool_state& s = medium_.state;
    return s.deferred_logs.load() == 0 && std::ranges::all_of(s.committing, [](const auto& a) {
             return a.value.load() == pool_state::no_commit;
           });
  }

  static constexpr bool observes_stores = requires { &Mechanism::store; };
  struct no_observer {
    explicit no_observer(Mechanism&) noexcept {}
  };
  static constexpr bool has_lanes = requires(Mechanism m) { m.logs; };
  static constexpr bool truncates_later = requires(Mechanism m) { m.truncation; };

  [[nodiscard]] result<> attach(log_kind were) {
    if constexpr (requires { mechanism_.attach(were); })
      return mechanism_.attach(were);
    else if constexpr (Mechanism::kind == log_kind::none)
      return {};
    else
      return mechanism_.logs.attach(were == Mechanism::kind);
  }
  STELE_FLATTEN commit_status commit_flattened(transaction& t) { return t.commit_by(mechanism_); }

  void raise_version() {
    if (!planted(base::mutant::version_late))
      storage::raise_version(medium_, medium_.state.file.base());
    medium_.state.file.apply_version();
  }
  void store_magic_words() {
    STELE_ASSERT_ALWAYS(medium_.state.file.header().home == format::home_kind::in_place);
    medium_.state.heap.for_each_magic_word([this](std::uint64_t offset, std::uint64_t word) {
      medium_.put(medium_.state.file.at(offset), &word, sizeof word);
    });
    medium_.control.fence();  // the magic constants are durable before the control word is
    medium_.write_word(format::magic_state_offset, 1);
  }
  void write_session(bool open) {
    medium_.write_word(
        format::session_offset,
        format::session{.open = open, .log_kind = static_cast<std::uint8_t>(Mechanism::kind)}
            .pack());
  }

  pool_medium<Media> medium_;
  home_checksums<Media> sums_;
  Mechanism mechanism_;
  [[no_unique_address]] std::conditional_t<observes_stores, observer_of_stores<Mechanism>,
                                           no_observer> observer_{mechanism_};
};

}  // namespace stele::detail
