// The steps of opening a pool, for callers that bring their own memory and media (the explorer).
#pragma once

#include <base/assert.h>
#include <format/root_mark.h>
#include <tx/mechanism/catalog.h>
#include <tx/runtime.h>

namespace stele::detail {

// Recovers the pool if its session word says that it was not closed. The mechanism whose logs it
// has does this. Returns its engine if home is in that engine, not in place; else null.
[[nodiscard]] result<std::unique_ptr<engine>> recover_if_open(pool_state& state,
                                                              const media_choice& media);

// While it exists, the program's report of a backup is called in this thread. The report may use
// the pool, but not what waits for the end of the backup, or ends the pool.
class report_scope {
 public:
  explicit report_scope(const runtime& of) noexcept : of_(of), outer_(innermost_) {
    innermost_ = this;
  }
  ~report_scope() {
    STELE_ASSERT_ALWAYS(innermost_ == this);
    innermost_ = outer_;
  }
  report_scope(const report_scope&) = delete;
  report_scope& operator=(const report_scope&) = delete;

  static bool exists(const runtime& of) noexcept {
    const report_scope* s = innermost_;
    while (s != nullptr && &s->of_ != &of) s = s->outer_;
    return s != nullptr;
  }

 private:
  static constinit thread_local const report_scope* innermost_;
  const runtime& of_;
  const report_scope* const outer_;
};

// Called before long work on the whole pool, which holds the returned lock; `what` names the work
// in messages. Errors: nested, when the calling thread runs a transaction, which the work would
// wait for; poisoned; corrupt, when the file is shorter than the pool.
[[nodiscard]] result<std::unique_lock<std::mutex>> begin_maintenance(runtime& r, const char* what);

// Whether a pool may become longer, at all and while it is open with a mechanism; if not, the error
// of one that should.
bool can_grow(const format::pool_header& h) noexcept;
bool can_grow(const format::pool_header& h, const mechanism_entry& used) noexcept;
error fixed_size_error(const std::string& path);

// As pool<Root>::backup, without the free chunks at the end of the pool.
[[nodiscard]] result<> back_up_used_part(runtime& r, const std::string& path,
                                         const progress& on_progress);

// What commits survive in a pool at this path with media "auto": process or power.
durability_level durability_of_path(const std::string& path);

// Opens a pool by its path, as pool<Root>::open does, without its root. layout_of_root: the layout
// name of its type, if that is known.
[[nodiscard]] result<std::unique_ptr<runtime>> open_path(const std::string& path,
                                                         const pool_options& options,
                                                         const std::string& layout_of_root = "");

// What to say of a root; nothing of a sound one.
[[nodiscard]] result<> root_error(format::root_verdict verdict, const std::string& path,
                                  std::uint64_t offset);
[[nodiscard]] std::unexpected<error> root_without_block(const std::string& path,
                                                        std::uint64_t offset);
// Whether used and free parts tile the heap, and the root lies in a block in use and has its mark,
// while no transaction runs. Errors: corrupt; version.
[[nodiscard]] result<storage::heap::usage> check_heap(const pool_state& state);

// Opens a pool whose file is mapped: recovery, heap, verification, engine; without its root.
[[nodiscard]] result<std::unique_ptr<runtime>> open_on(std::unique_ptr<pool_state> state,
                                                       const media_choice& media,
                                                       const mechanism_entry& mechanism,
                                                       const pool_options& options);

}  // namespace stele::detail
