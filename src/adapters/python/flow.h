// Which flow of control runs. A thread's id does not tell whose an open `with` is, because asyncio
// tasks, callbacks of an event loop and greenlets take turns on one thread.
//
// Inside asyncio tasks a flow is the task. Elsewhere it is the contextvars context that is entered,
// by its identity: a greenlet, a callback and a task of another library each have one of their own.
// The values of a context variable would not do: a new task copies those of the task that makes it.
// A generator has no context, so it counts as the flow that runs it.
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

  // Kept, so that no other ones get their addresses. Outside of tasks there is neither loop nor
  // task.
  nanobind::object loop_, task_, context_;
};

}  // namespace stele::python
