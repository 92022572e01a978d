// Pending stores, and what a fence makes durable; crash_model.h has the rules.
#include <explore/crash_model.h>

#include <algorithm>

namespace stele::explore {

namespace {

// Only so many streamed words of one line are options of their own; further ones are kept or lost
// with the last of them.
constexpr unsigned max_streamed = 40;

std::uint64_t bytes_mask(std::size_t skip, std::size_t count) noexcept {
  const std::uint64_t low = count == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * count)) - 1;
  return low << (8 * skip);
}

std::uint64_t& word_of(hashed_image& image, std::uint32_t line, unsigned word) noexcept {
  return reinterpret_cast<std::uint64_t*>(image.line(line))[word];
}

}  // namespace

void crash_model::start(hashed_image& durable) {
  durable_ = &durable;
  for (std::uint32_t line : pending_) lines_[line].clear();
  pending_.clear();
  for (auto& list : unfenced_) list.clear();
}

std::vector<crash_model::unfenced>& crash_model::unfenced_by(unsigned thread) {
  if (unfenced_.size() <= thread) unfenced_.resize(thread + 1);
  return unfenced_[thread];
}

void crash_model::store(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) {
  add(thread, offset, bytes, false);
}

void crash_model::stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) {
  add(thread, offset, bytes, true);
  if (bytes.empty()) return;
  for (std::uint64_t line = offset / line_size; line <= (offset + bytes.size() - 1) / line_size;
       ++line)
    unfenced_by(thread).push_back({static_cast<std::uint32_t>(line), 0});
}

void crash_model::add(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes,
                      bool streamed) {
  const std::uint64_t group = ++number_;
  const bool wide = bytes.size() > 8;
  for (std::size_t done = 0; done < bytes.size();) {
    const std::uint64_t at = offset + done;
    const std::size_t skip = at % 8, take = std::min<std::size_t>(8 - skip, bytes.size() - done);
    word_store u{0,
                 bytes_mask(skip, take),
                 ++number_,
                 0,
                 static_cast<std::uint16_t>(thread),
                 static_cast<std::uint8_t>(at % line_size / 8),
                 streamed};
    u.group = wide ? group : u.number;
    std::memcpy(reinterpret_cast<std::byte*>(&u.bits) + skip, bytes.data() + done, take);
    add_word_store(static_cast<std::uint32_t>(at / line_size), u);
    done += take;
  }
}

// A store that leaves the durable word as it is, with nothing pending in the word, is ignored.
void crash_model::add_word_store(std::uint32_t line, word_store u) {
  auto& stores = lines_[line];
  const bool alone = std::none_of(stores.begin(), stores.end(),
                                  [&](const word_store& other) { return other.word == u.word; });
  if (alone && (word_of(*durable_, line, u.word) & u.mask) == u.bits) return;
  if (stores.empty()) pending_.push_back(line);
  stores.push_back(u);
}

void crash_model::flush(unsigned thread, std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return;
  for (std::uint64_t line = offset / line_size; line <= (offset + size - 1) / line_size; ++line)
    if (!lines_[line].empty())
      unfenced_by(thread).push_back({static_cast<std::uint32_t>(line), number_});
}

std::span<const std::uint32_t> crash_model::fence(unsigned thread) {
  changed_.clear();
  auto& list = unfenced_by(thread);
  for (const unfenced& t : list) make_durable(t.line, thread, t.through);
  list.clear();
  if (!changed_.empty())
    std::erase_if(pending_, [&](std::uint32_t line) { return lines_[line].empty(); });
  return changed_;
}

// Moves the durable stores of a line to the image. They supersede older pending stores to the same
// bytes.
void crash_model::make_durable(std::uint32_t line, unsigned thread, std::uint64_t through) {
  auto& stores = lines_[line];
  content words;
  std::memcpy(words.data(), durable_->line(line), line_size);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    const word_store u = stores[i];
    const bool is_durable = u.streamed ? u.thread == thread : u.number <= through;
    if (!is_durable) {
      stores[kept++] = u;
      continue;
    }
    words[u.word] = (words[u.word] & ~u.mask) | u.bits;
    for (std::size_t k = 0; k < kept; ++k)
      if (stores[k].word == u.word) stores[k].mask &= ~u.mask, stores[k].bits &= ~u.mask;
  }
  if (kept == stores.size()) return;
  stores.resize(kept);
  std::erase_if(stores, [](const word_store& u) { return u.mask == 0; });
  durable_->put(line, words.data());
  changed_.push_back(line);
}

std::uint64_t crash_model::ordinary_options(std::uint32_t line) const noexcept {
  const auto& stores = lines_[line];
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < stores.size();) {
    std::size_t words = 0;
    const std::uint64_t group = stores[i].group;
    for (; i < stores.size() && stores[i].group == group; ++i) words += !stores[i].streamed;
    count += (std::uint64_t{1} << words) - 1;
  }
  return count;
}

std::uint64_t crash_model::options(std::uint32_t line) const noexcept {
  const auto& stores = lines_[line];
  const auto streamed =
      std::count_if(stores.begin(), stores.end(), [](const word_store& u) { return u.streamed; });
  return ordinary_options(line) << std::min<std::uint64_t>(static_cast<std::uint64_t>(streamed),
                                                           max_streamed);
}

template <class Kept>
void crash_model::choose(std::uint32_t line, std::uint64_t option, Kept&& kept) const noexcept {
  const auto& stores = lines_[line];
  const std::uint64_t ordinary = ordinary_options(line);
  std::uint64_t steps = option % ordinary;          // of the ordinary stores, whole groups first
  const std::uint64_t streams = option / ordinary;  // one bit a streamed word
  unsigned stream = 0;
  for (std::size_t i = 0; i < stores.size();) {
    if (stores[i].streamed) {
      if ((streams >> std::min(stream++, max_streamed - 1) & 1) != 0) kept(stores[i]);
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < stores.size() && !stores[end].streamed && stores[end].group == stores[i].group)
      ++end;
    const std::uint64_t all = (std::uint64_t{1} << (end - i)) - 1, subset = std::min(steps, all);
    for (std::size_t k = i; k < end; ++k)
      if ((subset >> (k - i) & 1) != 0) kept(stores[k]);
    steps -= subset;
    if (subset != all) steps = 0;
    i = end;
  }
}

crash_model::content crash_model::after(std::uint32_t line, std::uint64_t option) const noexcept {
  content words;
  std::memcpy(words.data(), durable_->line(line), line_size);
  choose(line, option,
         [&](const word_store& u) { words[u.word] = (words[u.word] & ~u.mask) | u.bits; });
  return words;
}

void crash_model::put(hashed_image& image, std::uint32_t line,
                      std::uint64_t option) const noexcept {
  image.put(line, option == 0 ? durable_->line(line)
                              : reinterpret_cast<const std::byte*>(after(line, option).data()));
}

void crash_model::add_stale(const hashed_image& image, std::uint32_t line,
                            std::vector<std::uint32_t>& lines) const {
  if (const content newest = after(line, options(line) - 1);
      std::memcmp(image.line(line), newest.data(), line_size) != 0)
    lines.push_back(line);
}

std::vector<media_model::store_outcome> crash_model::store_outcomes(std::uint32_t line,
                                                                    std::uint64_t option) const {
  std::vector<store_outcome> all;
  for (const word_store& u : lines_[line])
    all.push_back({line * line_size + u.word * 8, u.bits, u.mask, u.streamed, false});
  choose(line, option, [&](const word_store& u) {
    all[static_cast<std::size_t>(&u - lines_[line].data())].kept = true;
  });
  return all;
}

}  // namespace stele::explore
