// Writes every command of a memory to a file, as DRAMsim3 writes them (docs/format/traces.md).
#pragma once

#include <sim/controller/controller.h>

#include <cstdio>
#include <optional>
#include <string>

namespace stele::sim {

class command_trace final : public command_observer {
 public:
  // Observes the memory, which must outlive the trace or the call of finish(). Errors: io.
  [[nodiscard]] static result<std::unique_ptr<command_trace>> open(const std::string& path,
                                                                   memory_system& memory);
  // Goes on with the trace of a run that is resumed. Until visit_state() has been read nothing is
  // changed.
  [[nodiscard]] static result<std::unique_ptr<command_trace>> reopen(const std::string& path,
                                                                     memory_system& memory);
  command_trace(const command_trace&) = delete;
  command_trace& operator=(const command_trace&) = delete;
  // Without finish(), the run failed: the file is removed, unless keep() was called.
  ~command_trace();
  // A checkpoint names the file, so it stays when the run ends early.
  void keep() noexcept { keeps_ = true; }

  void issued(const command_report& report) override;
  // Ends the observation and the file. Errors: io, of any line; then the file is removed.
  [[nodiscard]] result<> finish();

  // Makes what was written durable. Errors: io.
  [[nodiscard]] result<> sync();
  // How far the file is. Precondition: writing, sync() has succeeded.
  void visit_state(archive& a);
  // After visit_state() was read: drops what was written behind it. Errors: io; invalid_argument,
  // when the file is shorter.
  [[nodiscard]] result<> go_on();

 private:
  command_trace(std::string path, std::FILE* file, memory_system& memory);
  void write(const command_report& r, bool closes);
  void remove_file() const;

  std::string path_;
  std::FILE* file_;
  memory_system& memory_;
  picoseconds cycle_;
  std::optional<command_report> column_;  // not written: an automatic precharge may follow it
  std::uint64_t written_ = 0;             // bytes, when the last checkpoint was made
  bool keeps_ = false;
};

}  // namespace stele::sim
