// The subject of an exploration: a run that a plan describes. It is recorded on a tape once and can
// be repeated from the plan alone.
//
// A recorded run opens a small pool in memory or on a file, applies each operation in its own
// transaction, and closes the pool. Its threads take turns, one transaction each, so that several
// logs are in use and the tape is the same every time. A run_history holds the model's digest after
// each operation; a recovered pool must match one of them.
//
// With `sync_every` the run's commits are ordered and a sync follows every `sync_every` operations.
// After a crash, ordered and durable commits and syncs are mixed. The tape's mark `returned` stands
// where operations are acknowledged as durable; its argument is the last of them.
#pragma once

#include <base/mutant.h>
#include <explore/file_faults.h>
#include <explore/hashed_image.h>
#include <explore/workload_by_name.h>
#include <lab_media/image.h>
#include <lab_media/tape.h>
#include <stele/adaptive_options.h>
#include <stele/archapt_options.h>
#include <stele/blurred_options.h>
#include <stele/log_structured_options.h>
#include <tx/mechanism/catalog.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace stele::explore {

// For plan::cache_bytes: a queue that is longer than any explored home, so nothing is skipped.
inline constexpr std::size_t skips_nothing = std::size_t{1} << 30;

// Everything that determines a run and its crash states.
struct plan {
  std::string mechanism = "redo-async";
  std::string reopen = "";       // the mechanism that opens the pool after a crash; empty: the same
  std::string created_for = "";  // the mechanism that the pool was created for; empty: the same
  std::string workload = "sps";
  // Makes the workload; not part of a replay line. Null: the laboratory's of that name is taken.
  std::function<std::unique_ptr<workloads::workload>()> make_workload = nullptr;
  std::size_t pool_size = 65536;
  std::size_t log_size = 4096, log_count = 2;
  std::uint64_t operations = 100;
  std::size_t keys = 24, value_size = 8;
  bool coalesce = false;  // the structure uses coalescing memory
  unsigned threads = 1;
  // Operations between syncs; 0: every commit is durable when it returns.
  std::uint64_t sync_every = 0;
  // Of the mechanism adaptive, in transactions: short, so that it often changes its mode.
  std::uint64_t warm_up = 6;
  bool runs = false;              // xil, blurred, adaptive: adjacent words share a record
  unsigned abort_interval = 64;   // the same: blocks from one abort record to the next
  std::size_t cache_bytes = 448;  // archapt: the length of its queue; short, so that it skips lines
  bool halves = false;            // archapt: checksums of halves too
  std::uint64_t checkpoint_commits = 0;  // archapt: commits between two checkpoints
  // The pool has block checksums of home, which are judged at each opening.
  bool block_checksums = false;
  // Of the pool's chunks, in bits; 0: as the library chooses, which leaves no room behind the last
  // chunk of a small pool.
  std::uint32_t chunk_shift = 0;
  // Operations until the pool grows by a quarter; 0: it does not grow. A full pool grows by itself.
  // It becomes at most twice as long.
  std::uint64_t grow_every = 0;
  // Operations until the pool is closed and opened again; 0: it is open throughout.
  std::uint64_t reopen_after = 0;
  // The pool is one of an earlier program, of version 1, that no program has opened yet: the
  // workload begins with nothing.
  bool earlier_version = false;
  bool shared_log = false;  // default: all threads commit in one log
  bool one_writer = false;  // concurrency::single_writer, where the workload leaves the choice
  // Bulk persistence of the whole cache, in mechanisms that have bulk persistence.
  bool whole_cache = false;
  std::uint64_t seed = 1;
  // "memory" or "file": a real pool file, and a power failure of a file system.
  std::string media = "memory";
  // On a file: among the calls that `fault` can affect, the number of the one that fails; 0: none.
  std::uint64_t fail_call = 0;
  file_fault fault = file_fault::refused;
  // The directory of that file, not part of what is explored; empty: scratch_file.h chooses.
  std::string directory = "";
  unsigned further_operations = 20;  // operations applied to a recovered pool
  base::mutant mutant = base::mutant::none;
  // The fence that is left out, by its place: "bulk_write_back.h:71:truncate"; empty: none.
  std::string omitted_fence = "";
};

// Settings of engines under the explorer: no threads of their own, so a run is a function of its
// plan.
inline detail::engine_tuning tuning_of(const plan& p) {
  const bool on_file = p.media == "file";
  return {
      .background = false,
      .shared_log = p.shared_log || on_file,
      .bulk = p.whole_cache || on_file ? bulk_persistence::whole_cache : bulk_persistence::log_walk,
      .of_mechanism = {adaptive_options{.warm_up = p.warm_up},
                       blurred_options{.runs = p.runs, .abort_interval = p.abort_interval},
                       // Cleans at every chunk, so that runs show it. Even seeds: three logs.
                       log_structured_options{.word_cache = true,
                                              .separate_logs = p.seed % 2 == 0,
                                              .clean_from = 0,
                                              .victim_live_share = 0.7},
                       archapt_options{.cache_bytes = p.cache_bytes,
                                       .skip = skipping::always,
                                       .halves = p.halves,
                                       .checkpoint_commits = p.checkpoint_commits}}};
}

// The operations of a run, and the model's digests. Position p is the state after the first p
// operations.
struct run_history {
  struct continuation {
    std::vector<workloads::operation> operations;
    std::vector<std::uint64_t> digests;  // one after each operation
  };
  // An operation that did not fit is stored as a read.
  std::vector<workloads::operation> operations;
  std::vector<std::uint64_t> digests;  // one more than operations
  std::unordered_map<std::uint64_t, continuation> continuations;
  bool after_crash = false;  // its operations follow a recovery

  // The latest position with this digest; -1 when there is none.
  std::ptrdiff_t find(std::uint64_t digest) const noexcept;
  bool allows(std::uint64_t digest, std::uint64_t from, std::uint64_t to) const noexcept;
};

// Detaches the workload from its pool at the end of a scope, while the pool's memory still exists.
class detach_guard {
 public:
  explicit detach_guard(workloads::workload& w) : workload_(w) {}
  detach_guard(const detach_guard&) = delete;
  detach_guard& operator=(const detach_guard&) = delete;
  ~detach_guard() { workload_.detach(); }

 private:
  workloads::workload& workload_;
};

class subject {
 public:
  // Errors: not_found, invalid_argument for wrong names in the plan; what creating and filling the
  // pool returns.
  [[nodiscard]] static result<std::unique_ptr<subject>> make(const plan& p);

  const plan& run_plan() const noexcept { return plan_; }
  bool on_file() const noexcept { return on_file_; }
  std::uint64_t home_bytes() const noexcept { return header_.size - header_.home_offset; }
  // How many bytes of an image belong to the pool. For a file, the word behind its content holds
  // the length.
  std::size_t length(const hashed_image& image) const noexcept;
  workloads::workload& workload() noexcept { return *workload_; }
  // Another workload of the plan, attached to no pool. Errors: not_found, invalid_argument.
  [[nodiscard]] static result<std::unique_ptr<workloads::workload>> make_workload(const plan& p);
  const hashed_image& initial_image() const noexcept { return *initial_; }

  // Opens the pool in `image`, which a crash left, on `media`, and attaches the workload. Errors:
  // those of opening a pool.
  [[nodiscard]] result<> reopen(hashed_image& image, const detail::media_choice& media) {
    return open(image, media, *reopener_);
  }
  // Applies the plan's operations to the pool as it was after set_up and a clean close, and closes
  // it. Errors: what the pool reports.
  [[nodiscard]] result<std::vector<std::byte>> record(run_history& history);
  // Recovers the pool in `image`, which a crash left, applies the operations of `history` from
  // `position` on, and closes it.
  [[nodiscard]] result<std::vector<std::byte>> record_recovery(hashed_image& image,
                                                               run_history& history,
                                                               std::uint64_t position);

  // Records a run on the pool after set_up, with a background thread or without. `body` is called
  // with the pool open, and may close it.
  [[nodiscard]] result<std::vector<std::byte>> record_with(
      bool background, const std::function<result<>(hashed_image&)>& body);

  // Applies operation `number` of a run, or of what follows a crash, syncs when a sync is due, and
  // marks both on the tape. Errors: full, with nothing changed; what else the pool reports.
  [[nodiscard]] result<> apply(const workloads::operation& op, std::uint64_t number, unsigned lane,
                               bool after_crash);
  const run_history::continuation& continuation_at(run_history& t, std::uint64_t position);
  // A history with the operations up to a position, then the first `count` that follow there, or
  // the plan's further operations if these are fewer.
  run_history branch(run_history& t, std::uint64_t position, std::size_t count);
  // An empty pool with the plan's header; its hash is not computed yet.
  hashed_image empty_image() const;
  // After a signal: leaks the pool in use, which cannot be closed any more.
  void abandon() noexcept { (void)workload_.release(); }

 private:
  subject() = default;
  [[nodiscard]] result<> open(hashed_image& image, const detail::media_choice& media,
                              const detail::mechanism_entry& mechanism);
  template <class Body>
  [[nodiscard]] result<std::vector<std::byte>> record_image(
      hashed_image& image, const detail::engine_tuning& tuning,
      const detail::mechanism_entry& mechanism, Body&& body);
  template <class Body>
  [[nodiscard]] result<std::vector<std::byte>> record_file(const hashed_image& image,
                                                           const detail::engine_tuning& tuning,
                                                           std::uint64_t fail_call,
                                                           const detail::mechanism_entry& mechanism,
                                                           Body&& body);
  [[nodiscard]] result<> open(result<storage::pool_file> file, const detail::media_choice& media,
                              const detail::mechanism_entry& mechanism);
  [[nodiscard]] result<> prepare();
  [[nodiscard]] result<std::vector<std::byte>> record_on(hashed_image& image, run_history& history,
                                                         std::uint64_t first, unsigned threads,
                                                         const detail::mechanism_entry& mechanism);
  [[nodiscard]] result<> close_and_mark(std::uint64_t count);
  [[nodiscard]] result<> perform(run_history& history, std::uint64_t first, std::uint64_t end,
                                 unsigned threads);
  [[nodiscard]] result<> perform_one(run_history& history, std::uint64_t number, unsigned lane);
  [[nodiscard]] static result<std::vector<std::byte>> end_tape(media::tape_writer& tape);
  void compute_digests(run_history& history);
  [[nodiscard]] result<> grow_now();

  plan plan_;
  const detail::mechanism_entry* mechanism_ = nullptr;
  const detail::mechanism_entry* reopener_ = nullptr;
  std::unique_ptr<workloads::workload> workload_;
  std::size_t image_size_ = 0;  // size of an image: the pool's size, and room to grow
  bool on_file_ = false;
  format::pool_header header_{};
  std::unique_ptr<hashed_image> initial_;
};

}  // namespace stele::explore
