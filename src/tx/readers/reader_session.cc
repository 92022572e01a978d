// See reader_session.h.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <sys/mman.h>
#include <tx/attempt.h>
#include <tx/long_read.h>
#include <tx/open.h>
#include <tx/readers/reader_service.h>
#include <tx/readers/reader_session.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

namespace stele::detail {

using base::fail;
namespace os = media::os;

namespace {

// A process that opens a pool answers when it has recovered it; one that
// attaches a reader waits for its running transactions.
constexpr std::chrono::milliseconds answer_limit{2000};

std::unique_ptr<foreign_home> home_of(const std::byte* base, const std::byte* first_page) {
  return std::make_unique<foreign_home>(base, reinterpret_cast<const std::atomic<std::uint64_t>*>(
                                                  first_page + format::generation_offset));
}

}  // namespace

// A moment whose pages the process that has the pool open keeps.
class reader_session::foreign_moment final : public moment {
 public:
  foreign_moment(const foreign_home& home, shared_memory memory, std::uint64_t pages,
                 std::uint64_t its_number, std::uint64_t of_attachment)
      : number(its_number),
        attachment(of_attachment),
        home_(home),
        layout_{pages},
        memory_(std::move(memory)) {
    STELE_ASSERT(layout_.is_possible() && memory_.size() >= layout_.bytes());
    STELE_ASSERT(attachment != 0);
  }

  std::uint64_t word(std::uint64_t offset) const override {
    STELE_ASSERT(offset % 8 == 0);
    std::uint64_t value = 0;
    at_moment(offset, [&](const std::byte* from) {
      value = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_ACQUIRE);
    });
    return value;
  }
  void copy(std::uint64_t offset, std::byte* to, std::size_t size) const override {
    STELE_ASSERT(offset % line_size + size <= line_size);  // so it lies in one page
    at_moment(offset,
              [&](const std::byte* from) { in_place_home(from - offset).copy(offset, to, size); });
  }

  const std::uint64_t number, attachment;

 private:
  // L4, with R4 after the load of home.
  template <class Take>
  void at_moment(std::uint64_t offset, Take&& take) const {
    if (mark_of(offset) == kept_layout::in_home) {
      take(home_.at() + offset);
      std::atomic_thread_fence(std::memory_order_acquire);  // home before the second look
      home_.check();
      if (planted_in_schedule_explorer(base::mutant::kept_one_look) ||
          mark_of(offset) == kept_layout::in_home)
        return;
    }
    if (mark_of(offset) == kept_layout::lost) throw std::bad_alloc();
    STELE_ASSERT(offset / page_snapshot::page_size < layout_.pages);
    take(memory_.at() + layout_.pages_offset() + offset);
  }
  // Nothing of the moment is in pages that the pool has got since.
  std::uint8_t mark_of(std::uint64_t offset) const noexcept {
    if (offset / page_snapshot::page_size >= layout_.pages) return kept_layout::in_home;
    return std::atomic_ref(
               reinterpret_cast<std::uint8_t&>(memory_.at()[offset / page_snapshot::page_size]))
        .load(std::memory_order_acquire);
  }

  const foreign_home& home_;
  const kept_layout layout_;
  const shared_memory memory_;
};

reader_session::reader_session(const format::pool_header& h, std::byte* home, std::byte* page)
    : file_(-1), header_(h), base_(home), first_page_(page), home_(home_of(home, page)) {}

reader_session::~reader_session() {
  if (file_.fd >= 0 && first_page_ != nullptr) ::munmap(first_page_, page_snapshot::page_size);
}

void reader_session::leave_to_parent() noexcept {
  if (file_.fd < 0) return;
  if (first_page_ != nullptr)
    ::munmap(std::exchange(first_page_, nullptr), page_snapshot::page_size);
  clock_ = shared_memory();
  shared_locks_ = shared_memory();
  file_ = storage::descriptor(-1);
}

pool_space reader_session::space() const {
  struct stat file = {};
  (void)os::fstat(file_.fd, file);
  pool_space s;
  s.size_bytes = static_cast<std::size_t>(file.st_size);
  s.log_bytes = header_.home_offset;
  return s;
}

result<storage::pool_file> reader_session::map_file() {
  STELE_ASSERT_ALWAYS(base_ == nullptr && first_page_ == nullptr && file_.fd >= 0);
  auto mapped = storage::pool_file::map_for_reading(file_.fd, path_);
  if (!mapped) return mapped;
  header_ = mapped->header();
  if (header_.home == format::home_kind::log)
    return fail(errc::unsupported, fmt::format("{} is a pool of log_structured, whose home only "
                                               "the process that has "
                                               "it open knows; open it there, or use a mechanism "
                                               "with a home in place",
                                               path_));
  base_ = mapped->base();
  room_ = mapped->reserved_bytes();
  STELE_ASSERT_ALWAYS(base_ != nullptr && room_ >= header_.size);
  void* const first = os::map(nullptr, page_snapshot::page_size, PROT_READ, MAP_SHARED, file_.fd);
  if (first == MAP_FAILED) return storage::path_error("map", path_);
  first_page_ = static_cast<std::byte*>(first);
  home_ = home_of(base_, first_page_);
  return mapped;
}

result<std::unique_ptr<runtime>> reader_session::open(const std::string& path) {
  storage::descriptor file(
      storage::open_named(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return storage::path_error("open", path);
  std::unique_ptr<reader_session> session(new reader_session(std::move(file), path));
  auto mapped = session->map_file();
  if (!mapped) return std::unexpected(mapped.error());
  return begin_reading(std::move(session), std::move(*mapped));
}

result<std::unique_ptr<runtime>> reader_session::begin_reading(
    std::unique_ptr<reader_session> session, storage::pool_file file) {
  if (auto attached = session->attach(); !attached) return std::unexpected(attached.error());
  auto state = std::make_unique<pool_state>(std::move(file));
  if (session->file_.fd >= 0)
    state->lost_pages_guard =
        media::sigbus_guard(state->file.base(), state->file.reserved_bytes(), state->poisoned);
  const lock_table locks = session->locks_;
  STELE_ASSERT_ALWAYS(locks.locks != nullptr && locks.clock != nullptr);
  STELE_ASSERT_ALWAYS(session->mode_ != mode::none && session->attachments_ == 1);
  auto r = std::make_unique<runtime>(std::move(state), std::move(session));
  const pool_pause paused = r->pause();
  r->use_locks(locks);
  return r;
}

// A1 to A4.
result<> reader_session::attach() {
  const auto give_up = std::chrono::steady_clock::now() + answer_limit;
  for (;;) {
    const auto attached = try_attach();
    if (!attached) return std::unexpected(attached.error());
    if (*attached) break;
    if (std::chrono::steady_clock::now() > give_up) return unanswered();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  STELE_ASSERT_ALWAYS(mode_ != mode::none);
  ++attachments_;
  return check_same_pool();
}

std::unexpected<error> reader_session::unanswered() const {
  return fail(
      errc::in_use,
      fmt::format("{} is open in process {}, which does not answer: it is opening the pool, "
                  "or in a long transaction, in another network namespace, or of an earlier "
                  "version; try again, or close it there",
                  path_, storage::lock_holder(file_.fd).value_or(0)));
}

result<bool> reader_session::try_attach() {
  mode_ = mode::none;
  const std::uint64_t generation = home_->generation();  // A1: before it is known who has it open
  auto link = channel::connect(file_.fd, static_cast<int>(answer_limit.count()));
  result<> done{};
  if (link) {
    done = attach_to(std::move(*link));
    if (!done && done.error().code == errc::io) return false;  // it has ended meanwhile
  } else if (link.error().code != errc::not_found) {
    return std::unexpected(link.error());
  } else if (storage::lock_holder(file_.fd)) {
    return false;
  } else {
    done = read_unopened();
    if (home_->generation() != generation) return false;
  }
  if (!done) return std::unexpected(done.error());
  // A copy is private, and what others may change is not.
  STELE_ASSERT_ALWAYS(is_private_ == (mode_ == mode::copied));
  home_->expect(generation);
  return true;
}

result<> reader_session::attach_to(channel link) {
  reader_message m;
  m.what = static_cast<std::uint32_t>(reader_request::attach);
  if (auto sent = link.send(m, {file_.fd, -1}); !sent) return sent;
  auto reply = link.receive();
  if (!reply) return std::unexpected(reply.error());
  if (reply->message.what != 0)
    return fail(static_cast<errc>(reply->message.what - 1), reply->message.sentence());
  const std::uint64_t lock_bytes = reply->message.argument[0];
  const std::uint64_t count = lock_bytes / sizeof(line_lock);
  if (!std::has_single_bit(count) || lock_bytes % sizeof(line_lock) != 0)
    return fail(errc::corrupt,
                "the process that has the pool open shares locks that make no sense");
  auto clock = shared_memory::map(reply->fds[0].release(), sizeof(std::uint64_t));
  if (!clock) return std::unexpected(clock.error());
  auto locks = shared_memory::map(reply->fds[1].release(), lock_bytes);
  if (!locks) return std::unexpected(locks.error());
  if (auto mapped = map_home(false); !mapped) return mapped;
  clock_ = std::move(*clock);
  shared_locks_ = std::move(*locks);
  const std::lock_guard hold(link_mutex_);
  link_ = std::move(link);
  attached_to({.locks = reinterpret_cast<line_lock*>(shared_locks_.at()),
               .mask = count - 1,
               .clock = reinterpret_cast<const std::atomic<std::uint64_t>*>(clock_.at())});
  return {};
}

void reader_session::attached_to(const lock_table& locks) noexcept {
  STELE_ASSERT_ALWAYS(locks.locks != nullptr && locks.clock != nullptr);
  STELE_ASSERT_ALWAYS(mode_ != mode::copied && !locks.shared);
  locks_ = locks;
  mode_ = mode::attached;
}

result<> reader_session::read_unopened() {
  const auto word = format::read_control_word(first_page_, header_.id, format::session_offset);
  if (!word)
    return fail(errc::corrupt, fmt::format("{}: the session word is damaged (check bits); "
                                           "restore the pool from a copy",
                                           path_));
  const bool closed = !format::session::unpack(*word).open;
  if (auto ready = closed ? map_home(false) : recover_copy(); !ready) return ready;
  static_assert(std::has_single_bit(std::tuple_size_v<decltype(idle_locks_)>));
  STELE_ASSERT_WHOLE(has_idle_table());
  locks_ = {.locks = idle_locks_.data(), .mask = idle_locks_.size() - 1, .clock = &idle_clock_};
  mode_ = closed ? mode::closed : mode::copied;
  return {};
}

// What recovery stores stays in private pages. The other pages are the file's:
// of a process that opens the pool meanwhile the generation tells.
result<> reader_session::recover_copy() {
  if (auto mapped = map_home(true); !mapped) return mapped;
  STELE_ASSERT_ALWAYS(is_private_);  // recovery stores to it
  auto file = storage::pool_file::adopt(base_, room_);
  if (!file) return std::unexpected(file.error());
  pool_state state(std::move(*file));
  state.lost_pages_guard = media::sigbus_guard(base_, room_, state.poisoned);
  auto recovered = recover_if_open(state, {.what = media_choice::kind::process});
  if (!recovered) return std::unexpected(recovered.error());
  if (state.poisoned.load())
    return fail(errc::io, fmt::format("{}: part of the file could not be read (a bad page, or it "
                                      "has been truncated); restore the pool from a copy",
                                      path_));
  return {};
}

result<> reader_session::map_home(bool private_copy) {
  STELE_ASSERT_ALWAYS(base_ != nullptr && room_ != 0 && file_.fd >= 0);
  if (!private_copy && !is_private_) return {};
  const int protection = PROT_READ | (private_copy ? PROT_WRITE : 0);
  if (os::map(base_, room_, protection,
              (private_copy ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED | MAP_NORESERVE,
              file_.fd) == MAP_FAILED)
    return storage::path_error("map", path_);
  is_private_ = private_copy;
  return {};
}

// A program that migrates a pool may move its root, and a file may be written
// over.
result<> reader_session::check_same_pool() {
  STELE_ASSERT_ALWAYS(attachments_ != 0 && first_page_ != nullptr);
  std::uint64_t id = 0;
  std::memcpy(&id, first_page_ + offsetof(format::pool_header, id), sizeof id);
  const std::uint64_t root =
      in_place_home(base_).word(header_.home_offset + offsetof(format::home_header, root_offset));
  if (attachments_ == 1) root_offset_ = root;
  if (id == header_.id && root == root_offset_) return {};
  mode_ = mode::none;
  return fail(errc::layout, fmt::format("{} was migrated, or replaced, since "
                                        "it was opened for reading; open it "
                                        "again",
                                        path_));
}

result<received_message> reader_session::ask(reader_request what, std::uint64_t argument) {
  STELE_ASSERT(mode_ == mode::attached);
  STELE_ASSERT(what != reader_request::attach && what != reader_request::back_up);  // others carry
  const std::lock_guard hold(link_mutex_);
  reader_message m;
  m.what = static_cast<std::uint32_t>(what);
  m.argument[0] = argument;
  if (auto sent = link_.send(m); !sent) return std::unexpected(sent.error());
  auto reply = link_.receive();
  if (reply && reply->message.what != 0)
    return fail(static_cast<errc>(reply->message.what - 1), reply->message.sentence());
  return reply;
}

bool reader_session::has_lost_writer() noexcept {
  const std::lock_guard hold(link_mutex_);
  return link_.has_ended();
}

result<thread_context*> reader_session::before_retry(runtime& r, thread_context& v) {
  STELE_ASSERT(this_access.size == 0 && r.reading() == this);
  STELE_ASSERT(this_attempt.state() == attempt_state::between && this_attempt.context == &v);
  const unsigned ended = this_attempt.ended;
  try {
    if (has_changed(ended >= 3)) return attach_again(r, v);
    if (mode_ != mode::attached) return &v;
    if (ended % 16 == 3) (void)ask(reader_request::settle);
    if (v.foreign_moment == nullptr && lost_enough_for_long_read()) (void)begin_moment(v);
    return &v;
  } catch (const std::bad_alloc&) {
    leave_for_good(r, v);
    throw;
  }
}

// Without memory: the caller passes the exception on.
void reader_session::leave_for_good(runtime& r, thread_context& v) noexcept {
  end_moment(v);
  r.leave(v);
}

bool reader_session::has_changed(bool at_link) {
  if (mode_ == mode::none || home_->generation() != home_->expected()) return true;
  return mode_ == mode::attached && at_link && has_lost_writer();
}

result<thread_context*> reader_session::fix_moment(runtime& r, thread_context& v) {
  STELE_ASSERT(this_access.size == 0 && v.foreign_moment == nullptr);
  result<thread_context*> in = &v;
  try {
    for (;;) {
      if (has_changed(true)) in = attach_again(r, v);
      if (!in || mode_ != mode::attached) return in;
      STELE_ASSERT(*in == &v);  // this thread's, however often it begins
      if (auto begun = begin_moment(v); begun) {
        return in;
      } else if (!has_changed(true)) {
        r.leave(v);
        if (begun.error().code == errc::io) return unanswered();
        return std::unexpected(std::move(begun.error()));
      }
    }
  } catch (const std::bad_alloc&) {
    leave_for_good(r, v);
    throw;
  }
}

result<thread_context*> reader_session::attach_again(runtime& r, thread_context& v) {
  end_moment(v);
  this_attempt.ended = 0;  // nothing is lost yet to the process that has the pool open now
  STELE_ASSERT(v.foreign_moment == nullptr && this_access.size == 0);
  const std::uint64_t seen = attachments_;
  r.leave(v);  // a pause waits for the owner of each log
  {
    const front_end_hold hold_front_end = r.hold_front_end();
    const std::lock_guard hold(attaching_);
    if (attachments_ == seen || mode_ == mode::none) {
      const pool_pause paused = r.pause();
      if (auto attached = attach(); !attached) return std::unexpected(attached.error());
      r.use_locks(locks_);
    }
    STELE_ASSERT(attachments_ > seen);
  }
  return r.enter_slow();
}

// After an error the read has no moment, and may go on as it was.
result<> reader_session::begin_moment(thread_context& v) {
  STELE_ASSERT(v.foreign_moment == nullptr && v.tx != nullptr);
  auto reply = ask(reader_request::begin_moment);
  if (!reply) return std::unexpected(std::move(reply.error()));
  const auto [number, pages, _, __] = reply->message.argument;
  if (!kept_layout{pages}.is_possible())
    return fail(errc::corrupt, "the process that has the pool open names too many pages");
  auto memory = shared_memory::map(reply->fds[0].release(), kept_layout{pages}.bytes());
  if (!memory) {
    (void)ask(reader_request::end_moment, number);
    return std::unexpected(std::move(memory.error()));
  }
  v.foreign_moment =
      std::make_unique<foreign_moment>(*home_, std::move(*memory), pages, number, attachments_);
  v.tx->set_moment(v.foreign_moment.get());
  return {};
}

void reader_session::end_moment(thread_context& v) noexcept {
  if (v.foreign_moment == nullptr) return;
  v.tx->set_moment(nullptr);
  const auto& m = static_cast<const foreign_moment&>(*v.foreign_moment);
  STELE_ASSERT(m.attachment != 0 && m.attachment <= attachments_);
  try {
    if (mode_ == mode::attached && m.attachment == attachments_)
      (void)ask(reader_request::end_moment, m.number);
  } catch (const std::bad_alloc&) {  // of an error: the writer ends it with the connection
  }
  v.foreign_moment.reset();
}

result<> reader_session::back_up(const std::string& path, const progress& report) {
  struct stat pool = {};
  if (os::fstat(file_.fd, pool) != 0) return storage::path_error("examine", path_);
  auto file = storage::new_file::make(path, static_cast<std::size_t>(pool.st_size));
  if (!file) return std::unexpected(file.error());
  if (auto copied = copy_open_pool(file_.fd, path_, file->fd(), report); !copied) return copied;
  return file->publish();
}

result<> copy_open_pool(int pool_fd, const std::string& path, int to, const progress& report) {
  // A connection of its own: other readers go on.
  auto link = channel::connect(pool_fd, 0);
  if (!link) return std::unexpected(link.error());
  reader_message m;
  m.what = static_cast<std::uint32_t>(reader_request::back_up);
  if (auto sent = link->send(m, {to, pool_fd}); !sent) return sent;
  for (;;) {
    auto reply = link->receive();
    if (!reply) return std::unexpected(reply.error());
    const reader_message& got = reply->message;
    if (got.what != 0) return fail(static_cast<errc>(got.what - 1), got.sentence());
    if (got.more == 0) return {};
    if (report && !report(got.argument[0], got.argument[1]))
      return fail(errc::cancelled,
                  fmt::format("the copy of {} was stopped; nothing is left of it", path));
  }
}

}  // namespace stele::detail
