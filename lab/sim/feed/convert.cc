// Reads a file line by line for the chosen trace format.
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sim/feed/convert.h>
#include <sim/feed/convert_format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace stele::sim {

using base::fail;
using base::fail_errno;

namespace {

constexpr std::size_t longest_line = std::size_t{1} << 16;
constexpr std::size_t shown_of_line = 80;

struct named_format {
  std::string_view name;
  std::unique_ptr<trace_format> (*make)();
};
constexpr std::array formats = {named_format{"lackey", make_lackey},
                                named_format{"ramulator", make_ramulator},
                                named_format{"ramulator-memory", make_ramulator_memory},
                                named_format{"ramulator2", make_ramulator2},
                                named_format{"dramsim3", make_dramsim3},
                                named_format{"nvmain", make_nvmain}};

// Reads the lines of a file; the last line may lack its line end.
class line_reader {
 public:
  static result<line_reader> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return fail_errno(errno == ENOENT ? errc::not_found : errc::permission,
                        fmt::format("cannot read the trace {}", path));
    return line_reader(fd, path);
  }
  line_reader(line_reader&& o) noexcept
      : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)), buffer_(std::move(o.buffer_)) {}
  line_reader& operator=(line_reader&&) = delete;
  ~line_reader() {
    if (fd_ >= 0) ::close(fd_);
  }

  // The next line without its end, LF or CR LF; empty at the end of the file. Valid until the next
  // call.
  result<std::optional<std::string_view>> next() {
    for (std::size_t looked = from_;;) {
      if (const void* end = looked < filled_
                                ? std::memchr(buffer_.data() + looked, '\n', filled_ - looked)
                                : nullptr)
        return take(static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data()), 1);
      if (ended_ && from_ == filled_) return std::nullopt;
      if (ended_ || filled_ - from_ > longest_line) return take(filled_, 0);
      looked = filled_ - from_;
      if (auto more = fill(); !more) return std::unexpected(more.error());
    }
  }
  std::uint64_t number() const noexcept { return number_; }  // of the last line, from 1
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  line_reader(int fd, std::string path)
      : fd_(fd), path_(std::move(path)), buffer_((std::size_t{1} << 20) + longest_line, '\0') {}

  result<std::optional<std::string_view>> take(std::size_t end, std::size_t line_end) {
    if (end - from_ > longest_line)
      return fail(errc::corrupt, fmt::format("{}:{}: a line of more than {} bytes", path_,
                                             number_ + 1, longest_line));
    std::string_view line(buffer_.data() + from_, end - from_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    from_ = end + line_end;
    ++number_;
    return line;
  }
  // Moves the rest of the buffer to its beginning and reads behind it.
  result<> fill() {
    std::memmove(buffer_.data(), buffer_.data() + from_, filled_ - from_);
    filled_ -= std::exchange(from_, 0);
    ssize_t n = 0;
    do n = ::read(fd_, buffer_.data() + filled_, buffer_.size() - filled_);
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail_errno(errc::io, fmt::format("cannot read the trace {}", path_));
    ended_ = n == 0;
    filled_ += static_cast<std::size_t>(n);
    bytes_read_ += static_cast<std::uint64_t>(n);
    return {};
  }

  int fd_;
  std::string path_, buffer_;
  std::size_t from_ = 0, filled_ = 0;
  std::uint64_t number_ = 0, bytes_read_ = 0;
  bool ended_ = false;
};

// The beginning of a line for an error message; bytes that are not printable are escaped.
std::string shown(std::string_view line) {
  std::string text;
  for (const char c : line.substr(0, shown_of_line)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte == '\t'              ? "\\t"
            : byte < 32 || byte > 126 ? fmt::format("\\x{:02x}", byte)
                                      : std::string(1, c);
  }
  return line.size() > shown_of_line ? text + ".." : text;
}

constexpr std::uint64_t page_bytes = 4096;

class tape_sink final : public trace_sink {
 public:
  tape_sink(media::tape_writer& tape, const std::optional<persistent_range>& persistent)
      : tape_(tape), persistent_(persistent) {}

 private:
  void event(media::tape_op what, unsigned thread, std::uint64_t address,
             std::uint32_t length) override {
    if (!persistent_ || what == media::tape_op::compute)
      return tape_.event(what, thread, address, length);
    // Neighbouring pages may have places apart, so an access of both becomes two.
    for (std::uint32_t rest = length; rest != 0;) {
      const auto here = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(rest, page_bytes - address % page_bytes));
      tape_.event(what, thread, place_of(address), here);
      address += here, rest -= here;
    }
  }
  std::uint64_t place_of(std::uint64_t address) {
    if (address >= persistent_->begin && address < persistent_->end)
      return address - persistent_->begin;
    const std::uint64_t next = volatile_pages_.size(),
                        page =
                            volatile_pages_.try_emplace(address / page_bytes, next).first->second;
    return media::tape_volatile_at + page * page_bytes + address % page_bytes;
  }

  media::tape_writer& tape_;
  const std::optional<persistent_range> persistent_;
  std::unordered_map<std::uint64_t, std::uint64_t> volatile_pages_;  // to their places
};

// Holds the request of the last line. A compute event is idle cycles, a request takes one cycle.
class request_sink final : public trace_sink {
 public:
  traced_request last;

 private:
  void event(media::tape_op what, unsigned, std::uint64_t address, std::uint32_t) override {
    if (what == media::tape_op::compute) {
      cycle_ += std::min(address, ~std::uint64_t{0} - 1 - cycle_);  // no cycle is that late
      return;
    }
    last = {what == media::tape_op::store, address, cycle_++};
  }
  std::uint64_t cycle_ = 0;
};

// The error of a line that is not of the format.
std::unexpected<error> wrong_line(const std::string& path, const line_reader& lines,
                                  std::string_view line, const std::string& expected) {
  return fail(errc::corrupt, fmt::format("{}:{}: \"{}\": expected {}", path, lines.number(),
                                         shown(line), expected));
}

std::unexpected<error> no_such_format(std::string_view format,
                                      const std::vector<std::string>& known) {
  return fail(errc::invalid_argument,
              fmt::format("no format of traces is called \"{}\"; there are {}", format,
                          fmt::join(known, ", ")));
}

}  // namespace

std::vector<std::string> trace_formats() {
  std::vector<std::string> names;
  for (const named_format& f : formats) names.emplace_back(f.name);
  return names;
}

result<persistent_range> parse_persistent_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto begin = either_base(text.substr(0, dash)),
             end = either_base(dash == text.npos ? std::string_view() : text.substr(dash + 1));
  if (!begin || !end || *begin >= *end || *begin % page_bytes != 0 || *end % page_bytes != 0)
    return fail(errc::invalid_argument,
                fmt::format("the persistent range is \"{}\"; give begin-end, decimal or with 0x, "
                            "both multiples of {}, as in 0x4a00000-0x5000000",
                            text, page_bytes));
  return persistent_range{*begin, *end};
}

result<convert_report> convert_trace(std::string_view format, const std::string& path,
                                     media::tape_writer& tape, const convert_progress& progress,
                                     const std::optional<persistent_range>& persistent) {
  const auto named = std::ranges::find(formats, format, &named_format::name);
  if (named == formats.end()) return no_such_format(format, trace_formats());
  auto lines = line_reader::open(path);
  if (!lines) return std::unexpected(lines.error());
  const auto reads = named->make();
  const std::uint64_t before = tape.events();
  tape_sink sink(tape, persistent);
  const media::tape_writer::scoped_lock lock(tape);
  for (;;) {
    const auto line = lines->next();
    if (!line) return std::unexpected(line.error());
    if (!*line) break;
    if (const format_mismatch expected = reads->parse_line(**line, sink))
      return wrong_line(path, *lines, **line, *expected);
    if (lines->number() % 65536 == 0 && progress && !progress(lines->bytes_read()))
      return fail(errc::cancelled, fmt::format("{}: stopped after line {}", path, lines->number()));
  }
  reads->finish(sink);
  return convert_report{lines->number(), tape.events() - before};
}

// --- requests to a memory ---

namespace {

class requests final : public request_trace {
 public:
  requests(std::string path, line_reader lines, std::unique_ptr<trace_format> format)
      : path_(std::move(path)), lines_(std::move(lines)), format_(std::move(format)) {}

  result<std::optional<traced_request>> next() override {
    const auto line = lines_.next();
    if (!line) return std::unexpected(line.error());
    if (!*line) return std::nullopt;
    if (const format_mismatch expected = format_->parse_line(**line, sink_))
      return wrong_line(path_, lines_, **line, *expected);
    return sink_.last;
  }
  std::uint64_t bytes_read() const noexcept override { return lines_.bytes_read(); }

 private:
  std::string path_;
  line_reader lines_;
  std::unique_ptr<trace_format> format_;
  request_sink sink_;
};

}  // namespace

std::vector<std::string> request_trace_formats() {
  return {"dramsim3", "ramulator-memory", "ramulator2"};
}

result<std::unique_ptr<request_trace>> request_trace::open(std::string_view format,
                                                           const std::string& path) {
  const auto known = request_trace_formats();
  if (std::ranges::find(known, format) == known.end()) return no_such_format(format, known);
  auto lines = line_reader::open(path);
  if (!lines) return std::unexpected(lines.error());
  const auto named = std::ranges::find(formats, format, &named_format::name);
  return std::make_unique<requests>(path, std::move(*lines), named->make());
}

}  // namespace stele::sim
