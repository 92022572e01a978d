// Goes from a path to its mount, and from a mount to the storage below it.
#include <base/assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <pool/volatile_storage.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace stele::storage {

namespace {

namespace fs = std::filesystem;

constexpr unsigned max_depth = 8;  // layers; ends a cycle of layers

struct mount {
  std::string type, source, options;
};

// Decodes names as the kernel writes them: \040 is a blank.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_octal = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    const bool escape = text[i] == '\\' && i + 3 < text.size() && is_octal(i + 1) &&
                        is_octal(i + 2) && is_octal(i + 3);
    if (!escape) {
      plain += text[i];
      continue;
    }
    plain +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  STELE_ASSERT(plain.size() <= text.size());
  return plain;
}

// The mount that contains the path. Mount points hide each other, so names do not tell.
std::optional<mount> mount_of(const std::string& path) {
  struct statx status = {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0)
    return std::nullopt;
  std::istringstream all(media::os::read_text("/proc/self/mountinfo"));
  for (std::string line; std::getline(all, line);) {
    std::istringstream words(line);
    std::uint64_t id = 0;
    if (!(words >> id) || id != status.stx_mnt_id) continue;
    for (std::string word; words >> word && word != "-";) {
    }
    mount found;
    words >> found.type >> found.source >> found.options;
    found.source = unescaped(found.source);
    return found;
  }
  return std::nullopt;
}

// The value of a mount option, empty if it has none; nullopt if the option is absent.
std::optional<std::string> option(const mount& m, std::string_view name) {
  std::istringstream all(m.options);
  for (std::string one; std::getline(all, one, ',');) {
    const auto equals = std::min(one.find('='), one.size());
    if (std::string_view(one).substr(0, equals) == name)
      return unescaped(std::string_view(one).substr(std::min(equals + 1, one.size())));
  }
  return std::nullopt;
}

bool is_volatile(const std::string& path, unsigned depth);

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  const int fd = media::os::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return names;
  DIR* const all = ::fdopendir(fd);
  if (all == nullptr) {
    ::close(fd);
    return names;
  }
  while (const dirent* const one = ::readdir(all))
    if (one->d_name[0] != '.') names.emplace_back(one->d_name);
  ::closedir(all);
  return names;
}

// `folder` is a block device in /sys: memory, or a layer on other devices.
bool is_volatile_device(fs::path folder, unsigned depth) {
  STELE_ASSERT(depth <= max_depth + 1);  // a cycle of layers ends
  std::error_code ignored;
  folder = fs::canonical(folder, ignored);
  if (ignored || depth > max_depth) return false;
  if (fs::exists(folder / "partition", ignored)) folder = folder.parent_path();
  const std::string name = folder.filename();
  if (name.starts_with("ram") || name.starts_with("zram")) return true;
  if (const std::string file = media::os::read_text((folder / "loop/backing_file").c_str());
      !file.empty())
    return is_volatile(file.substr(0, file.find('\n')), depth + 1);
  return std::ranges::any_of(names_in(folder / "slaves"), [&](const std::string& below) {
    return is_volatile_device(folder / "slaves" / below, depth + 1);
  });
}
bool is_volatile_device(dev_t device, unsigned depth) {
  return is_volatile_device(fmt::format("/sys/dev/block/{}:{}", major(device), minor(device)),
                            depth);
}

bool is_volatile_overlay(const mount& m, unsigned depth) {
  STELE_ASSERT(depth <= max_depth && m.type == "overlay");
  if (option(m, "volatile") || option(m, "fsync") == "volatile") return true;
  const auto upper = option(m, "upperdir");
  return upper && upper->starts_with('/') && is_volatile(*upper, depth + 1);
}

bool is_volatile(const std::string& path, unsigned depth) {
  STELE_ASSERT(depth <= max_depth + 1);
  constexpr auto tmpfs_magic = 0x01021994u, ramfs_magic = 0x858458F6u;
  struct statfs system = {};
  struct stat file = {};
  if (depth > max_depth || ::statfs(path.c_str(), &system) != 0 || ::stat(path.c_str(), &file) != 0)
    return false;
  const auto type = static_cast<unsigned>(system.f_type);
  if (type == tmpfs_magic || type == ramfs_magic) return true;
  const auto m = mount_of(path);
  if (m && m->type == "overlay") return is_volatile_overlay(*m, depth);
  if (major(file.st_dev) != 0) return is_volatile_device(file.st_dev, depth);
  // Files of some file systems (btrfs) have no device of their own; the mount source names it.
  struct stat source = {};
  return m && ::stat(m->source.c_str(), &source) == 0 && S_ISBLK(source.st_mode) &&
         is_volatile_device(source.st_rdev, depth);
}

}  // namespace

bool is_volatile(const std::string& path) {
  return is_volatile(path, 0);
}

}  // namespace stele::storage
