// SQLite's codes for errors, and the sentence of the last one.
#include <base/per_process.h>

#include <mutex>
#include <string>

#include "file.h"

namespace stele::sqlite {

namespace {

class reports {
 public:
  void note(std::string sentence) {
    const std::scoped_lock one(mutex_);
    last_ = std::move(sentence);
  }
  std::string last() {
    const std::scoped_lock one(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::string last_;
};
reports& here() {
  return base::per_process<reports>();
}

}  // namespace

int report(const error& why, int io_code) {
  int code = io_code;
  switch (why.code) {
    case errc::not_found:
    case errc::permission:
    case errc::unsupported:
    case errc::invalid_argument:
      code = SQLITE_CANTOPEN;
      break;
    case errc::read_only:
      code = SQLITE_READONLY;
      break;
    case errc::in_use:
      code = SQLITE_BUSY;
      break;
    case errc::not_a_pool:
    case errc::version:
    case errc::layout:
      code = SQLITE_NOTADB;
      break;
    case errc::corrupt:
    case errc::lost:
      code = SQLITE_CORRUPT;
      break;
    case errc::full:
      code = SQLITE_FULL;
      break;
    default:
      break;
  }
  here().note(why.message);
  sqlite3_log(code, "%s", why.message.c_str());
  return code;
}

std::string last_report() {
  return here().last();
}

void forget_report() {
  here().note({});
}

}  // namespace stele::sqlite
