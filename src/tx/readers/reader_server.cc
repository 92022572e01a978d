// See reader_server.h.
#include <base/assert.h>
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <tx/backup.h>
#include <tx/readers/reader_server.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <system_error>

namespace stele::detail {

using base::fail;
using base::fail_errno;

struct reader_server::reader {
  reader(channel c, bool of_a_stranger) noexcept : link(std::move(c)), is_stranger(of_a_stranger) {}

  channel link;
  const bool is_stranger;
  const std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  bool attached = false;
  std::vector<std::unique_ptr<kept_pages>> moments;
  std::thread backup;
  std::atomic<bool> ended{false};  // the backup stops
};

reader_server::reader_server(runtime& r, storage::descriptor listening,
                             storage::descriptor wake) noexcept
    : runtime_(r), service_(r), listening_(std::move(listening)), wake_(std::move(wake)) {
  STELE_ASSERT_ALWAYS(wake_.fd >= 0);
}

namespace {

// While it lives, threads are started with all signals blocked: the program's handlers run in its
// own threads.
class no_signals {
 public:
  no_signals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~no_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

result<std::unique_ptr<reader_server>> reader_server::start(runtime& r) {
  STELE_ASSERT_ALWAYS(r.state().clock_memory != nullptr && r.reading() == nullptr);  // A3
  // Without a socket there are no readers, but the file is looked at all the same.
  auto listening = channel::listen(r.state().file.mapping().fd);
  if (!listening || !r.state().file.publish_reader_socket(listening->number))
    listening = listening_socket();
  storage::descriptor wake(media::os::event(EFD_CLOEXEC));
  if (wake.fd < 0) return fail_errno(errc::unsupported, "cannot make an event");
  std::unique_ptr<reader_server> server(
      new reader_server(r, std::move(listening->socket), std::move(wake)));
  server->watched_.reserve(8);  // without readers the thread allocates nothing
  const no_signals blocked;
  try {
    server->thread_ = std::thread([s = server.get()] { s->run(); });
  } catch (const std::system_error&) {
    return fail(errc::unsupported, "cannot start a thread for readers");
  }
  return server;
}

reader_server::~reader_server() {
  if (!thread_.joinable()) return;
  STELE_ASSERT_ALWAYS(thread_.get_id() != std::this_thread::get_id());
  const std::uint64_t one = 1;
  (void)!::write(wake_.fd, &one, sizeof one);
  thread_.join();
  STELE_ASSERT_ALWAYS(readers_.empty());
}

void reader_server::abandon() noexcept {
  listening_ = storage::descriptor(-1);
  wake_ = storage::descriptor(-1);
}

void reader_server::run() noexcept {
  for (;;) {
    watched_.clear();
    STELE_ASSERT(watched_.capacity() >= readers_.size() + 2);  // it allocates nothing here
    watched_.push_back({.fd = wake_.fd, .events = POLLIN, .revents = 0});
    watched_.push_back({.fd = listening_.fd, .events = POLLIN, .revents = 0});
    for (const reader& r : readers_)
      watched_.push_back({.fd = r.link.fd(), .events = POLLIN | POLLRDHUP, .revents = 0});
    const int seen = ::poll(watched_.data(), watched_.size(), look_every_ms);
    look_at_file();
    if (seen < 0) continue;
    if (watched_[0].revents != 0) break;
    auto at = readers_.begin();
    for (std::size_t i = 2; i < watched_.size(); ++i) {
      STELE_ASSERT(at != readers_.end() && (!at->link || at->link.fd() == watched_[i].fd));
      const auto next = std::next(at);
      if (watched_[i].revents != 0) serve(*at);
      if (!at->link) readers_.erase(at);
      at = next;
    }
    STELE_ASSERT(at == readers_.end());
    if (watched_[1].revents != 0) admit();
    end_silent();
  }
  for (reader& r : readers_) end(r);
  readers_.clear();
}

// Connections are refused by closing them: beyond the most, and of other users if the file's mode
// does not let others read it.
void reader_server::admit() noexcept try {
  const int pool_fd = runtime_.state().file.mapping().fd;
  auto link = channel::accept(listening_.fd);
  if (!link) {  // no descriptor is free: do not spin until one is
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
  const bool is_stranger = link->is_of_a_stranger(pool_fd);
  const auto strangers =
      static_cast<std::size_t>(std::ranges::count_if(readers_, &reader::is_stranger));
  struct stat file = {};
  if (readers_.size() >= most_readers) return;
  if (is_stranger && (strangers >= most_strangers || ::fstat(pool_fd, &file) != 0 ||
                      (file.st_mode & (S_IRGRP | S_IROTH)) == 0))
    return;
  watched_.reserve(readers_.size() + 3);
  STELE_ASSERT(readers_.size() < most_readers);
  readers_.emplace_back(std::move(*link), is_stranger);
  STELE_ASSERT_WHOLE(static_cast<std::size_t>(
                         std::ranges::count_if(readers_, &reader::is_stranger)) <= most_strangers);
} catch (const std::bad_alloc&) {  // likewise, also when the error had no memory
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// A connection that asks for nothing keeps a descriptor.
void reader_server::end_silent() noexcept {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(readers_, [&](reader& r) {
    const bool is_silent = !r.attached && !r.backup.joinable() &&
                           now - r.since > std::chrono::milliseconds(silence_ms);
    if (is_silent) end(r);
    return is_silent;
  });
}

void reader_server::look_at_file() noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_at_ < std::chrono::milliseconds(look_every_ms)) return;
  looked_at_ = now;
  runtime_.look_at_file();
}

// Ends the connection when the reader has gone, or asks what none asks.
void reader_server::serve(reader& from) {
  try {
    STELE_ASSERT(from.link && !from.ended.load(std::memory_order_relaxed));
    auto request = from.link.receive();
    if (!request) return end(from);
    auto answered = answer(from, *request);
    if (!answered) answered = from.link.send(reply_of(answered.error()));
    if (!answered) end(from);
  } catch (const std::bad_alloc&) {
    end(from);
  }
}

// An error is sent to the reader.
result<> reader_server::answer(reader& from, received_message& request) {
  if (runtime_.state().poisoned.load())
    return fail(errc::poisoned, fmt::format("{} is open in a process in which a write to it "
                                            "failed; close it there",
                                            runtime_.state().file.path()));
  const auto asked = static_cast<reader_request>(request.message.what);
  if (!from.attached && asked != reader_request::attach && asked != reader_request::back_up)
    return fail(errc::permission, "a reader of a pool has to attach first");
  switch (asked) {
    case reader_request::attach:
      return attach(from, request);
    case reader_request::settle:
      service_.settle();
      return from.link.send({});
    case reader_request::begin_moment:
      return begin_moment(from);
    case reader_request::end_moment:
      end_moment(from, request.message.argument[0]);
      return from.link.send({});
    case reader_request::back_up:
      return back_up(from, request);
  }
  return fail(errc::unsupported, "the process that has the pool open does not know this request");
}

// The reader's descriptor must be one of this pool's file, open for reading. One of O_PATH is open
// for nothing, and needs no right to read the file.
result<> reader_server::check_may_read(int fd) const {
  struct stat theirs = {}, ours = {};
  const int flags = ::fcntl(fd, F_GETFL);
  if (::fstat(fd, &theirs) == 0 && ::fstat(runtime_.state().file.mapping().fd, &ours) == 0 &&
      theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino && flags >= 0 &&
      (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY)
    return {};
  return fail(errc::permission, "a reader of a pool has to have its file open");
}

// A2, A3.
result<> reader_server::attach(reader& from, received_message& request) {
  if (auto may = check_may_read(request.fds[0].fd); !may) return may;
  if (!from.attached) {
    const front_end_hold hold = runtime_.hold_front_end();
    if (auto added = service_.add_reader(); !added) return added;
    from.attached = true;
  }
  // What the reader verifies.
  STELE_ASSERT(std::has_single_bit(service_.locks().size() / sizeof(line_lock)) &&
               service_.locks().size() % sizeof(line_lock) == 0);
  STELE_ASSERT(runtime_.state().clock_memory->fd() >= 0 && service_.locks().fd() >= 0);
  reader_message reply;
  reply.argument[0] = service_.locks().size();
  return from.link.send(reply, {runtime_.state().clock_memory->fd(), service_.locks().fd()});
}

result<> reader_server::begin_moment(reader& from) {
  STELE_ASSERT(from.attached);
  from.moments.reserve(from.moments.size() + 1);
  const front_end_hold hold = runtime_.hold_front_end();
  auto begun = service_.begin_moment();
  if (!begun) return std::unexpected(begun.error());
  STELE_ASSERT(std::ranges::find(from.moments, (*begun)->number, &kept_pages::number) ==
               from.moments.end());
  from.moments.push_back(std::move(*begun));
  const kept_pages& pages = *from.moments.back();
  STELE_ASSERT(pages.fd() >= 0 && pages.layout().is_possible());
  reader_message reply;
  reply.argument[0] = pages.number;
  reply.argument[1] = pages.layout().pages;
  return from.link.send(reply, {pages.fd(), -1});
}

void reader_server::end_moment(reader& from, std::uint64_t number) noexcept {
  const auto found = std::ranges::find(from.moments, number, &kept_pages::number);
  if (found == from.moments.end()) return;
  const front_end_hold hold = runtime_.hold_front_end();
  service_.end_moment(**found);
  from.moments.erase(found);
}

// A thread of its own: it may take long, and other readers go on.
result<> reader_server::back_up(reader& from, received_message& request) {
  if (from.backup.joinable()) return fail(errc::in_use, "one backup at a time");
  if (auto may = check_may_read(request.fds[1].fd); !may) return may;
  auto copy = [this, &from, file = std::move(request.fds[0])]() mutable noexcept {
    const auto report = [&](std::uint64_t done, std::uint64_t total) {
      reader_message m;
      m.more = 1;
      m.argument = {done, total};
      return !from.ended.load() && from.link.send(m).has_value();
    };
    reader_message last;
    try {
      auto done = back_up_to(runtime_, storage::new_file::of(std::move(file), "the copy"), report);
      if (!done) last = reply_of(done.error());
    } catch (const std::bad_alloc&) {
      last = reply_of({errc::full, "out of memory"});  // short: std::string does not allocate
    }
    try {
      (void)from.link.send(last);
    } catch (const std::bad_alloc&) {  // of the error: the reader has gone
    }
  };
  try {
    from.backup = std::thread(std::move(copy));
  } catch (const std::system_error&) {
    return fail(errc::unsupported, "cannot start a thread for the backup");
  }
  return {};
}

void reader_server::end(reader& r) noexcept {
  r.ended.store(true);
  STELE_ASSERT(r.attached || r.moments.empty());
  if (r.backup.joinable()) r.backup.join();
  const front_end_hold hold = runtime_.hold_front_end();
  for (const auto& m : r.moments) service_.end_moment(*m);
  r.moments.clear();
  r.link = channel();
  if (std::exchange(r.attached, false)) service_.remove_reader();
}

}  // namespace stele::detail
