// How a mechanism takes part in transactions while they run. Most mechanisms do not: stores wait in
// the write set until the commit, and nobody asks for loads.
#pragma once

#include <tx/write_set.h>

#include <cstddef>
#include <cstdint>

namespace stele::detail {

class transaction;

class store_observer {
 public:
  // An update begins. False: its stores go to the write set, and the observer hears no more of it.
  // False if t.exceeds_log: an earlier attempt's stores did not fit the log.
  virtual bool begin(transaction& t) = 0;
  // In place of a store to the write set: stores bytes of one line, which the transaction has
  // locked. `line` is the write set's; afterwards it has what word() makes words from. May throw
  // conflict and failure.
  virtual void store(transaction& t, written_line& line, const written_line& stored) = 0;
  // A word that store() has stored, with unspecified bytes outside its mask.
  virtual std::uint64_t word(const written_line& line, unsigned word) const noexcept = 0;
  // The transaction ends without a commit. Its locks are still held.
  virtual void abort(transaction& t) noexcept = 0;

 protected:
  ~store_observer() = default;
};

// Of the transactions of one log, which run one at a time.
class load_observer {
 public:
  // A transaction begins. Whether load() is to be called for its loads.
  virtual bool begin_transaction() noexcept = 0;
  // size: in bytes, below 64 KiB.
  virtual void load(std::uint64_t offset, std::size_t size) noexcept = 0;

 protected:
  ~load_observer() = default;
};

}  // namespace stele::detail
