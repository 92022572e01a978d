// What is explored: a run named by its plan, made into a tape once and repeatable from the plan
// alone.
//
// A recorded run opens a small pool in memory or on a file, applies operations one a transaction,
// and closes it. Its threads take turns transaction by transaction, so that several logs are in use
// and the tape is the same every time. A run_history holds the digests that the model has after
// each operation: a recovered pool must be equal to one of them.
//
// With `sync_every` the run's commits are ordered and a sync follows each so many operations; what
// comes after a crash mixes ordered and durable commits and syncs. The tape's mark `returned`
// stands where operations are acknowledged as durable; its argument is the last of them.
#pragma once

#include <base/mutant.h>
#include <explore/file_faults.h>
#include <explore/hashed_image.h>
#include <explore/heap_churn.h>
#include <media/image.h>
#include <media/tape.h>
#include <tx/mechanism/catalog.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace stele::explore {

// Everything that a run and its crash states follow from.
struct plan {
  std::string mechanism = "redo-async";
  std::string reopen = "";       // the mechanism that opens the pool after a crash; empty: the same
  std::string created_for = "";  // the mechanism that the pool was created for; empty: the same
  std::string workload = "sps";
  std::size_t pool_size = 65536;
  std::size_t log_size = 4096, log_count = 2;
  std::uint64_t operations = 100;
  std::size_t keys = 24, value_size = 8;
  bool coalesce = false;  // the structure is in coalescing memory
  unsigned threads = 1;
  std::uint64_t sync_every = 0;  // operations; 0: every commit is durable when it returns
  std::uint64_t warm_up =
      6;  // of the mechanism adaptive, transactions: short, so that it changes its mode often
  std::size_t cache_bytes = 448;  // archapt: as long as its queue is; short, so that it skips lines
  bool halves = false;            // archapt: sums of halves too
  std::uint64_t checkpoint_commits = 0;  // archapt: from one checkpoint to the next
  bool block_checksums =
      false;  // the pool has sums of home's blocks, which are judged at each opening
  std::uint64_t grow_every =
      0;  // operations; then the pool grows by a quarter, twice at most. 0: it does not
  bool shared_log = false;  // default: all threads commit in one log
  bool whole_cache =
      false;  // bulk persistence of the whole cache, where a mechanism has bulk persistence
  std::uint64_t seed = 1;
  std::string media = "memory";  // or "file": a real pool file, and a power failure as files see it
  std::uint64_t fail_call = 0;   // of a run on a file: the call, of those that `fault` can strike,
                                 // that it strikes; 0: none
  file_fault fault = file_fault::refused;
  std::string directory =
      "";  // where that file is made, no part of what is explored; empty: scratch_file.h's choice
  unsigned further_operations = 20;  // operations applied to a recovered pool
  base::mutant mutant = base::mutant::none;
  std::string omitted_fence = "";  // the fence that is left out, by its place in the source:
                                   // "bulk.h:149:truncate"; empty: none
};

// How engines work here: without threads of their own, so that a run is a function of its plan.
inline detail::engine_tuning tuning_of(const plan& p) noexcept {
  const bool on_file = p.media == "file";
  return {
      .background = false,
      .shared_log = p.shared_log || on_file,
      .bulk = p.whole_cache || on_file ? bulk_persistence::whole_cache : bulk_persistence::log_walk,
      .adaptive = {.warm_up = p.warm_up},
      .log_structured = {.clean_from = 0,
                         .victim_live_share = 0.7},  // cleaning at every chunk: it has to be seen
      .archapt = {.cache_bytes = p.cache_bytes,
                  .skip = skipping::always,
                  .halves = p.halves,
                  .checkpoint_commits = p.checkpoint_commits}};
}

// What happened, and what the model says of it. Position p is the state after the first p
// operations.
struct run_history {
  struct continuation {
    std::vector<workloads::operation> operations;
    std::vector<std::uint64_t> digests;  // after each of them
  };
  std::vector<workloads::operation> operations;  // one that did not fit reads as a read
  std::vector<std::uint64_t> digests;            // one more than operations
  std::unordered_map<std::uint64_t, continuation> continuations;
  bool after_crash = false;  // what is applied to it follows a recovery

  // A position with this digest, the latest; -1 when there is none.
  std::ptrdiff_t find(std::uint64_t digest) const noexcept;
  bool allows(std::uint64_t digest, std::uint64_t from, std::uint64_t to) const noexcept;
};

// Takes the workload off its pool at the end of a scope, while the pool's memory is still there.
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
  // Errors: not_found, invalid_argument for what the plan names; whatever creating and filling the
  // pool returns.
  [[nodiscard]] static result<std::unique_ptr<subject>> make(const plan& p);

  const plan& run_plan() const noexcept { return plan_; }
  bool on_file() const noexcept { return on_file_; }
  // The bytes of an image that are the pool's: a file is as long as the word behind its content
  // says.
  std::size_t length(const hashed_image& image) const noexcept;
  workloads::workload& workload() noexcept { return *workload_; }
  const hashed_image& initial_image() const noexcept { return *initial_; }

  // Opens the pool in `image`, which a crash left, over a medium, with the workload attached.
  // Errors: those of opening a pool.
  [[nodiscard]] result<> reopen(hashed_image& image, const detail::media_choice& media) {
    return open(image, media, *reopener_);
  }
  // The pool after set_up and a clean close, in `image`; applies the plan's operations there.
  // Errors: what the pool reports, and that a result is not the model's.
  [[nodiscard]] result<std::vector<std::byte>> record(run_history& history);
  // The pool in `image`, which a crash left: recovers it, applies the operations of `history` from
  // `position` on, closes it.
  [[nodiscard]] result<std::vector<std::byte>> record_recovery(hashed_image& image,
                                                               run_history& history,
                                                               std::uint64_t position);

  // A run on the pool after set_up: `body` is called with the pool open, background thread or not,
  // and closes it or not.
  [[nodiscard]] result<std::vector<std::byte>> record_with(
      bool background, const std::function<result<>(hashed_image&)>& body);

  // Applies operation `number` of a run, or of what follows a crash, and syncs when that is due;
  // marks both on a tape. Errors: full, with nothing changed; whatever else the pool reports.
  [[nodiscard]] result<> apply(const workloads::operation& op, std::uint64_t number, unsigned lane,
                               bool after_crash);
  const run_history::continuation& continuation_at(run_history& t, std::uint64_t position);
  // The operations up to a position, then `count` that follow there.
  run_history branch(run_history& t, std::uint64_t position, std::size_t count);
  // An empty pool of the plan's shape; its hash is to be computed.
  hashed_image empty_image() const;
  // After a signal: the pool in use cannot be closed any more.
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
  [[nodiscard]] result<> close_and_mark(const run_history& history);
  [[nodiscard]] result<> perform(run_history& history, std::uint64_t first, unsigned threads);
  [[nodiscard]] result<> perform_one(run_history& history, std::uint64_t number, unsigned lane);
  [[nodiscard]] static result<std::vector<std::byte>> end_tape(media::tape_writer& tape);
  void compute_digests(run_history& history);
  [[nodiscard]] result<> grow_now();

  plan plan_;
  const detail::mechanism_entry* mechanism_ = nullptr;
  const detail::mechanism_entry* reopener_ = nullptr;
  std::unique_ptr<workloads::workload> workload_;
  std::size_t image_size_ = 0;  // bytes of images: the pool's, and what it may grow by
  bool on_file_ = false;
  format::pool_header header_{};
  std::unique_ptr<hashed_image> initial_;
};

}  // namespace stele::explore
