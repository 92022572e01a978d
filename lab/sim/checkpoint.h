// The file of a checkpoint: what run it is of, and the state of that run
// (docs/format/checkpoint.md).
//
// A file is written under another name, made durable and renamed, so a failure leaves the one
// before. Reading checks size, version and checksum before anything is used.
#pragma once

#include <sim/archive.h>
#include <sim/config.h>
#include <sim/time.h>
#include <stele/error.h>

#include <string>
#include <vector>

namespace stele::sim {

// Raised when the order or the meaning of what is stored changes.
inline constexpr std::uint32_t checkpoint_version = 1;

// Changes when a class whose state is stored changes its size.
std::uint32_t checkpoint_layout() noexcept;

// The run that a checkpoint is of. Only a run with the same may go on from it, except for the
// tape's path.
struct checkpoint_subject {
  std::string machine;  // every key, as toml_of() writes them
  std::string tape;     // where it was
  std::uint64_t tape_bytes = 0, tape_checksum = 0;
  std::uint64_t seed = 1, warm_up_transactions = 0;
  picoseconds timeline_interval = 0;
  bool commands = false;  // the run writes its commands to files
  picoseconds at = 0;     // simulated time

  void visit_state(archive& a);
};

struct checkpoint {
  checkpoint_subject subject;
  std::vector<std::byte> content;  // of the file
  std::span<const std::byte> state;
};

// Errors: io.
[[nodiscard]] result<> write_checkpoint(const std::string& path, checkpoint_subject subject,
                                        std::span<const std::byte> state);
// Errors: not_found, permission, io; corrupt; version.
[[nodiscard]] result<checkpoint> read_checkpoint(const std::string& path);

// Sets size and checksum of the tape, which is read once. Errors: those of opening a file.
[[nodiscard]] result<> identify_tape(checkpoint_subject& subject);

// Whether the run `now` may go on from the checkpoint at `path`. Errors: invalid_argument, with
// what differs.
[[nodiscard]] result<> check_same_run(const std::string& path, const checkpoint_subject& then,
                                      const checkpoint_subject& now);

// The machine of the checkpoint. Its plug-ins are not loaded: a file must not choose what code
// runs. Errors: invalid_argument, when it has plug-ins; those of parse_machine().
[[nodiscard]] result<machine_config> machine_of(const std::string& path,
                                                const checkpoint_subject& subject);

}  // namespace stele::sim
