// The place of a feed on its tape, for a checkpoint.
#include <sim/feed/feed.h>

#include <algorithm>

namespace stele::sim {

void feed::chunk_start::visit_state(archive& a) {
  a(place.byte, place.event);
  a.index_or(operation_thread, no_thread, 1u << 16);
}

void feed::visit_state(archive& a) {
  a(chunk_starts_, end_, order_, events_, ended_, first_);
  std::vector<bool> kept, has;  // chunks from first_ on; threads that are in a chunk
  for (const auto& c : chunks_) kept.push_back(c != nullptr);
  for (const cursor& c : cursors_) has.push_back(c.current != nullptr);
  a.require(first_ <= chunk_starts_.size() && chunk_starts_.size() - first_ <= max_chunks,
            "the tape's chunks in use are not those that were read");
  if (!a.sound()) return;
  kept.resize(chunk_starts_.size() - first_);
  if (a.reads()) chunks_.assign(kept.size(), nullptr);
  std::vector<unsigned> readers_left(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    bool there = kept[i];
    a(there);
    kept[i] = there;
    if (!there) continue;
    unsigned left = a.reads() ? 0 : chunks_[i]->readers_left;
    a(left);
    readers_left[i] = left;
  }
  for (std::size_t t = 0; t < cursors_.size(); ++t) {
    bool in_a_chunk = has[t];
    a(in_a_chunk, cursors_[t].number);
    has[t] = in_a_chunk;
    a.require(
        cursors_[t].number <= chunk_starts_.size() && (cursors_[t].number != 0 || !in_a_chunk),
        "a thread is in a chunk of the tape that was not read");
  }
  if (!a.reads() || !a.sound() || chunk_starts_.empty()) return;
  read_chunks_in_use(a, kept, has);
  for (std::size_t i = 0; a.sound() && i < kept.size(); ++i)
    if (chunks_[i] != nullptr) chunks_[i]->readers_left = readers_left[i];
}

void feed::read_chunks_in_use(archive& a, const std::vector<bool>& kept,
                              const std::vector<bool>& has) {
  const bool ended = ended_;
  const auto read = [&](std::size_t number) {
    auto c = read_again(number);
    if (c == nullptr) a.fail("the tape cannot be read there: " + status_.error().message);
    return c;
  };
  for (std::size_t i = 0; a.sound() && i < kept.size(); ++i)
    if (kept[i]) chunks_[i] = read(first_ + i);
  for (std::size_t t = 0; a.sound() && t < has.size(); ++t) {
    cursors_[t].current = nullptr;
    if (!has[t]) continue;
    const std::size_t number = cursors_[t].number - 1;
    const bool shared = number >= first_ && chunks_[number - first_] != nullptr;
    cursors_[t].current = shared ? chunks_[number - first_] : read(number);
  }
  ended_ = ended;
  if (!a.sound()) return;
  if (const auto back = reader_.seek(end_.place); !back) a.fail(back.error().message);
  operation_thread_ = end_.operation_thread;
}

// Null when it cannot be read, as status() says.
std::shared_ptr<feed::chunk> feed::read_again(std::size_t number) {
  const chunk_start& start = chunk_starts_[number];
  if (!(status_ = reader_.seek(start.place))) return nullptr;
  operation_thread_ = start.operation_thread;
  return read_chunk(false);
}

}  // namespace stele::sim
