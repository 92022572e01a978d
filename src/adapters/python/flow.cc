// The running asyncio task and context; see flow.h.
//
// A call of asyncio costs as much as a transaction, so is_current() makes none in the usual case:
// asyncio has a dict of the tasks that run, by loop, and a thread runs one loop. With the same
// context entered, a flow is the same if its task still runs on its loop, or, if it has none, no
// task runs in any thread. Otherwise asyncio is asked: tasks may share a context.
#include "flow.h"

#include <base/assert.h>

namespace stele::python {

namespace nb = nanobind;

namespace {

// Objects of asyncio, if it has been imported; else there is no task. Never released.
struct asyncio_parts {
  PyObject* running_loop = nullptr;  // function
  PyObject* task_of_loop = nullptr;  // function
  PyObject* tasks = nullptr;         // dict of the running tasks, by loop; null: a later version
};

void look_up(asyncio_parts& parts, nb::handle asyncio) {
  STELE_ASSERT(parts.running_loop == nullptr);
  const nb::object tasks =
      nb::getattr(nb::getattr(asyncio, "tasks", nb::none()), "_current_tasks", nb::none());
  if (PyDict_CheckExact(tasks.ptr())) parts.tasks = tasks.inc_ref().ptr();
  parts.task_of_loop = nb::object(asyncio.attr("current_task")).release().ptr();
  parts.running_loop = nb::object(asyncio.attr("_get_running_loop")).release().ptr();
}

// Null: not imported.
const asyncio_parts* asyncio_if_imported() {
  static asyncio_parts parts;
  if (parts.running_loop != nullptr) return &parts;
  static PyObject* const name = PyUnicode_InternFromString("asyncio");
  const nb::handle asyncio = PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
  if (!asyncio.is_valid() || !nb::hasattr(asyncio, "current_task")) return nullptr;
  look_up(parts, asyncio);
  return &parts;
}

// The task that runs on the loop; not valid: none. Precondition: `tasks` is not null.
nb::handle running_on(const asyncio_parts& asyncio, nb::handle loop) {
  STELE_ASSERT(asyncio.tasks != nullptr);
  STELE_ASSERT(loop.is_valid());
  const nb::handle task = PyDict_GetItemWithError(asyncio.tasks, loop.ptr());
  if (!task.is_valid() && PyErr_Occurred() != nullptr) throw nb::python_error();
  return task;
}

bool no_task_runs(const asyncio_parts* asyncio) {
  return asyncio == nullptr || (asyncio->tasks != nullptr && PyDict_GET_SIZE(asyncio->tasks) == 0);
}

PyObject* current_context() {
  return PyThreadState_Get()->context;
}

}  // namespace

// Not valid outside of tasks.
void flow::take_current_task() {
  const asyncio_parts* const asyncio = asyncio_if_imported();
  if (no_task_runs(asyncio)) return;
  STELE_ASSERT(!loop_.is_valid() && !task_.is_valid());
  nb::object loop = nb::steal(PyObject_CallNoArgs(asyncio->running_loop));
  if (!loop.is_valid()) throw nb::python_error();
  if (loop.is_none()) return;
  nb::object task = asyncio->tasks != nullptr ? nb::borrow(running_on(*asyncio, loop))
                                              : nb::object(nb::handle(asyncio->task_of_loop)(loop));
  if (!task.is_valid() || task.is_none()) return;
  loop_ = std::move(loop);
  task_ = std::move(task);
}

flow flow::current() {
  STELE_ASSERT(PyGILState_Check() != 0);
  flow now;
  now.take_current_task();
  // A thread gets its context at the first request for one.
  if (current_context() == nullptr && !nb::steal(PyContext_CopyCurrent()).is_valid())
    throw nb::python_error();
  now.context_ = nb::borrow(current_context());
  STELE_ASSERT(now.context_.is_valid());
  STELE_ASSERT(now.loop_.is_valid() == now.task_.is_valid());
  return now;
}

bool flow::is_current() const {
  STELE_ASSERT(PyGILState_Check() != 0);
  if (current_context() == context_.ptr()) {
    const asyncio_parts* const asyncio = asyncio_if_imported();
    STELE_ASSERT(!task_.is_valid() || asyncio != nullptr);
    if (!task_.is_valid()) {
      if (no_task_runs(asyncio)) return true;
    } else if (asyncio->tasks != nullptr && running_on(*asyncio, loop_).ptr() == task_.ptr()) {
      return true;
    }
  }
  flow now;
  now.take_current_task();
  if (now.task_.is_valid() || task_.is_valid()) return now.task_.ptr() == task_.ptr();
  return current_context() == context_.ptr();
}

}  // namespace stele::python
