// Recovers and tries one crash state.
#include <explore/judge.h>
#include <explore/published_oracle.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <lab_media/lab_medium.h>
#include <tx/open.h>

#include <algorithm>

#include <base/check.h>

namespace stele::explore {

using base::fail;

namespace {

storage::pool_file adopt_image(const subject& s, hashed_image& image) {
  auto file = storage::pool_file::adopt(image.data(), s.length(image));
  if (!file) throw failure(file.error());
  return std::move(*file);
}

}  // namespace

std::string violation_of(const verdict& v, const run_history& t, std::uint64_t acknowledged,
                         std::uint64_t invoked) {
  if (!v.problem.empty()) return v.problem;
  if (t.allows(v.digest, acknowledged, invoked)) return "";
  const std::ptrdiff_t position = t.find(v.digest);
  if (position < 0) return "what was recovered is no state that the run ever had";
  return fmt::format(
      "the state after {} operations was recovered, when {} had been acknowledged and {} invoked",
      position, acknowledged, invoked);
}

published_oracle& oracle_of_published() noexcept {
  static published_oracle oracle;
  return oracle;
}

std::uint64_t judge::count_skipped(std::span<const std::uint32_t> lines) const {
  std::uint64_t count = 0;
  if (const auto each = oracle_of_published().for_each_skipped; each != nullptr)
    each(recoverer_.file, lines, [&](unsigned skipped, bool) { count += skipped; });
  return count;
}

std::string judge::loss_violation(std::span<const std::uint32_t> stale) const {
  if (subject_.run_plan().cache_bytes >= subject_.home_bytes())
    return "something is lost, though the queue of lines used last is longer than home: none may "
           "be skipped";
  bool may_be = false;
  if (const auto each = oracle_of_published().for_each_skipped; each != nullptr)
    each(recoverer_.file, stale, [&](unsigned, bool restorable) { may_be |= !restorable; });
  return may_be
             ? ""
             : "recovery gives up lines that their checksums can restore, or that were not skipped";
}

// Recovery went back to a checkpoint. That may lose the commits since it, at most as many as the
// plan allows and one for each thread that was then committing.
bool judge::may_have_fallen_back(const verdict& v, const run_history& t, std::uint64_t acknowledged,
                                 std::uint64_t invoked) const {
  const plan& p = subject_.run_plan();
  const std::uint64_t most = p.checkpoint_commits + p.threads;
  return p.checkpoint_commits != 0 && v.fell_back &&
         t.allows(v.digest, acknowledged - std::min(acknowledged, most), invoked);
}

bool judge::reports_fallback() const {
  const auto said = format::read_fallback(work_.data(), recoverer_.file.header().id);
  return said && said->state == format::fallback_state::done;
}

judge::judge(subject& s, hashed_image& work, verdict_cache& e)
    : subject_(s),
      work_(work),
      verdict_cache_(e),
      view_(work.data(), work.size()),
      recoverer_(adopt_image(s, work)),
      media_(media::on_image(view_, tuning_of(s.run_plan()))) {}

std::uint32_t judge::add_verdict(verdict v) {
  verdict_cache_.verdicts.push_back(std::move(v));
  return static_cast<std::uint32_t>(verdict_cache_.verdicts.size() - 1);
}

judge::judgement judge::evaluate(run_history& t) {
  if (const auto seen = verdict_cache_.states.find(work_.hash().all)) return {*seen};
  reset_watchdog();
  judgement a{0, true};
  a.verdict = recover_and_judge(t, a);
  view_.undo();
  if (a.used && !work_.is_as_put())
    a.verdict = add_verdict(
        {"something was stored to the pool past the transaction: by a plain member, or through a "
         "pointer that is no field's"});
  verdict_cache_.states.add(work_.hash().all, a.verdict);
  return a;
}

result<> judge::recover() {
  recoverer_.clock.store(0, std::memory_order_relaxed);
  recoverer_.stale_lines = recoverer_.lost_lines = 0;
  if (subject_.run_plan().grow_every != 0) {  // the pool may have grown
    auto file = storage::pool_file::adopt(work_.data(), subject_.length(work_));
    if (!file) return std::unexpected(file.error());
    recoverer_.file = std::move(*file);
  }
  auto recovered = detail::recover_if_open(recoverer_, media_);
  if (!recovered) return std::unexpected(recovered.error());
  recovered_by_ = std::move(*recovered);
  return {};
}

bool judge::home_changed() const {
  if (recoverer_.file.header().home == format::home_kind::log)
    return !view_.written.empty();  // nothing is replayed; a change means that something was undone
  const std::size_t home = recoverer_.file.header().home_offset / line_size;
  for (std::size_t i = 0; i < view_.written.size(); ++i)
    if (view_.written[i] >= home &&
        std::memcmp(work_.line(view_.written[i]), view_.before_images.data() + i * line_size,
                    line_size) != 0)
      return true;
  return false;
}

// The hash of what the recovered pool holds. Images with the same content share the verdict on
// their further use.
std::uint64_t judge::content_hash(const image_hash& s) const {
  if (recovered_by_ == nullptr) return s.without_logs;
  return oracle_of_published().hash_of_home(*recovered_by_, recoverer_.clock.load());
}

std::uint32_t judge::recover_and_judge(run_history& t, judgement& a) {
  auto recovered = recover();
  a.stale_lines = recoverer_.stale_lines, a.lost_lines = recoverer_.lost_lines;
  if (!recovered)
    return add_verdict(
        {"recovery fails: " + recovered.error().message, 0, recovered.error().code == errc::lost});
  a.replayed = home_changed();
  const image_hash once = work_.hash_with(view_.written);
  if (const auto seen = verdict_cache_.recovered.find(once.all)) return *seen;
  a.new_recovered = true;
  std::uint32_t v;
  if (auto again = recover(); !again) {
    v = add_verdict({"recovering a recovered pool fails: " + again.error().message});
  } else if (work_.hash_with(view_.written).all != once.all) {
    v = add_verdict({"recovering twice does not give the same bytes"});
  } else if (const std::uint64_t held = content_hash(once);
             const auto known = verdict_cache_.contents.find(held)) {
    v = *known;
  } else {
    const bool fell_back = reports_fallback();
    a.used = true;
    v = add_verdict(exercise(t));
    verdict_cache_.verdicts[v].fell_back = fell_back;
    verdict_cache_.contents.add(held, v);
  }
  verdict_cache_.recovered.add(once.all, v);
  return v;
}

verdict judge::exercise(run_history& t) try {
  if (auto opened = subject_.reopen(work_, media_); !opened)
    return {"the recovered pool does not open: " + opened.error().message};
  const detach_guard guard(subject_.workload());
  const auto digest = check_recovered(t);
  if (!digest) return {digest.error().message};
  return {"", *digest};
} catch (const failure& f) {
  return {f.why().message};
} catch (const std::exception& e) {
  return {fmt::format("an exception: {}", e.what())};
}

// Returns the digest of the recovered pool. Checks that the pool is in order and stays so in use.
result<std::uint64_t> judge::check_recovered(run_history& t) {
  const auto digest = subject_.workload().digest();
  if (!digest)
    return fail(digest.error().code,
                "the recovered structure is broken: " + digest.error().message);
  if (auto ok = audit(); !ok) return std::unexpected(ok.error());
  run_history* const history = lookup_history_ ? lookup_history_(*digest) : &t;
  const std::ptrdiff_t position = history != nullptr ? history->find(*digest) : -1;
  if (position < 0) return digest;
  if (auto gone = apply_further(*history, static_cast<std::uint64_t>(position)); !gone)
    return std::unexpected(gone.error());
  if (auto ok = audit(); !ok)
    return fail(errc::corrupt, "after further operations: " + ok.error().message);
  if (auto closed = subject_.workload().close(); !closed)
    return fail(errc::corrupt, "closing fails: " + closed.error().message);
  return digest;
}

// Further operations must give what the model gives. One that does not fit ends the trial.
result<> judge::apply_further(run_history& t, std::uint64_t position) {
  const run_history::continuation& next = subject_.continuation_at(t, position);
  std::uint64_t expected = t.digests[position];
  for (std::size_t i = 0; i < next.operations.size(); ++i) {
    const auto done = subject_.apply(next.operations[i], position + i, 0, true);
    if (!done && done.error().code == errc::full) break;
    if (!done)
      return fail(errc::corrupt,
                  fmt::format("further operation {} fails: {}", i, done.error().message));
    expected = next.digests[i];
  }
  const auto digest = subject_.workload().digest();
  if (!digest)
    return fail(errc::corrupt, "further operations break the structure: " + digest.error().message);
  if (*digest != expected)
    return fail(errc::corrupt, "further operations give another result than the model's");
  return {};
}

// Used and free blocks must tile the heap. The used ones must be exactly those that the workload
// and the root reach: no block leaked, none owned twice.
result<> judge::audit() {
  detail::runtime& core = subject_.workload().core();
  core.mechanism().flush_deferred();  // the audit reads home
  used_.clear();
  reached_.clear();
  const auto sum =
      core.state().heap.audit([&](std::uint64_t offset, std::size_t) { used_.push_back(offset); });
  if (!sum) return fail(errc::corrupt, "the heap is damaged: " + sum.error().message);
  subject_.workload().visit_blocks([&](const void* block) {
    reached_.push_back(
        static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - core.base()));
  });
  reached_.push_back(core.root_offset());
  std::ranges::sort(used_);
  std::ranges::sort(reached_);
  if (used_ == reached_) return {};
  if (std::ranges::adjacent_find(reached_) != reached_.end())
    return fail(errc::corrupt, "the heap is damaged: two objects have one block");
  const bool leaked = std::ranges::includes(used_, reached_);
  return fail(errc::corrupt,
              fmt::format("{}: {} blocks of the heap are used, {} are reached",
                          leaked ? "memory is leaked" : "memory that is in use has been freed",
                          used_.size(), reached_.size()));
}

}  // namespace stele::explore
