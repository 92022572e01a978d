// Reads chunks of a tape and sorts their events by thread.
#include <base/check.h>
#include <fmt/format.h>
#include <sim/feed/feed.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace stele::sim {

using media::tape_op, media::tape_record, media::tape_volatile_at;

bool address_space::holds(const tape_record& r) const noexcept {
  const std::uint64_t length = std::max(r.length, 1u);
  if (r.address <= nonvolatile_bytes && length <= nonvolatile_bytes - r.address) return true;
  if (r.address >= tape_volatile_at && r.address - tape_volatile_at <= volatile_bytes &&
      length <= volatile_bytes - (r.address - tape_volatile_at))
    return true;
  const auto op = static_cast<tape_op>(r.op & ~media::tape_bytes_follow);
  return op == tape_op::fence || (op > tape_op::bulk && op != tape_op::image);
}

std::unexpected<error> feed::beyond_space(const tape_record& r) const {
  const bool is_volatile = r.address >= tape_volatile_at;
  return base::fail(
      errc::invalid_argument,
      fmt::format("the tape accesses {} bytes at {:#x}, and {}.capacity_bytes is {}; give the "
                  "memory more capacity, or convert the trace with --persistent, which gives pages "
                  "that are far apart a place in the volatile memory",
                  r.length, r.address - (is_volatile ? tape_volatile_at : 0),
                  is_volatile ? "volatile_memory" : "nonvolatile_memory",
                  is_volatile ? space_.volatile_bytes : space_.nonvolatile_bytes));
}

result<> feed::set_space(const address_space& space) {
  space_ = space;
  const std::uint64_t pool = header().pool_size;
  if (pool != 0 && pool <= space.nonvolatile_bytes && header().threads <= threads()) return {};
  const auto begin = reader_.tell();
  tape_order order;
  for (;;) {
    std::uint64_t event = reader_.tell().event;
    std::array<tape_record, 128> some;
    const std::size_t n = reader_.next_batch(some.data(), some.size());
    for (const tape_record& r : std::span(some).first(n))
      if (auto sound = check(r, order, event++); !sound) return sound;
    if (n != 0) continue;
    const auto e = reader_.next();
    if (!e) return std::unexpected(e.error());
    if (!*e) break;
    const tape_record r{static_cast<std::uint8_t>((*e)->op), 0,
                        static_cast<std::uint16_t>((*e)->thread), (*e)->length, (*e)->address};
    if (auto sound = check(r, order, event); !sound) return sound;
  }
  operation_thread_ = no_thread;
  if (auto whole = order.finish(); !whole) return whole;
  return reader_.seek(begin);
}

result<> feed::check(const tape_record& r, tape_order& order, std::uint64_t event) {
  if (!space_.holds(r)) return beyond_space(r);
  const unsigned thread = thread_of(r);
  if (thread >= threads()) return beyond_threads(thread, event);
  return order.see(r, thread, event);
}

std::unexpected<error> feed::beyond_threads(unsigned thread, std::uint64_t event) const {
  if (header().threads <= threads())
    return base::fail(
        errc::corrupt,
        fmt::format("event {} of the tape is of thread {}, and its header says that it "
                    "has {} threads; record it again",
                    event, thread, header().threads));
  return base::fail(
      errc::invalid_argument,
      fmt::format("event {} of the tape is of thread {}, and the machine has {} hardware threads; "
                  "give it more (cores.count, cores.threads_per_core), or record the tape with "
                  "fewer",
                  event, thread, threads()));
}

// Returns false, and sets the status, when the event accesses what is beyond the memories.
bool feed::admit(const tape_record& r) {
  if (space_.holds(r)) return true;
  status_ = beyond_space(r);
  return false;
}

result<feed> feed::open(const std::string& path, unsigned max_threads) {
  auto reader = media::tape_reader::open(path);
  if (!reader) return std::unexpected(reader.error());
  return make(std::move(*reader), max_threads);
}

result<feed> feed::over(std::span<const std::byte> tape, unsigned max_threads) {
  auto reader = media::tape_reader::from_memory(tape);
  if (!reader) return std::unexpected(reader.error());
  return make(std::move(*reader), max_threads);
}

result<feed> feed::make(media::tape_reader reader, unsigned max_threads) {
  const std::uint64_t threads = reader.header().threads;
  if (threads == 0)
    return base::fail(errc::corrupt,
                      "the tape does not say how many threads it has: the run that wrote it was "
                      "cut off; record it again");
  return feed(std::move(reader),
              static_cast<unsigned>(std::min<std::uint64_t>(threads, max_threads)));
}

feed::feed(media::tape_reader reader, unsigned threads)
    : reader_(std::move(reader)),
      cursors_(threads),
      thread_without_log_(header().log_size == 0 ? no_thread
                                                 : static_cast<unsigned>(header().threads - 1)) {}

std::span<const tape_item> feed::next(unsigned thread) {
  cursor& c = cursors_[thread];
  for (;;) {
    if (c.current != nullptr) release_chunk(c.number - 1);
    c.current = status_ ? get(c.number) : nullptr;
    if (c.current == nullptr) return {};
    ++c.number;
    if (const auto& items = c.current->of[thread]; !items.empty()) return items;
  }
}

// A thread has used up the chunk; the last thread drops it.
void feed::release_chunk(std::size_t number) {
  if (number < first_ || chunks_[number - first_] == nullptr) return;
  if (--chunks_[number - first_]->readers_left == 0)
    free_chunk_ = std::move(chunks_[number - first_]);
  while (!chunks_.empty() && chunks_.front() == nullptr) chunks_.pop_front(), ++first_;
}

std::shared_ptr<const feed::chunk> feed::get(std::size_t number) {
  if (number >= first_ && number - first_ < chunks_.size() && chunks_[number - first_] != nullptr)
    return chunks_[number - first_];
  const bool again = number < chunk_starts_.size();
  if (!again && ended_) return nullptr;
  if (!again) chunk_starts_.push_back(chunk_starts_.empty() ? chunk_start{reader_.tell()} : end_);
  const chunk_start& start = chunk_starts_[number];
  if (reader_.tell().byte != start.place.byte && !(status_ = reader_.seek(start.place)))
    return nullptr;
  operation_thread_ = start.operation_thread;
  auto read = read_chunk(!again);
  if (again || read == nullptr) return read;
  chunks_.push_back(read);
  if (chunks_.size() > max_chunks) chunks_.pop_front(), ++first_;
  return read;
}

std::shared_ptr<feed::chunk> feed::new_chunk() {
  auto c = free_chunk_ != nullptr && free_chunk_.use_count() == 1 ? std::move(free_chunk_)
                                                                  : std::make_shared<chunk>();
  c->of.resize(threads());
  for (auto& items : c->of) items.clear();
  c->payloads.clear();
  c->readers_left = threads();
  return c;
}

std::shared_ptr<feed::chunk> feed::read_chunk(bool first_time) {
  auto c = new_chunk();
  for (std::size_t n = 0; n < chunk_events; ++n) {
    const std::size_t plain = read_plain_events(*c, chunk_events - n, first_time);
    if (!status_) return nullptr;
    if (plain != 0) {
      if (first_time) events_ += plain;
      n += plain - 1;
      continue;
    }
    const std::uint64_t event = reader_.tell().event;
    const auto e = reader_.next();
    if (!e) {
      status_ = std::unexpected(e.error());
      return nullptr;
    }
    if (!*e) {
      ended_ = true;
      if (status_ = order_.finish(); !status_) return nullptr;
      break;
    }
    if (first_time) ++events_;
    append_event(*c, **e, event, first_time);
    if (!status_) return nullptr;
  }
  if (first_time) end_ = {reader_.tell(), operation_thread_};
  return c;
}

// The thread that the event is passed to. Called for each event in the order of the tape.
inline unsigned feed::thread_of(const tape_record& r) noexcept {
  const auto op = static_cast<tape_op>(r.op);
  if (op == tape_op::invoked) operation_thread_ = r.thread;
  const bool moved = r.thread == thread_without_log_ && operation_thread_ != no_thread;
  const unsigned thread = moved ? operation_thread_ : r.thread;
  return thread >= threads() && r.thread == thread_without_log_ ? 0 : thread;
}

// Sets the status when the event cannot be run. Inline: half the time of a hit is spent here.
[[gnu::always_inline]] inline void feed::append(chunk& c, const tape_item& item,
                                                std::uint64_t event, bool first_time) {
  const unsigned thread = thread_of(item.record);
  if (thread < threads()) [[likely]] {
    if (first_time && tape_order::is_mark(item.record))
      status_ = order_.see(item.record, thread, event);
    return c.of[thread].push_back(item);
  }
  status_ = beyond_threads(thread, event);
}

// Reads events without bytes, several at once; returns how many.
std::size_t feed::read_plain_events(chunk& c, std::size_t most, bool first_time) {
  std::uint64_t event = reader_.tell().event;
  std::array<tape_record, 128> some;
  const std::size_t n = reader_.next_batch(some.data(), std::min(most, some.size()));
  std::uint64_t highest = 0;
  for (const tape_record& r : std::span(some).first(n)) {
    highest = std::max(highest, r.address + r.length);
    append(c, {r, nullptr}, event++, first_time);
    if (!status_) return n;
  }
  // One comparison for all of them; nearly all are far below the limit.
  if (highest >= space_.nonvolatile_bytes)
    for (const tape_record& r : std::span(some).first(n))
      if (!admit(r)) break;
  return n;
}

void feed::append_event(chunk& c, const media::tape_event& e, std::uint64_t event,
                        bool first_time) {
  if (e.op == tape_op::image) {
    if (first_time && on_image) on_image(e.address, e.bytes);
    return;
  }
  tape_item item{{static_cast<std::uint8_t>(e.op),
                  static_cast<std::uint8_t>(static_cast<std::uint8_t>(e.tag) |
                                            (e.loads_pointer ? media::tape_pointer_flag : 0)),
                  static_cast<std::uint16_t>(e.thread), e.length, e.address},
                 nullptr};
  if (!admit(item.record)) return;
  if (!e.bytes.empty()) {
    auto& copy = c.payloads.emplace_back(new std::byte[e.bytes.size()]);
    std::memcpy(copy.get(), e.bytes.data(), e.bytes.size());
    item.bytes = copy.get();
  }
  append(c, item, event, first_time);
}

}  // namespace stele::sim
