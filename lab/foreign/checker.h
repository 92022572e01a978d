// Judges images of a pool file with a command of the user: exit status 0 says that one is
// consistent.
//
// Several run at a time, each on an image in a folder of its own, which it may change. A command
// that ends by a signal or does not end in time has found a violation, too. One thread only.
#pragma once

#include <explore/hashed_image.h>
#include <stele/error.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::foreign {

// As one word of a shell's command.
std::string shell_quoted(const std::string& word);

struct check_settings {
  std::string command;  // {}: the image's path; {output}: a file with what the program had printed
  std::string folder;   // where the images are
  std::string image_name;
  unsigned jobs = 1;
  std::chrono::milliseconds timeout{30'000};
};

struct judgement {
  bool consistent = false;
  bool could_run = true;  // false: the shell did not find the command
  std::string what;       // one line: how the command ended, and the first line that it printed
  std::string printed;
};

// What is judged. It is read during the call only.
struct crash_image {
  const explore::hashed_image& bytes;
  std::uint64_t size;
  std::string_view output;
};

class checker {
 public:
  using receiver = std::function<void(const judgement&)>;

  // Errors: invalid_argument (a command without {}), io.
  [[nodiscard]] static result<checker> make(check_settings settings);
  checker(checker&&) = default;
  checker& operator=(checker&&) = delete;
  ~checker();

  bool reads_output() const noexcept;
  // Begins to judge; done is called by a later call. Waits while all jobs are busy. Errors: io.
  result<void> begin(const crash_image& image, receiver done);
  // Returns when none runs.
  result<void> wait_for_all();
  // Judges one. Errors: io.
  [[nodiscard]] result<judgement> judge(const crash_image& image);

 private:
  struct job {
    std::string folder;
    pid_t process = 0;  // 0: idle
    int descriptor = -1;
    std::chrono::steady_clock::time_point deadline;
    receiver done;
  };

  explicit checker(check_settings settings) : settings_(std::move(settings)) {}
  result<void> start(job& j, const crash_image& image);
  std::string command_in(const job& j) const;
  result<void> wait_for_one();
  result<void> finish(job& j, bool in_time);

  check_settings settings_;
  std::vector<job> jobs_;
};

}  // namespace stele::foreign
