// See shared_memory.h.
#include <base/assert.h>
#include <base/check.h>
#include <fcntl.h>
#include <media/os.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tx/readers/shared_memory.h>
#include <unistd.h>

#include <utility>

namespace stele::detail {

using base::fail;
using base::fail_errno;

shared_memory::shared_memory(shared_memory&& other) noexcept {
  *this = std::move(other);
}

shared_memory& shared_memory::operator=(shared_memory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(at_, other.at_);
  std::swap(size_, other.size_);
  return *this;
}

shared_memory::~shared_memory() {
  STELE_ASSERT_ALWAYS(at_ == nullptr || (fd_ >= 0 && size_ != 0));
  if (at_ != nullptr) ::munmap(at_, size_);
  if (fd_ >= 0) ::close(fd_);
}

result<shared_memory> shared_memory::make(std::size_t bytes, bool reserved) {
  STELE_ASSERT_ALWAYS(bytes != 0);
  shared_memory m;
  m.fd_ = media::os::memory_file("stele", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (m.fd_ < 0) return fail_errno(errc::unsupported, "cannot make memory for other processes");
  if (::ftruncate(m.fd_, static_cast<off_t>(bytes)) != 0)
    return fail_errno(errc::full, "cannot make memory for other processes");
  m.size_ = bytes;
  if (reserved && !m.reserve(0, bytes))
    return fail_errno(errc::full, "no memory is left to share with other processes");
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd_, 0);
  if (at == MAP_FAILED) return fail_errno(errc::full, "cannot map memory for other processes");
  m.at_ = static_cast<std::byte*>(at);
  // Our mapping stays writable.
  if (::fcntl(m.fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return fail_errno(errc::unsupported, "this kernel cannot seal memory for other processes");
  return m;
}

result<shared_memory> shared_memory::map(int fd, std::size_t bytes) {
  shared_memory m;
  m.fd_ = fd;
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) < bytes)
    return fail(errc::corrupt, "the process that has the pool open shares too little memory");
  // It must not shrink under the mapping.
  if ((::fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0)
    return fail(errc::corrupt, "the process that has the pool open shares memory that may end");
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail_errno(errc::io, "cannot map the memory of the pool's writer");
  m.at_ = static_cast<std::byte*>(at);
  m.size_ = bytes;
  return m;
}

bool shared_memory::reserve(std::size_t offset, std::size_t bytes) const noexcept {
  STELE_ASSERT(fd_ >= 0 && bytes != 0);
  STELE_ASSERT(bytes <= size_ && offset <= size_ - bytes);  // its size is sealed
  int error;
  do error = media::os::fallocate(fd_, offset, bytes);
  while (error == EINTR);
  return error == 0;
}

}  // namespace stele::detail
