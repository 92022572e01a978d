// The running flow of control, which owns an open `with`. A thread's id does not identify the
// owner, because asyncio tasks, callbacks of an event loop and greenlets take turns on one thread.
//
// Inside an asyncio task the flow is the task. Elsewhere it is the entered contextvars context, by
// identity: each greenlet, callback and task of another library has its own. (A value of a context
// variable would not do: a new task copies those of its maker.) A generator has no context, so it
// counts as the flow that runs it.
#pragma once

#include <nanobind/nanobind.h>

namespace stele::python {

// Used with the GIL held, also when it is destroyed.
class flow {
 public:
  flow() = default;  // none
  static flow current();
  bool is_current() const;

 private:
  void take_current_task();

  // References, so that no other objects get these addresses. Both are null outside of tasks.
  nanobind::object loop_, task_, context_;
};

}  // namespace stele::python
