// A tape with a log, for tests: transactions of one thread, each a record, the commit line, a line
// of home and the truncation, with a fence after each. The log's two slots are used in turn.
#pragma once

#include <gtest/gtest.h>
#include <lab_media/tape.h>

namespace stele::sim {

class tape_of_transactions {
 public:
  // A truncation by another thread than 0 is of a line that belongs to no log of its own. Without
  // commit_lines the header does not tell commit lines from records.
  explicit tape_of_transactions(unsigned count, unsigned truncating_thread = 0,
                                bool commit_lines = true)
      : tape_(media::tape_writer::to_memory({.pool_size = 1 << 16,
                                             .home_offset = home,
                                             .log_offset = log,
                                             .log_size = 4096,
                                             .commit_offset = commit_lines ? 64u : 0u,
                                             .commit_size = commit_lines ? 128u : 0u})) {
    const media::tape_writer::scoped_lock lock(*tape_);
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t slot = i % 2, commit = log + 64 + slot * 64;
      tape_->event(media::tape_op::invoked, 0, i, 0);
      write(0, log + 192 + slot * 1920);
      write(0, commit);
      write(0, home + std::uint64_t{64} * 9);
      write(truncating_thread, commit);
      tape_->event(media::tape_op::returned, 0, i, 0);
    }
  }
  std::span<const std::byte> bytes() {
    EXPECT_TRUE(tape_->finish());
    return tape_->memory();
  }

 private:
  static constexpr std::uint64_t log = 4096, home = std::uint64_t{2} * 4096;

  void write(unsigned thread, std::uint64_t address) {
    tape_->event(media::tape_op::store, thread, address, 64);
    tape_->event(media::tape_op::flush, thread, address, 64);
    tape_->event(media::tape_op::fence, thread, 0, 0);
  }

  std::unique_ptr<media::tape_writer> tape_;
};

}  // namespace stele::sim
