// The recording's events, applied to the crash model; see crash_walk.h.
#include <base/assert.h>
#include <fmt/format.h>
#include <foreign/crash_walk.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace stele::foreign {

using explore::line_size;

namespace {

constexpr std::uint64_t page_size = 4096;
// clflush fences for its own line alone: in the model it is another thread's flush and fence.
unsigned model_thread(unsigned thread) {
  return 2 * thread;
}
unsigned clflush_thread(unsigned thread) {
  return 2 * thread + 1;
}

std::size_t rounded(std::uint64_t size) {
  return static_cast<std::size_t>((std::max<std::uint64_t>(size, 1) + page_size - 1) / page_size *
                                  page_size);
}

std::uint32_t line_of(std::uint64_t offset) {
  return static_cast<std::uint32_t>(offset / line_size);
}

std::uint64_t size_of_sync(const event& e) {
  std::uint64_t size = 0;
  std::memcpy(&size, e.bytes.data(), std::min(sizeof size, e.bytes.size()));
  return size;
}

// The bytes of a word that the event stores, at their places in the word.
std::uint64_t bits_in_word(const event& e, std::uint64_t word) {
  std::uint64_t bits = 0;
  for (std::uint64_t at = word; at < word + 8; ++at)
    if (at >= e.offset && at < e.offset + e.bytes.size())
      bits |= static_cast<std::uint64_t>(e.bytes[at - e.offset]) << (8 * (at - word));
  return bits;
}

bool overlaps(const event& e, std::uint64_t word) {
  return e.offset < word + 8 && e.offset + e.bytes.size() > word;
}

}  // namespace

crash_walk::crash_walk(const trace& t)
    : trace_(t),
      left_(t.events()),
      durable_(rounded(t.pool_size()), 0, 0),
      image_(rounded(t.pool_size()), 0, 0),
      model_(rounded(t.pool_size())) {
  for (; !left_.empty() && left_.front().kind == foreign_content; left_ = left_.subspan(1))
    std::memcpy(durable_.data() + left_.front().offset, left_.front().bytes.data(),
                left_.front().bytes.size());
  durable_.rehash();
  image_.assign(durable_);
  model_.start(durable_);
}

bool crash_walk::next() {
  if (at_point_) {
    for (const std::uint32_t line : model_.pending()) choose(line, 0);
    apply(left_.front());
    left_ = left_.subspan(1);
  }
  at_point_ = false;
  for (; !left_.empty(); left_ = left_.subspan(1)) {
    if (ends_point(left_.front())) {
      ++point_;
      return at_point_ = true;
    }
    apply(left_.front());
  }
  return false;
}

bool crash_walk::ends_point(const event& e) const {
  switch (e.kind) {
    case foreign_fence:
      return flushed_.contains(e.thread) && !model_.pending().empty();
    case foreign_ordered_flush:
      return model_.options(line_of(e.offset)) > 1;
    case foreign_sync:
      return !model_.pending().empty();
    case foreign_end:
      return true;
    default:
      return false;
  }
}

void crash_walk::apply(const event& e) {
  switch (e.kind) {
    case foreign_store:
    case foreign_stream:
      store(e);
      break;
    case foreign_flush:
      flushed_.insert(e.thread);
      model_.flush(model_thread(e.thread), e.offset / line_size * line_size, line_size);
      break;
    case foreign_ordered_flush:
      make_durable(
          model_.bulk(clflush_thread(e.thread), e.offset / line_size * line_size, line_size));
      break;
    case foreign_fence:
      if (flushed_.erase(e.thread) != 0) make_durable(model_.fence(model_thread(e.thread)));
      break;
    case foreign_sync: {
      const std::uint64_t end = durable_.size(), size = size_of_sync(e);
      if (e.offset < end)
        make_durable(model_.bulk(model_thread(e.thread), e.offset, std::min(size, end - e.offset)));
      flushed_.erase(e.thread);
      break;
    }
    case foreign_output:
      output_.append(reinterpret_cast<const char*>(e.bytes.data()), e.bytes.size());
      break;
    default:
      break;
  }
}

void crash_walk::store(const event& e) {
  if (e.bytes.empty()) return;
  for (std::uint32_t line = line_of(e.offset); line <= line_of(e.offset + e.bytes.size() - 1);
       ++line) {
    auto& stores = stores_[line];
    if (model_.options(line) == 1) stores.clear();
    stores.push_back(&e);
  }
  if (e.kind == foreign_stream) {
    flushed_.insert(e.thread);
    model_.stream(model_thread(e.thread), e.offset, e.bytes);
  } else {
    model_.store(model_thread(e.thread), e.offset, e.bytes);
  }
}

void crash_walk::make_durable(std::span<const std::uint32_t> changed) {
  for (const std::uint32_t line : changed) image_.put(line, durable_.line(line));
}

std::string crash_walk::place() const {
  STELE_ASSERT(at_point_);
  const event& e = left_.front();
  const std::string site = trace_.site(e.site);
  switch (e.kind) {
    case foreign_fence:
      return "before the fence in " + site;
    case foreign_ordered_flush:
      return fmt::format("before the clflush of {:#x} in {}", e.offset / line_size * line_size,
                         site);
    case foreign_sync:
      return "before the sync in " + site;
    default:
      return "at the end of the program";
  }
}

std::vector<crash_walk::outcome> crash_walk::outcomes(std::uint32_t line,
                                                      std::uint64_t option) const {
  std::vector<outcome> all;
  const auto found = stores_.find(line);
  if (found == stores_.end()) return all;
  const auto& stores = found->second;
  std::size_t from = 0;  // stores are in program order, and so are the outcomes
  for (const auto& o : model_.store_outcomes(line, option)) {
    const auto fits = [&](const event* e) {
      return overlaps(*e, o.offset) && (bits_in_word(*e, o.offset) & o.mask) == (o.bits & o.mask);
    };
    const auto begin = stores.begin() + static_cast<std::ptrdiff_t>(from);
    const auto match = std::find_if(begin, stores.end(), fits);
    if (match != stores.end()) from = static_cast<std::size_t>(match - stores.begin());
    const unsigned low = static_cast<unsigned>(std::countr_zero(o.mask)) / 8,
                   size = static_cast<unsigned>(std::popcount(o.mask)) / 8;
    all.push_back({o.offset + low, size, match == stores.end() ? 0 : (*match)->site, o.kept});
  }
  return all;
}

}  // namespace stele::foreign
