// A reader in another process, as a thread of this one: what it reads it reads by the real session
// and the real service (tx/readers/). Only the socket between them is left out: the thread does
// what its writer's server would do.
#pragma once

#include <explore/subject.h>
#include <tx/readers/reader_service.h>

#include <cstdint>
#include <memory>

namespace stele::explore {

class reader_beside {
 public:
  // Attaches to the subject's pool, which is open. Errors: unsupported, of a mechanism whose pools
  // others cannot read; those of attaching.
  [[nodiscard]] static result<std::unique_ptr<reader_beside>> attach(
      subject& s, detail::reader_service& service);
  ~reader_beside();
  // Of the whole structure, read in one transaction. Errors: an invariant does not hold.
  [[nodiscard]] result<std::uint64_t> digest() { return workload_->digest(); }
  // Likewise, in a transaction that cannot run again: a long read from its begin on, as Python's
  // `with` is.
  [[nodiscard]] result<std::uint64_t> digest_at_once();

 private:
  explicit reader_beside(std::unique_ptr<workloads::workload> w) : workload_(std::move(w)) {}

  std::unique_ptr<workloads::workload> workload_;
};

}  // namespace stele::explore
