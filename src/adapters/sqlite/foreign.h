// A database whose pool another process may have open for writing. Nothing is locked there: a read
// transaction sees one version as long as it is the newest, and ends with SQLITE_BUSY_SNAPSHOT
// when it reads on after a commit.
#pragma once

#include "cache.h"

#include <cstddef>
#include <memory>
#include <span>

namespace stele::sqlite {

class foreign_database {
 public:
  // Errors: those of pool::open_read_only; not_found, if there is no database of this name.
  [[nodiscard]] static result<std::unique_ptr<foreign_database>> open(const std::string& path,
                                                                      const pool_options& options,
                                                                      const std::string& name);

  // The version that the following reads see. Errors: those of pool::read.
  [[nodiscard]] result<> begin_read();
  std::uint64_t size() const noexcept { return version_.size; }
  // Bytes below size(). False: the version is no longer the newest.
  [[nodiscard]] result<bool> read(std::uint64_t at, std::span<std::byte> to);

 private:
  // Every commit changes one of these.
  struct version {
    std::uint64_t size = 0, uncounted_commits = 0;
    std::uint32_t counter = 0;
    bool operator==(const version&) const = default;
  };
  [[nodiscard]] result<bool> copy(std::uint64_t at, std::span<std::byte> to) const;
  explicit foreign_database(stele::pool<stored_databases> pool) : pool_(std::move(pool)) {}
  version version_now() const;

  stele::pool<stored_databases> pool_;
  const stored_database* stored_ = nullptr;
  version version_, cached_;  // cached_: that of SQLite's cache
  version_bytes bytes_;
};

}  // namespace stele::sqlite
