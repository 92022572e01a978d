// What ends a thread's context: it owns a long read.
#include <tx/long_read.h>
#include <tx/session/thread_context.h>

namespace stele::detail {

thread_context::thread_context() = default;
thread_context::~thread_context() = default;

}  // namespace stele::detail
