// The same structures and operations as those of workloads, on ordinary memory, without pool or
// transactions: the upper limit of speed.
#pragma once

#include <workloads/workload.h>

namespace stele::workloads {

class volatile_run {
 public:
  virtual ~volatile_run() = default;
  virtual void set_up() = 0;
  virtual operation draw(base::rng& random) const = 0;
  virtual void apply(std::span<const operation> operations) = 0;  // not thread-safe
  virtual std::uint64_t digest() = 0;
};

// Names and errors are those of make_workload.
[[nodiscard]] result<std::unique_ptr<volatile_run>> make_volatile(std::string_view name,
                                                                  const parameters& p);

}  // namespace stele::workloads
