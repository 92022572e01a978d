// Reads of a database beside a writer in another process.
#include "foreign.h"

#include <base/assert.h>
#include <stele/memory.h>

#include <algorithm>

namespace stele::sqlite {

result<std::unique_ptr<foreign_database>> foreign_database::open(const std::string& path,
                                                                 const pool_options& options,
                                                                 const std::string& name) {
  auto pool = stele::pool<stored_databases>::open_read_only(path, options);
  if (!pool) return std::unexpected(std::move(pool.error()));
  std::unique_ptr<foreign_database> opened(new foreign_database(std::move(*pool)));
  auto found = opened->pool_.read([&](const stored_databases& all) { return all.find(name); });
  if (!found) return std::unexpected(std::move(found.error()));
  if (*found == nullptr)
    return std::unexpected(error{errc::not_found, path + " has no database \"" + name + "\""});
  opened->stored_ = *found;
  return opened;
}

// In a transaction. Throws failure(errc::corrupt).
foreign_database::version foreign_database::version_now() const {
  STELE_ASSERT(stored_ != nullptr);
  stored_->verify();
  version now{stored_->size_bytes, stored_->uncounted_commits, 0};
  if (now.size >= change_counter_at + sizeof(now.counter))
    pool_memory::load_bytes(&now.counter, stored_->extent_at(0) + change_counter_at,
                            sizeof(now.counter));
  return now;
}

result<> foreign_database::begin_read() {
  return pool_.read([&](const stored_databases&) { version_ = version_now(); });
}

result<bool> foreign_database::read(std::uint64_t at, std::span<std::byte> to) {
  STELE_ASSERT(to.empty() || at + to.size() <= version_.size);
  auto done = copy(at, to);
  if (!done || !*done) return done;
  if (version_bytes::is_question(at, to.size()))
    bytes_.answer(std::exchange(cached_, version_) == version_, to.first<version_bytes::size>());
  else
    bytes_.note(at, to);
  return done;
}

result<bool> foreign_database::copy(std::uint64_t at, std::span<std::byte> to) const {
  return pool_.read([&](const stored_databases&) {
    if (version_now() != version_) return false;
    for (std::size_t done = 0; done < to.size();) {
      const auto [extent, offset] = place_of(at + done);
      const std::size_t part =
          std::min<std::size_t>(to.size() - done, extent_bytes(extent) - offset);
      STELE_ASSERT(part > 0 && offset + part <= extent_bytes(extent));
      pool_memory::load_bytes(to.data() + done, stored_->extent_at(extent) + offset, part);
      done += part;
    }
    return true;
  });
}

}  // namespace stele::sqlite
