// Injects a fault into a test's pool files: explore/file_faults.h as a syscall_hook, for all
// threads of the process.
#pragma once

#include <explore/file_faults.h>

#include <mutex>

namespace stele::testing {

class faulty_files final : public media::os::syscall_hook {
 public:
  explicit faulty_files(explore::file_faults faults) : faults_(std::move(faults)) {
    media::os::install_hook(this);
  }
  ~faulty_files() override { media::os::install_hook(nullptr); }
  faulty_files(const faulty_files&) = delete;
  faulty_files& operator=(const faulty_files&) = delete;

  int before(const media::os::request& r) noexcept override {
    const std::lock_guard one(mutex_);
    return faults_.inject(r).number;
  }
  void after(const media::os::request& r) noexcept override {
    const std::lock_guard one(mutex_);
    if (r.what == media::os::call::open) faults_.opened(r.fd);
  }
  std::size_t bytes_to_write(const media::os::request& r) noexcept override {
    const std::lock_guard one(mutex_);
    return faults_.bytes_to_write(r);
  }
  // Precondition: no call is in progress.
  const explore::file_faults& faults() const noexcept { return faults_; }

 private:
  std::mutex mutex_;
  explore::file_faults faults_;
};

}  // namespace stele::testing
