// Reads the file whole, and checks that every event is; see trace.h.
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <foreign/trace.h>
#include <media/os.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace stele::foreign {

namespace {

struct frame {
  std::string object, function;
};

// A frame is a line: the object, a tab, "0x1234: function (file:line)".
std::vector<frame> frames_of(std::string_view text) {
  std::vector<frame> frames;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto tab = line.find('\t'), colon = line.find(": ");
    if (tab == line.npos || colon == line.npos) continue;
    frames.push_back({std::string(line.substr(0, tab)), std::string(line.substr(colon + 2))});
  }
  return frames;
}

bool is_of_system(const frame& f) {
  return f.object.empty() || f.object.starts_with("/lib") || f.object.starts_with("/usr/lib");
}

std::uint64_t end_of(const event& e) {
  const bool stores =
      e.kind == foreign_content || e.kind == foreign_store || e.kind == foreign_stream;
  return stores ? e.offset + e.bytes.size() : 0;
}

result<std::vector<std::byte>> content_of(const std::string& path) {
  const int fd = media::os::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (fd < 0) return base::fail_errno(errc::not_found, "open " + path);
  std::vector<std::byte> content;
  if (media::os::fstat(fd, status) == 0) content.resize(static_cast<std::size_t>(status.st_size));
  const bool whole = media::os::read_all(fd, content.data(), content.size(), 0);
  const int number = errno;
  ::close(fd);
  if (!whole) return base::fail_errno(errc::io, "read " + path, number);
  return content;
}

}  // namespace

result<trace> trace::read(const std::string& path) {
  auto content = content_of(path);
  if (!content) return std::unexpected(content.error());
  trace t;
  t.content_ = std::move(*content);
  bool ended = false;
  for (std::span<const std::byte> left = t.content_; !left.empty();) {
    foreign_event head{};
    if (left.size() >= sizeof head) std::memcpy(&head, left.data(), sizeof head);
    if (head.magic != FOREIGN_MAGIC || left.size() - sizeof head < head.length)
      return base::fail(errc::corrupt, path +
                                           " is not a recording of stele-lab crash foreign, or "
                                           "was cut off; record the program again");
    ended = head.kind == foreign_end;
    if (const auto taken = t.take(head, left.subspan(sizeof head, head.length)); !taken)
      return std::unexpected(taken.error());
    left = left.subspan(sizeof head + head.length);
  }
  if (!ended)
    return base::fail(errc::corrupt, path +
                                         " ends before the program did: it was killed, or became "
                                         "another program; record the program itself");
  return t;
}

result<void> trace::take(const foreign_event& head, std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (head.kind == foreign_start) {
    pool_ = text;
    size_ = head.offset;
  } else if (head.kind == foreign_site) {
    sites_.emplace(head.site, text);
  } else {
    events_.push_back(
        {static_cast<foreign_event_kind>(head.kind), head.thread, head.site, head.offset, bytes});
    size_ = std::max(size_, end_of(events_.back()));
  }
  if (size_ > most_pool_bytes)
    return base::fail(errc::full, fmt::format("{} has {} bytes, and pools of up to {} bytes are "
                                              "explored; make a smaller pool",
                                              pool_, size_, most_pool_bytes));
  return {};
}

std::string trace::site(unsigned number) const {
  const auto found = sites_.find(number);
  if (found == sites_.end()) return "an unknown place";
  const auto frames = frames_of(found->second);
  const auto own = std::ranges::find_if_not(frames, is_of_system);
  if (own != frames.end()) return own->function;
  return frames.empty() ? "an unknown place" : frames.front().function;
}

}  // namespace stele::foreign
