// The extension module stele._stele: pools, transactions and errors. The rest of the package is
// written in Python.
#include "boundary.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace stele::python {

namespace {

void set_stele_error(const error& why) {
  const nb::object type = nb::module_::import_("stele.errors").attr("by_code")(name_of(why.code));
  PyErr_SetObject(type.ptr(), str_of(why.message).ptr());
}

std::shared_ptr<open_pool> open(const nb::bytes& name, const open_options& options) {
  const std::string path = path_of(name);
  pool_options of_document = options.pool;
  of_document.layout = document_layout;
  STELE_ASSERT(holds_gil());
  auto handle = [&] {
    const nb::gil_scoped_release gil_released;
    const auto how =
        options.read_only ? &detail::pool_handle::open_read_only : &detail::pool_handle::open;
    return how(path, of_document, sizeof(document_dict), nullptr);
  }();
  return std::make_shared<open_pool>(path, unwrap(std::move(handle)), options);
}

nb::dict counters(transactions& p) {
  p.check_open();
  const pool_counters c = p.without_gil([&] { return detail::counters_of(p.core()); });
  nb::dict to;
  to["commits"] = c.commits, to["aborts"] = c.aborts, to["reads"] = c.reads;
  to["fences"] = c.fences, to["flushed_lines"] = c.flushed_lines,
  to["streamed_bytes"] = c.streamed_bytes;
  to["stored_bytes"] = c.stored_bytes, to["truncations"] = c.truncations,
  to["log_spills"] = c.log_spills;
  return to;
}

nb::dict space(transactions& p) {
  const pool_space s = p.space();
  nb::dict to;
  to["size_bytes"] = s.size_bytes, to["log_bytes"] = s.log_bytes, to["used_bytes"] = s.used_bytes;
  to["free_bytes"] = s.free_bytes, to["largest_free"] = s.largest_free,
  to["fragmentation"] = s.fragmentation;
  return to;
}

void check(open_pool& p) {
  p.check_storage();
  const result<> status = p.read([&] { return std::optional(p.root().check()); }).value();
  if (!status) throw library_error(status.error());
}

// The object that `with pool.transaction()` holds.
class transaction {
 public:
  // in: the open pool or store. timeout: ... for the limit that it was opened with.
  transaction(nb::object in, bool ordered, nb::handle timeout)
      : in_(std::move(in)),
        how_(ordered ? durability::ordered : durability::durable),
        limit_(timeout.is(nb::ellipsis()) ? pool().limit() : wait_limit_of(timeout)) {}

  void enter() { pool().begin(in_, how_, limit_); }
  void exit(nb::handle exception) { pool().end(!exception.is_none()); }

 private:
  transactions& pool() const { return nb::cast<transactions&>(in_); }

  nb::object in_;
  durability how_;
  wait_limit limit_;
};

template <class F>
auto with_check(F f) {
  return [f](const transactions& p) {
    p.check_open();
    return f(p.core());
  };
}

}  // namespace

void set_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const library_error& e) {
    try {
      set_stele_error(e.why());
    } catch (nb::python_error& other) {
      other.restore();
    }
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  STELE_ASSERT(PyErr_Occurred() != nullptr);
}

void register_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const library_error& e) {
      set_stele_error(e.why());
    }
  });
}

void raise_key_error(nb::handle key) {
  PyErr_SetObject(PyExc_KeyError, key.ptr());
  throw nb::python_error();
}

void bind_pool(nb::module_& m) {
  nb::class_<open_options>(m, "Options")
      .def(nb::init<std::size_t, std::string, std::string, bool, std::size_t, const std::string&,
                    const std::string&, nb::handle, bool, bool>(),
           nb::arg("size"), nb::arg("mechanism"), nb::arg("media"), nb::arg("ordered"),
           nb::arg("max_size"), nb::arg("require"), nb::arg("verify"), nb::arg("timeout").none(),
           nb::arg("read_only"), nb::arg("pickle"));
  nb::class_<transactions>(m, "Transactions")
      .def("sync", &transactions::sync)
      .def("close", [](transactions& p) { p.close(p.limit()); })
      .def(
          "close", [](transactions& p, nb::handle timeout) { p.close(wait_limit_of(timeout)); },
          nb::arg().none())
      .def("grow", &transactions::grow)
      .def(
          "backup",
          [](transactions& p, const nb::bytes& path, const nb::object& report) {
            p.backup(path_of(path), report);
          },
          nb::arg("path"), nb::arg("progress").none())
      .def("closed", &transactions::closed)
      .def("reads_only", &transactions::reads_only)
      .def("path", [](const transactions& p) { return str_of(p.path()); })
      .def("durability",
           with_check([](detail::runtime& r) { return name_of(detail::durability_of(r)); }))
      .def("mechanism", with_check([](detail::runtime& r) { return detail::mechanism_of(r); }))
      .def("counters", &counters)
      .def("space", &space);
  nb::class_<transaction>(m, "Transaction", "What `with pool.transaction()` holds.")
      .def(nb::init<nb::object, bool, nb::handle>(), nb::arg(), nb::arg() = false,
           nb::arg().none() = nb::ellipsis())
      .def("__enter__", &transaction::enter)
      .def(
          "__exit__", [](transaction& t, nb::handle kind, nb::handle, nb::handle) { t.exit(kind); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
  nb::class_<open_pool, transactions>(m, "OpenPool")
      .def("root",
           [](const std::shared_ptr<open_pool>& p) {
             p->check_open();
             return dict_proxy{{p, &p->root(), 0}};
           })
      .def("check", &check);
  m.def("open", &open);
}

NB_MODULE(_stele, m) {
  nb::set_leak_warnings(false);  // a daemon thread keeps its pool to the end
  register_errors(m);
  bind_pool(m);
  bind_dict(m);
  bind_list(m);
  bind_kv(m);
}

}  // namespace stele::python
