// Keeps the pool of a thread's open `with` alive until the `with` or the thread ends.
//
// A thread may end inside a `with`: with an open transaction object, or with a generator that was
// left half-way. The interpreter then drops the thread's dict, in that thread and with the GIL
// held; the transaction is rolled back there.
#pragma once

#include <nanobind/nanobind.h>

namespace stele::python {

class transactions;

// Called with the GIL held. A thread has one `with` open at a time. The first call prepares, and
// throws what Python raises.
void prepare_to_keep();
void keep_until_thread_ends(nanobind::handle object, transactions& in) noexcept;
void keep_no_longer() noexcept;

}  // namespace stele::python
