// Journals in memory, and the names of super-journals.
#include "journal.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <base/assert.h>
#include <base/per_process.h>

#include "file.h"

namespace stele::sqlite {

namespace {

// The super-journals that exist. SQLite may leave that of a rolled-back transaction behind, so the
// oldest are dropped when there are many.
struct super_journals {
  static constexpr std::size_t most = 1024;
  std::mutex mutex;
  std::set<std::string, std::less<>> names;
  std::deque<std::string> opened;  // the same names, the newest last

  void add(const char* name) {
    const std::scoped_lock one(mutex);
    if (names.contains(std::string_view(name))) return;
    opened.emplace_back(name);
    try {
      names.emplace(name);
    } catch (...) {  // no memory
      opened.pop_back();
      throw;
    }
    if (opened.size() <= most) return;
    names.erase(opened.front());
    opened.pop_front();
    STELE_ASSERT(opened.size() == most && opened.back() == name);
  }
  // A name that is used again becomes the newest.
  void forget(const char* name) noexcept {
    const std::scoped_lock one(mutex);
    const auto at = names.find(std::string_view(name));
    if (at == names.end()) return;
    const auto in_order = std::find(opened.rbegin(), opened.rend(), *at);  // mostly the newest
    STELE_ASSERT(in_order != opened.rend());
    opened.erase(std::prev(in_order.base()));
    names.erase(at);
    STELE_ASSERT(opened.size() == names.size());
  }
};
super_journals& known() {
  return base::per_process<super_journals>();
}

// Pieces, so that a long journal is never copied.
class journal {
 public:
  static constexpr std::size_t piece = 64 << 10;

  std::uint64_t size() const noexcept { return size_; }
  void read(std::uint64_t at, char* to, std::size_t size) const noexcept {
    STELE_ASSERT(size == 0 || at + size <= size_);
    for_parts(at, size, [&](char* from, std::size_t done, std::size_t part) {
      std::memcpy(to + done, from, part);
    });
  }
  void write(std::uint64_t at, const char* from, std::size_t size) {
    while (pieces_.size() * piece < at + size)
      pieces_.push_back(std::make_unique_for_overwrite<char[]>(piece));
    if (at > size_)
      for_parts(size_, at - size_,
                [](char* to, std::size_t, std::size_t part) { std::memset(to, 0, part); });
    for_parts(at, size, [&](char* to, std::size_t done, std::size_t part) {
      std::memcpy(to, from + done, part);
    });
    size_ = std::max(size_, at + size);
    STELE_ASSERT(size_ <= pieces_.size() * piece);
  }
  void truncate(std::uint64_t size) noexcept {
    size_ = std::min(size_, size);
    STELE_ASSERT((size_ + piece - 1) / piece <= pieces_.size());  // so it needs no memory
    pieces_.resize((size_ + piece - 1) / piece);
  }

 private:
  template <class Part>
  void for_parts(std::uint64_t at, std::size_t size, Part&& part_of) const {
    for (std::size_t done = 0; done < size;) {
      const std::size_t part = std::min<std::size_t>(size - done, piece - (at + done) % piece);
      STELE_ASSERT((at + done) / piece < pieces_.size() && pieces_[(at + done) / piece] != nullptr);
      part_of(pieces_[(at + done) / piece].get() + (at + done) % piece, done, part);
      done += part;
    }
  }
  std::vector<std::unique_ptr<char[]>> pieces_;
  std::uint64_t size_ = 0;
};

using journal_file = file_of<journal>;
journal& of(sqlite3_file* f) noexcept {
  return journal_file::in(f);
}

int close(sqlite3_file* f) {
  delete &of(f);
  return SQLITE_OK;
}
int read(sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
  const std::span all(static_cast<char*>(to), static_cast<std::size_t>(size));
  const auto begin = static_cast<std::uint64_t>(at);
  const auto there = part_there(all, begin, of(f).size());
  of(f).read(begin, there.data(), there.size());
  return end_read(all, there.size());
}
int write(sqlite3_file* f, const void* from, int size, sqlite3_int64 at) {
  return within_boundary(SQLITE_IOERR_NOMEM, [&] {
    of(f).write(static_cast<std::uint64_t>(at), static_cast<const char*>(from),
                static_cast<std::size_t>(size));
    return SQLITE_OK;
  });
}
int truncate(sqlite3_file* f, sqlite3_int64 size) {
  of(f).truncate(static_cast<std::uint64_t>(size));
  return SQLITE_OK;
}
int file_size(sqlite3_file* f, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(of(f).size());
  return SQLITE_OK;
}
int control(sqlite3_file*, int, void*) {
  return SQLITE_NOTFOUND;
}
int characteristics(sqlite3_file*) {
  return file_characteristics;
}

constexpr sqlite3_io_methods methods = {
    1,          close,      read,         write,   truncate,    do_nothing,      file_size,
    do_nothing, do_nothing, not_reserved, control, sector_size, characteristics, {},
    {},         {},         {},           {},      {}};

}  // namespace

int open_journal(sqlite3_file* file, const char* name, int flags) {
  return within_boundary(SQLITE_NOMEM, [&] {
    auto content = std::make_unique<journal>();
    if ((flags & SQLITE_OPEN_SUPER_JOURNAL) != 0) known().add(name);
    static_cast<journal_file*>(file)->open = content.release();
    file->pMethods = &methods;
    return SQLITE_OK;
  });
}

bool is_super_journal(const char* name) {
  const std::scoped_lock one(known().mutex);
  return known().names.contains(std::string_view(name));
}

void forget_super_journal(const char* name) noexcept {
  known().forget(name);
}

}  // namespace stele::sqlite
