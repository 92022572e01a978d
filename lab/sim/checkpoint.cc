// Writes and reads the file of a checkpoint, and compares runs.
#include <base/check.h>
#include <base/checksum.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <lab_media/tape.h>
#include <sim/checkpoint.h>
#include <sim/config_file.h>
#include <sim/controller/fr_fcfs.h>
#include <sim/simulation.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace stele::sim {

namespace {

struct file_header {
  char magic[8];
  std::uint32_t version, layout;
  std::uint64_t subject_bytes, state_bytes;
};
static_assert(sizeof(file_header) == 32);
constexpr char magic[8] = {'S', 'T', 'E', 'L', 'E', 'C', 'K', 'P'};
constexpr std::uint64_t checksum_seed = 0x4B43'454C'4554'53;

constexpr std::size_t to_words(std::size_t bytes) noexcept {
  return (bytes + 7) / 8 * 8;
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) noexcept {
  base::checksum sum(checksum_seed);
  sum.add(bytes.data(), bytes.size());
  return sum.value();
}

class descriptor {
 public:
  explicit descriptor(const std::string& path)
      : fd_(media::os::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  int fd() const noexcept { return fd_; }
  // None of what is no regular file.
  std::optional<std::uint64_t> size() const noexcept {
    struct stat status = {};
    if (media::os::fstat(fd_, status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  int fd_;
};

std::unexpected<error> cannot_read(const char* what, const std::string& path) {
  const errc code = errno == ENOENT   ? errc::not_found
                    : errno == EACCES ? errc::permission
                                      : errc::io;
  return base::fail_errno(code, fmt::format("cannot read the {} {}", what, path));
}

std::unexpected<error> damaged(const std::string& path, const std::string& how) {
  return base::fail(
      errc::corrupt,
      fmt::format("the checkpoint {} {}; take an earlier one, or start the run anew", path, how));
}

result<std::vector<std::byte>> bytes_of(const std::string& path) {
  const descriptor file(path);
  if (file.fd() < 0) return cannot_read("checkpoint", path);
  const auto size = file.size();
  if (!size) return damaged(path, "is no regular file");
  std::vector<std::byte> content(*size);
  if (!media::os::read_all(file.fd(), content.data(), content.size(), 0)) {
    if (errno == 0) return damaged(path, "became shorter while it was read");
    return cannot_read("checkpoint", path);
  }
  return content;
}

result<file_header> header_of(const std::string& path, std::span<const std::byte> content) {
  file_header h;
  if (content.size() < sizeof h + 8) return damaged(path, "is too short to be one");
  std::memcpy(&h, content.data(), sizeof h);
  if (std::memcmp(h.magic, magic, sizeof magic) != 0)
    return damaged(path, "is none: it does not begin with STELECKP");
  if (h.version != checkpoint_version || h.layout != checkpoint_layout())
    return base::fail(
        errc::version,
        fmt::format(
            "the checkpoint {} has version {}.{:08x}, and this program goes on from {}.{:08x} "
            "alone; resume it with the program that wrote it, or start the run anew",
            path, h.version, h.layout, checkpoint_version, checkpoint_layout()));
  const std::size_t room = content.size() - sizeof h - 8;
  if (h.subject_bytes > room || h.state_bytes > room ||
      to_words(h.subject_bytes + h.state_bytes) != room)
    return damaged(path, "was cut off or extended");
  std::uint64_t sum = 0;
  std::memcpy(&sum, content.data() + content.size() - 8, 8);
  if (sum != checksum_of(content.first(content.size() - 8)))
    return damaged(path, "is damaged: its checksum is wrong");
  return h;
}

// The first line that differs.
std::string difference(const std::string& then, const std::string& now) {
  std::size_t begin = 0, i = 0;
  std::string section;
  for (; i < then.size() && i < now.size() && then[i] == now[i]; ++i) {
    if (then[i] != '\n') continue;
    if (then[begin] == '[') section = then.substr(begin, i - begin) + " ";
    begin = i + 1;
  }
  const auto line = [&](const std::string& s) {
    return s.substr(begin, std::min(s.find('\n', begin), s.size()) - begin);
  };
  return fmt::format("has {}\"{}\", and this one \"{}\"", section, line(then), line(now));
}

}  // namespace

std::uint32_t checkpoint_layout() noexcept {
  std::uint32_t layout = 2166136261;
  for (const std::size_t size : {sizeof(event_queue),
                                 sizeof(feed),
                                 sizeof(hierarchy),
                                 sizeof(hierarchy_counts),
                                 sizeof(cache_array),
                                 sizeof(isolation_control),
                                 sizeof(line_set),
                                 sizeof(hardware_thread),
                                 sizeof(thread_counts),
                                 sizeof(kiln),
                                 sizeof(kiln_counts),
                                 sizeof(memory_system),
                                 sizeof(channel),
                                 sizeof(channel_state),
                                 sizeof(entry),
                                 sizeof(fr_fcfs_scheduler),
                                 sizeof(timing_table),
                                 sizeof(epoch_tracker),
                                 sizeof(memory_statistics),
                                 sizeof(cxl_link),
                                 sizeof(prefetcher),
                                 sizeof(tlb)})
    layout = (layout ^ static_cast<std::uint32_t>(size)) * 16777619;
  return layout;
}

void checkpoint_subject::visit_state(archive& a) {
  a(machine, tape, tape_bytes, tape_checksum, seed, warm_up_transactions);
  a(timeline_interval, commands, at);
}

result<> write_checkpoint(const std::string& path, checkpoint_subject subject,
                          std::span<const std::byte> state) {
  archive of_subject;
  of_subject(subject);
  const auto& first = of_subject.bytes();
  file_header h{{}, checkpoint_version, checkpoint_layout(), first.size(), state.size()};
  std::memcpy(h.magic, magic, sizeof magic);
  std::vector<std::byte> content(sizeof h + to_words(first.size() + state.size()) + 8);
  std::memcpy(content.data(), &h, sizeof h);
  std::ranges::copy(first, content.begin() + sizeof h);
  std::ranges::copy(state, content.begin() + static_cast<std::ptrdiff_t>(sizeof h + first.size()));
  const std::uint64_t sum = checksum_of(std::span(content).first(content.size() - 8));
  std::memcpy(content.data() + content.size() - 8, &sum, 8);

  const auto failed = [&](int number) {
    return base::fail_errno(
        errc::io,
        fmt::format("cannot write the checkpoint {} (an earlier one is as it was; free space, or "
                    "give another file)",
                    path),
        number);
  };
  media::output_file file;
  if (const int number = file.open(path, 0666); number != 0) return failed(number);
  if (!media::os::write_all(file.fd(), content.data(), content.size(), 0)) return failed(errno);
  if (const int number = file.keep(true); number != 0) return failed(number);
  return {};
}

result<checkpoint> read_checkpoint(const std::string& path) {
  auto content = bytes_of(path);
  if (!content) return std::unexpected(content.error());
  const auto h = header_of(path, *content);
  if (!h) return std::unexpected(h.error());
  checkpoint c;
  c.content = std::move(*content);
  const auto stored = std::span<const std::byte>(c.content).subspan(sizeof *h);
  archive of_subject(stored.first(h->subject_bytes));
  of_subject(c.subject);
  of_subject.require(of_subject.left() == 0, "something follows its description");
  if (!of_subject.sound()) return damaged(path, "is damaged: " + of_subject.fault());
  c.state = stored.subspan(h->subject_bytes, h->state_bytes);
  return c;
}

result<> identify_tape(checkpoint_subject& subject) {
  const descriptor file(subject.tape);
  if (file.fd() < 0) return cannot_read("tape", subject.tape);
  const auto size = file.size();
  if (!size)
    return base::fail(
        errc::invalid_argument,
        fmt::format("the tape {} is no regular file, so a checkpoint cannot come back "
                    "to it; copy it to a file",
                    subject.tape));
  subject.tape_bytes = *size;
  base::checksum sum(checksum_seed);
  std::vector<std::byte> part(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < *size; at += part.size()) {
    const std::size_t n = std::min<std::uint64_t>(part.size(), *size - at);
    std::ranges::fill(part, std::byte{0});
    if (!media::os::read_all(file.fd(), part.data(), n, at))
      return cannot_read("tape", subject.tape);
    sum.add(part.data(), to_words(n));
  }
  subject.tape_checksum = sum.value();
  return {};
}

result<> check_same_run(const std::string& path, const checkpoint_subject& then,
                        const checkpoint_subject& now) {
  const auto refused = [&](const std::string& why) {
    return base::fail(errc::invalid_argument,
                      fmt::format("the checkpoint {} is of another run: {}", path, why));
  };
  const auto differs = [&](const char* what, std::uint64_t was, std::uint64_t is) {
    return refused(
        fmt::format("its {} is {}, and this one's {}; give the same, or start the run "
                    "anew",
                    what, was, is));
  };
  if (then.machine != now.machine)
    return refused(
        fmt::format("its machine {}; leave --machine, --set and --design out, or give "
                    "the same",
                    difference(then.machine, now.machine)));
  if (then.tape_bytes != now.tape_bytes || then.tape_checksum != now.tape_checksum)
    return refused(
        fmt::format("its tape has {} bytes and the checksum {:016x}, and {} has {} bytes "
                    "and {:016x}; give the tape of the run, which was {}",
                    then.tape_bytes, then.tape_checksum, now.tape, now.tape_bytes,
                    now.tape_checksum, then.tape));
  if (then.seed != now.seed) return differs("seed", then.seed, now.seed);
  if (then.warm_up_transactions != now.warm_up_transactions)
    return differs("warm-up in transactions", then.warm_up_transactions, now.warm_up_transactions);
  if (then.timeline_interval != now.timeline_interval)
    return differs("epoch in ps", then.timeline_interval, now.timeline_interval);
  if (then.commands != now.commands)
    return refused(then.commands
                       ? "it writes its commands to files; give --commands with the same name"
                       : "it writes no commands; leave --commands out");
  return {};
}

result<machine_config> machine_of(const std::string& path, const checkpoint_subject& subject) {
  auto m = parse_closed_machine(subject.machine, path);
  if (!m)
    return base::fail(m.error().code,
                      m.error().message + " (or give the run's machine with --machine)");
  return m;
}

}  // namespace stele::sim
