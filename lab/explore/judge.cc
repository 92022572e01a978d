// Recovery and trial of one crash state.
#include <explore/judge.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <media/lab_medium.h>
#include <tx/open.h>
#include <tx/parity/area.h>

#include <algorithm>

#include <base/check.h>

namespace stele::explore {

using base::fail;

namespace {

storage::pool_file adopted(const subject& s, hashed_image& image) {
  auto file = storage::pool_file::adopt(image.data(), s.length(image));
  if (!file) throw failure(file.error());
  return std::move(*file);
}

}  // namespace

std::string complaint(const verdict& v, const timeline& t, std::uint64_t floor, std::uint64_t ceiling) {
  if (!v.problem.empty()) return v.problem;
  if (t.allows(v.digest, floor, ceiling)) return "";
  const std::ptrdiff_t position = t.find(v.digest);
  if (position < 0) return "what was recovered is no state that the run ever had";
  return fmt::format("the state after {} operations was recovered, when {} had been acknowledged and {} invoked", position,
                     floor, ceiling);
}

template <class Each>
void judge::for_each_skipped(std::span<const std::uint32_t> lines, Each&& each) const {
  const storage::pool_file& file = recoverer_.file;
  const detail::parity_area area(file);
  const auto first = format::control_word(file.base(), file.header().id, format::parity_epoch_offset);
  if (!area.present() || !first) return;
  std::unordered_map<std::uint64_t, std::uint64_t> matrices;
  for (const std::uint32_t line : lines)
    if (const std::uint64_t offset = line * line_size; offset >= file.header().home_offset) matrices[area.matrix_of(offset)] |= std::uint64_t{1} << area.line_of(offset);
  for (const auto& [m, among] : matrices)
    if (const auto at = area.newest(m, *first); at && at->block.kind == format::parity_kind::covers) each(among & at->block.skipped, area.halves());
}

std::uint64_t judge::skipped_among(std::span<const std::uint32_t> lines) const {
  std::uint64_t count = 0;
  for_each_skipped(lines, [&](std::uint64_t skipped, bool) { count += static_cast<std::uint64_t>(std::popcount(skipped)); });
  return count;
}

std::string judge::complaint_of_loss(std::span<const std::uint32_t> stale) const {
  const plan& p = subject_.named_by();
  if (p.cache_bytes >= p.pool_size) return "something is lost, though the queue of lines used last is longer than the pool: none may be skipped";
  bool may_be = false;
  for_each_skipped(stale, [&](std::uint64_t skipped, bool halves) { may_be |= !detail::correctable(skipped, halves); });
  return may_be ? "" : "recovery gives up lines that their checksums can restore, or that were not skipped";
}

// To a checkpoint: with the commits since that the plan allows, and one of each thread that came meanwhile.
bool judge::may_have_gone_back(const verdict& v, const timeline& t, std::uint64_t floor, std::uint64_t ceiling) const {
  const plan& p = subject_.named_by();
  const std::uint64_t most = p.checkpoint_commits + p.threads;
  return p.checkpoint_commits != 0 && v.fell_back && t.allows(v.digest, floor - std::min(floor, most), ceiling);
}

bool judge::says_that_it_fell_back() const {
  const auto said = format::fallback_in(work_.data(), recoverer_.file.header().id);
  return said && said->state == format::fallback_state::done;
}

judge::judge(subject& s, hashed_image& work, experience& e)
    : subject_(s),
      work_(work),
      experience_(e),
      view_(work.data(), work.size()),
      recoverer_(adopted(s, work)),
      media_(media::on_image(view_, tuning_of(s.named_by()))) {}

std::uint32_t judge::remember(verdict v) {
  experience_.verdicts.push_back(std::move(v));
  return static_cast<std::uint32_t>(experience_.verdicts.size() - 1);
}

judge::answer judge::ask(timeline& t) {
  if (const auto seen = experience_.states.find(work_.sum().all)) return {*seen};
  still_alive();
  answer a{0, true};
  a.verdict = recover_and_judge(t, a);
  view_.undo();
  experience_.states.add(work_.sum().all, a.verdict);
  return a;
}

result<> judge::recover() {
  recoverer_.clock.store(0, std::memory_order_relaxed);
  recoverer_.stale_lines = recoverer_.lost_lines = 0;
  if (subject_.named_by().grow_every != 0) {  // it may have grown
    auto file = storage::pool_file::adopt(work_.data(), subject_.length(work_));
    if (!file) return std::unexpected(file.error());
    recoverer_.file = std::move(*file);
  }
  return detail::recover_if_open(recoverer_, media_);
}

bool judge::home_changed() const {
  if (recoverer_.file.header().home == format::home_kind::log) return !view_.written.empty();  // nothing is replayed, but something was taken back
  const std::size_t home = recoverer_.file.header().home_offset / line_size;
  for (std::size_t i = 0; i < view_.written.size(); ++i)
    if (view_.written[i] >= home &&
        std::memcmp(work_.line(view_.written[i]), view_.before.data() + i * line_size, line_size) != 0)
      return true;
  return false;
}

// What the recovered pool holds: images with the same content get the same verdict on their further use.
std::uint64_t judge::content(const signature& s) const {
  if (recoverer_.space == nullptr) return s.apart_from_logs;
  const auto& space = *recoverer_.space;
  std::uint64_t sum = recoverer_.clock.load();
  space.map.for_each([&](const storage::home_map::piece& p) {
    for (std::uint32_t i = 0; i < p.words; ++i) sum += fold(base::mix(p.home + i), base::mix(space.word(storage::advanced(p.at, i)) ^ (storage::is_data(p.at) ? 1 : 2)));
  });
  return sum;
}

std::uint32_t judge::recover_and_judge(timeline& t, answer& a) {
  auto recovered = recover();
  a.stale_lines = recoverer_.stale_lines, a.lost_lines = recoverer_.lost_lines;
  if (!recovered) return remember({"recovery fails: " + recovered.error().message, 0, recovered.error().code == errc::lost});
  a.replayed = home_changed();
  const signature once = work_.with(view_.written);
  if (const auto seen = experience_.recovered.find(once.all)) return *seen;
  a.new_recovered = true;
  std::uint32_t v;
  if (auto again = recover(); !again) {
    v = remember({"recovering a recovered pool fails: " + again.error().message});
  } else if (work_.with(view_.written).all != once.all) {
    v = remember({"recovering twice does not give the same bytes"});
  } else if (const std::uint64_t held = content(once); const auto known = experience_.contents.find(held)) {
    v = *known;
  } else {
    const bool fell_back = says_that_it_fell_back();
    v = remember(use(t));
    experience_.verdicts[v].fell_back = fell_back;
    experience_.contents.add(held, v);
  }
  experience_.recovered.add(once.all, v);
  return v;
}

verdict judge::use(timeline& t) try {
  if (auto opened = subject_.reopen(work_, media_); !opened)
    return {"the recovered pool does not open: " + opened.error().message};
  const attached here(subject_.workload());
  const auto digest = try_out(t);
  if (!digest) return {digest.error().message};
  return {"", *digest};
} catch (const failure& f) {
  return {f.why().message};
} catch (const std::exception& e) {
  return {fmt::format("an exception: {}", e.what())};
}

// The digest of what was recovered; the pool is in order, and stays so in use.
result<std::uint64_t> judge::try_out(timeline& t) {
  const auto digest = subject_.workload().digest();
  if (!digest) return fail(digest.error().code, "the recovered structure is broken: " + digest.error().message);
  if (auto fine = audit(); !fine) return std::unexpected(fine.error());
  timeline* const history = history_of_ ? history_of_(*digest) : &t;
  const std::ptrdiff_t position = history != nullptr ? history->find(*digest) : -1;
  if (position < 0) return digest;
  if (auto gone = go_on(*history, static_cast<std::uint64_t>(position)); !gone) return std::unexpected(gone.error());
  if (auto fine = audit(); !fine) return fail(errc::corrupt, "after further operations: " + fine.error().message);
  if (auto closed = subject_.workload().core().close(); !closed)
    return fail(errc::corrupt, "closing fails: " + closed.error().message);
  return digest;
}

// Further operations give what the model gives. Those that do not fit any more end the trial.
result<> judge::go_on(timeline& t, std::uint64_t position) {
  const timeline::further& next = subject_.continuation(t, position);
  std::uint64_t expected = t.digests[position];
  for (std::size_t i = 0; i < next.operations.size(); ++i) {
    const auto done = subject_.apply(next.operations[i], position + i, 0, true);
    if (!done && done.error().code == errc::full) break;
    if (!done) return fail(errc::corrupt, fmt::format("further operation {} fails: {}", i, done.error().message));
    expected = next.digests[i];
  }
  const auto digest = subject_.workload().digest();
  if (!digest) return fail(errc::corrupt, "further operations break the structure: " + digest.error().message);
  if (*digest != expected) return fail(errc::corrupt, "further operations give another result than the model's");
  return {};
}

// Used and free tile the heap, and used is what the workload and the root reach: nothing lost, nothing twice.
result<> judge::audit() {
  detail::runtime& core = subject_.workload().core();
  core.mechanism().settle();  // the audit reads home
  used_.clear();
  reached_.clear();
  const auto sum = core.state().heap.audit([&](std::uint64_t offset, std::size_t) { used_.push_back(offset); });
  if (!sum) return fail(errc::corrupt, "the heap is damaged: " + sum.error().message);
  subject_.workload().reach([&](const void* block) {
    reached_.push_back(static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - core.base()));
  });
  reached_.push_back(core.root_offset());
  std::ranges::sort(used_);
  std::ranges::sort(reached_);
  if (used_ == reached_) return {};
  if (std::ranges::adjacent_find(reached_) != reached_.end())
    return fail(errc::corrupt, "the heap is damaged: two objects have one block");
  const bool leaked = std::ranges::includes(used_, reached_);
  return fail(errc::corrupt, fmt::format("the heap is damaged: {} blocks are used, {} are reached: {}", used_.size(),
                                         reached_.size(), leaked ? "some are lost" : "some in use are free"));
}

}  // namespace stele::explore
