// Makes the pool, runs the operations, records the tape.
#include <explore/file_recorder.h>
#include <explore/scratch_file.h>
#include <explore/subject.h>
#include <fmt/format.h>
#include <lab_media/lab_medium.h>
#include <pool/header_version.h>
#include <tx/open.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <base/check.h>

namespace stele::explore {

using base::fail;
using workloads::operation;

std::ptrdiff_t run_history::find(std::uint64_t digest) const noexcept {
  const auto found = std::find(digests.rbegin(), digests.rend(), digest);
  return digests.rend() - found - 1;
}

bool run_history::allows(std::uint64_t digest, std::uint64_t from,
                         std::uint64_t to) const noexcept {
  const auto end = digests.begin() +
                   static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(to + 1, digests.size()));
  return std::find(digests.begin() + static_cast<std::ptrdiff_t>(from), end, digest) != end;
}

result<std::unique_ptr<subject>> subject::make(const plan& p) {
  std::unique_ptr<subject> s(new subject);
  s->plan_ = p;
  const auto mechanism = detail::find_mechanism(p.mechanism);
  if (!mechanism) return std::unexpected(mechanism.error());
  s->mechanism_ = *mechanism;
  const auto reopener = detail::find_mechanism(p.reopen.empty() ? p.mechanism : p.reopen);
  if (!reopener) return std::unexpected(reopener.error());
  s->reopener_ = *reopener;
  const auto maker = detail::find_mechanism(p.created_for.empty() ? p.mechanism : p.created_for);
  if (!maker) return std::unexpected(maker.error());
  if ((*maker)->home != (*mechanism)->home)
    return fail(errc::invalid_argument,
                fmt::format("'{}' does not work in pools made for '{}'; choose another",
                            p.mechanism, p.created_for));
  auto made = make_workload(p);
  if (!made) return std::unexpected(made.error());
  s->workload_ = std::move(*made);
  // The log size of a log-structured pool is its chunk size. It is small here, so that there are
  // many chunks and cleaning has work.
  const bool chunks = (*mechanism)->home == format::home_kind::log;
  auto shape = (*maker)->geometry_for(
      {p.pool_size, chunks ? p.log_size / 4 : p.log_size, p.log_count, "explored"},
      tuning_of(p).of_mechanism);
  shape.sums = p.block_checksums;
  shape.chunk_shift = p.chunk_shift;
  auto header = storage::pool_file::make_header(shape);
  if (!header) return std::unexpected(header.error());
  s->header_ = *header;
  s->header_.id = base::mix(p.seed) | 1;  // the same pool every time
  s->header_ = storage::with_version(
      s->header_, p.earlier_version ? format::first_pool_version : format::pool_version);
  if (p.media != "memory" && p.media != "file")
    return fail(errc::invalid_argument,
                fmt::format("nothing is known of crashes of '{}'; choose memory or file", p.media));
  s->on_file_ = p.media == "file";
  s->image_size_ = p.grow_every != 0 ? header->size * 2 : header->size;
  if (auto ready = s->prepare(); !ready) return std::unexpected(ready.error());
  return s;
}

result<std::unique_ptr<workloads::workload>> subject::make_workload(const plan& p) {
  if (p.make_workload) return p.make_workload();
  workloads::parameters content;
  content.keys = p.keys;
  content.value_size = p.value_size;
  content.seed = p.seed;
  content.coalesce = p.coalesce;
  return make_explored_workload(p.workload, content);
}

hashed_image subject::empty_image() const {
  // Logs are void after recovery, except those of a log-structured pool, which has nothing else.
  const bool logs_are_void = header_.home == format::home_kind::in_place;
  const std::size_t behind = on_file_ ? 4096 : 0;
  hashed_image image(image_size_ + behind, header_.log_offset,
                     logs_are_void ? header_.home_offset : header_.log_offset);
  storage::pool_file::write_header(image.data(), header_);
  if (on_file_) std::memcpy(image.data() + image_size_, &header_.size, sizeof header_.size);
  return image;
}

std::size_t subject::length(const hashed_image& image) const noexcept {
  if (!on_file_) return image.size();
  std::uint64_t length;
  std::memcpy(&length, image.data() + image_size_, sizeof length);
  return length;
}

result<> subject::prepare() {
  initial_ = std::make_unique<hashed_image>(empty_image());
  if (plan_.earlier_version) {
    initial_->rehash();
    return {};
  }
  media::image_view view(initial_->data(), initial_->size());
  if (auto opened = open(*initial_, media::on_image(view, tuning_of(plan_)), *mechanism_); !opened)
    return opened;
  const detach_guard guard(*workload_);
  if (auto filled = workload_->set_up(); !filled) return filled;
  if (auto closed = workload_->core().close(); !closed) return closed;
  initial_->rehash();
  return {};
}

result<> subject::open(hashed_image& image, const detail::media_choice& media,
                       const detail::mechanism_entry& mechanism) {
  return open(storage::pool_file::adopt(image.data(), length(image)), media, mechanism);
}

result<> subject::open(result<storage::pool_file> file, const detail::media_choice& media,
                       const detail::mechanism_entry& mechanism) {
  if (!file) return std::unexpected(file.error());
  pool_options options;
  options.engine.mechanism = mechanism.name;
  options.policy = workload_->policy();
  if (plan_.one_writer && options.policy == concurrency::stm)
    options.policy = concurrency::single_writer;
  options.engine.background = false;
  options.engine.defer_ordered = deferral::always;
  options.engine.verify = verification::always;
  if (plan_.grow_every != 0) options.max_size = image_size_;
  auto opened = detail::open_on(std::make_unique<detail::pool_state>(std::move(*file)), media,
                                mechanism, options);
  if (!opened) return std::unexpected(opened.error());
  auto handle = detail::pool_handle::from_runtime(std::move(*opened), workload_->root_size());
  if (!handle) return std::unexpected(handle.error());
  workload_->attach(std::move(*handle));
  return {};
}

result<std::vector<std::byte>> subject::record(run_history& history) {
  hashed_image image = empty_image();
  image.assign(*initial_);
  base::rng random(plan_.seed);
  for (std::uint64_t i = 0; i < plan_.operations; ++i)
    history.operations.push_back(workload_->draw(random));
  return record_on(image, history, 0, plan_.threads, *mechanism_);
}

result<std::vector<std::byte>> subject::record_recovery(hashed_image& image, run_history& history,
                                                        std::uint64_t position) {
  return record_on(image, history, position, 1, *reopener_);
}

result<std::vector<std::byte>> subject::record_on(hashed_image& image, run_history& history,
                                                  std::uint64_t first, unsigned threads,
                                                  const detail::mechanism_entry& mechanism) {
  const auto body = [&](const std::function<result<>()>& open_again) -> result<> {
    const std::uint64_t all = history.operations.size();
    const bool is_one_session = plan_.reopen_after == 0 || history.after_crash;
    for (std::uint64_t at = first;;) {
      const std::uint64_t end = is_one_session ? all : std::min(all, at + plan_.reopen_after);
      if (auto done = perform(history, at, end, threads); !done) return done;
      if (auto done = close_and_mark(end); !done || end == all) return done;
      workload_->detach();
      if (auto opened = open_again(); !opened) return opened;
      at = end;
    }
  };
  auto tape = on_file_ ? record_file(image, tuning_of(plan_),
                                     history.after_crash ? 0 : plan_.fail_call, mechanism, body)
                       : record_image(image, tuning_of(plan_), mechanism, body);
  if (tape) compute_digests(history);
  return tape;
}

result<std::vector<std::byte>> subject::record_with(
    bool background, const std::function<result<>(hashed_image&)>& body) {
  hashed_image image = empty_image();
  image.assign(*initial_);
  auto tuning = tuning_of(plan_);
  tuning.background = background;
  const auto on_image = [&](const auto&) { return body(image); };
  return on_file_ ? record_file(image, tuning, plan_.fail_call, *mechanism_, on_image)
                  : record_image(image, tuning, *mechanism_, on_image);
}

template <class Body>
result<std::vector<std::byte>> subject::record_image(hashed_image& image,
                                                     const detail::engine_tuning& tuning,
                                                     const detail::mechanism_entry& mechanism,
                                                     Body&& body) {
  auto shape = media::tape_options_of(header_, mechanism.logs);
  shape.pool_size = image_size_;
  const auto tape = media::tape_writer::to_memory(shape);
  media::image_view view(image.data(), image.size());
  const auto open_it = [&] {
    return open(image, media::on_recorded_image(*tape, view, tuning), mechanism);
  };
  if (auto opened = open_it(); !opened) return std::unexpected(opened.error());
  const detach_guard guard(*workload_);
  if (auto done = body(open_it); !done) return std::unexpected(done.error());
  return end_tape(*tape);
}

// Records on a scratch file. If a call was made to fail, the run ends there and the pool is not
// closed.
template <class Body>
result<std::vector<std::byte>> subject::record_file(const hashed_image& image,
                                                    const detail::engine_tuning& tuning,
                                                    std::uint64_t fail_call,
                                                    const detail::mechanism_entry& mechanism,
                                                    Body&& body) {
  auto shape = media::tape_options_of(header_, mechanism.logs);
  shape.pool_size = image.size();
  const auto tape = media::tape_writer::to_memory(shape);
  const std::span content(image.data(), length(image));
  auto file = scratch_file::make(plan_.directory, content);
  if (!file) return std::unexpected(file.error());
  file_recorder recorder(*tape, content, image_size_, file_faults(plan_.fault, fail_call));
  const auto open_it = [&] {
    recorder.forget_mapping();
    return open(storage::pool_file::open(file->path(), storage::map_kind::private_log),
                media::on_observed_file(recorder, tuning), mechanism);
  };
  auto opened = open_it();
  const detach_guard guard(*workload_);
  if (opened) opened = body(open_it);
  if (!opened && !recorder.has_failed()) return std::unexpected(opened.error());
  return end_tape(*tape);
}

// A close is a sync, so it acknowledges all operations, of which there were `count` so far.
result<> subject::close_and_mark(std::uint64_t count) {
  detail::runtime& core = workload_->core();
  if (auto closed = workload_->close(); !closed) return closed;
  if (plan_.sync_every != 0 && count != 0)
    core.mechanism().note(0, media::tape_mark::returned, count - 1);
  return {};
}

result<std::vector<std::byte>> subject::end_tape(media::tape_writer& tape) {
  if (auto finished = tape.finish(); !finished) return std::unexpected(finished.error());
  return std::vector<std::byte>(tape.memory().begin(), tape.memory().end());
}

void subject::compute_digests(run_history& history) {
  const auto model = workload_->make_model();
  history.digests.assign(1, model->digest());
  for (const operation& op : history.operations) {
    model->apply(op);
    history.digests.push_back(model->digest());
  }
}

result<> subject::perform(run_history& history, std::uint64_t first, std::uint64_t end,
                          unsigned threads) {
  result<> outcome;
  if (threads == 1) {
    for (std::uint64_t i = first; i < end && outcome; ++i) outcome = perform_one(history, i, 0);
    return outcome;
  }
  std::atomic<std::uint64_t> turn{first};
  auto work = [&](unsigned me) {
    for (std::uint64_t i = first + me; i < end; i += threads) {
      for (std::uint64_t now = turn.load(); now != i; now = turn.load()) turn.wait(now);
      if (outcome) outcome = perform_one(history, i, static_cast<unsigned>(me % header_.log_count));
      turn.store(i + 1);
      turn.notify_all();
    }
    for (std::uint64_t now = turn.load(); now < end; now = turn.load())
      turn.wait(now);  // a thread that ends would release its log early
  };
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < threads; ++t) workers.emplace_back(work, t);
  workers.clear();
  return outcome;
}

// An operation that does not fit must have changed nothing: the history has it as a read.
result<> subject::perform_one(run_history& history, std::uint64_t number, unsigned lane) {
  operation& op = history.operations[number];
  const auto done = apply(op, number, lane, history.after_crash);
  if (!done && done.error().code != errc::full)
    return fail(done.error().code, fmt::format("operation {} of the run itself failed: {}", number,
                                               done.error().message));
  if (!done) op.what = operation::kind::read;
  return {};
}

// Grows the pool as far as the image has room.
result<> subject::grow_now() {
  detail::runtime& core = workload_->core();
  const auto& h = core.state().file.header();
  const std::size_t to = h.size + header_.size / 4;
  if (to + (std::size_t{1} << h.chunk_shift) > image_size_) return {};
  auto grown = detail::grow(core, to);
  return grown || grown.error().code == errc::unsupported || grown.error().code == errc::full
             ? result<>{}
             : grown;
}

// An ordered commit acknowledges nothing. A durable commit acknowledges all before it, but only if
// it committed something: its transaction may have been cancelled or may have stored nothing.
result<> subject::apply(const operation& op, std::uint64_t number, unsigned lane,
                        bool after_crash) {
  detail::runtime& core = workload_->core();
  const bool all_durable = plan_.sync_every == 0;
  const bool ordered = !all_durable && (!after_crash || number % 2 == 0);
  workload_->set_commit_durability(ordered ? durability::ordered : durability::durable);
  const std::uint64_t newest = detail::newest_commit(core);
  if (plan_.grow_every != 0 && (number + 1) % plan_.grow_every == 0)
    if (auto grown = grow_now(); !grown) return grown;
  core.mechanism().note(lane, media::tape_mark::invoked, number);
  const auto done = workload_->apply({&op, 1});
  if (!done && done.error().code != errc::full) return done;
  if (all_durable || (!ordered && detail::newest_commit(core) != newest))
    core.mechanism().note(lane, media::tape_mark::returned, number);
  if (all_durable || (number + 1) % plan_.sync_every != 0) return done;
  if (auto synced = workload_->sync(); !synced) return synced;
  core.mechanism().note(lane, media::tape_mark::returned, number);
  return done;
}

const run_history::continuation& subject::continuation_at(run_history& t, std::uint64_t position) {
  auto [at, fresh] = t.continuations.try_emplace(position);
  run_history::continuation& next = at->second;
  if (!fresh) return next;
  base::rng random(base::mix(plan_.seed) ^ base::mix(t.digests[position]));
  const auto model = workload_->make_model();
  for (std::uint64_t i = 0; i < position; ++i) model->apply(t.operations[i]);
  for (unsigned i = 0; i < plan_.further_operations; ++i) {
    next.operations.push_back(workload_->draw(random));
    model->apply(next.operations.back());
    next.digests.push_back(model->digest());
  }
  return next;
}

run_history subject::branch(run_history& t, std::uint64_t position, std::size_t count) {
  const run_history::continuation& next = continuation_at(t, position);
  const auto old = static_cast<std::ptrdiff_t>(position),
             added = static_cast<std::ptrdiff_t>(std::min(count, next.operations.size()));
  run_history b;
  b.after_crash = true;
  b.operations.assign(t.operations.begin(), t.operations.begin() + old);
  b.operations.insert(b.operations.end(), next.operations.begin(), next.operations.begin() + added);
  b.digests.assign(t.digests.begin(), t.digests.begin() + old + 1);
  b.digests.insert(b.digests.end(), next.digests.begin(), next.digests.begin() + added);
  return b;
}

}  // namespace stele::explore
