// The words of a pool's first page by which other processes find the one that has it open: its pid,
// the generation, the number of the socket for readers. None is checked, none needs durability.
#include <media/os.h>
#include <pool/new_file.h>
#include <pool/pool_file.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace stele::storage {

namespace os = media::os;

// The file names its owner while it is open, and its generation tells readers of a new owner.
// Header and logs may be private memory, so the words are
// written there and to the file.
result<> pool_file::write_owner() {
  static_assert(format::generation_offset == format::owner_offset + 8);
  std::array<std::uint64_t, 2> words;  // owner, generation
  std::memcpy(words.data(), mapping_.base + format::owner_offset, sizeof words);
  previous_owner_ = words[0];
  words = {static_cast<std::uint64_t>(::getpid()), words[1] + 1};
  if (!os::write_all(mapping_.fd, words.data(), sizeof words, format::owner_offset))
    return path_error("write", mapping_.path);
  std::memcpy(mapping_.base + format::owner_offset, words.data(), sizeof words);
  owner_ = words[0];
  return {};
}

bool pool_file::publish_reader_socket(std::uint64_t number) noexcept {
  if (!os::write_all(mapping_.fd, &number, sizeof number, format::reader_socket_offset))
    return false;
  std::memcpy(mapping_.base + format::reader_socket_offset, &number, sizeof number);
  serves_readers_ = number != 0;
  return true;
}
std::uint64_t reader_socket_of(int fd) noexcept {
  std::uint64_t number = 0;
  return os::read_all(fd, &number, sizeof number, format::reader_socket_offset) ? number : 0;
}

}  // namespace stele::storage
