#include "errors.hpp"

#include <nanobind/stl/string.h>

#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "callbacks.hpp"

namespace ringlet::python {
namespace {

void set_python_error(const Status& status) {
  try {
    const nb::object error = error_of(status);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& failed) {
    failed.restore();
  }
}

}  // namespace

const char* class_of(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "InvalidArgument";
    case Errc::mismatch:
      return "MismatchError";
    case Errc::peer_lost:
      return "PeerLost";
    case Errc::timed_out:
      return "Timeout";
    case Errc::protocol_error:
      return "ProtocolError";
    case Errc::cancelled:
      return "Cancelled";
    case Errc::io_error:
      return "IoError";
    case Errc::ok:
      break;
  }
  return "Error";
}

nb::object error_of(const Status& status) {
  if (status.ok()) return nb::none();
  return nb::module_::import_("ringlet.errors").attr(class_of(status.code()))(status.text(), status.rank());
}

void rethrow(nb::python_error& raised) {
  const nb::object classes = nb::module_::import_("ringlet.errors");
  for (const Errc code :
       {Errc::invalid_argument, Errc::mismatch, Errc::peer_lost, Errc::timed_out, Errc::protocol_error, Errc::cancelled, Errc::io_error})
    if (raised.matches(classes.attr(class_of(code)))) {
      const nb::object error = nb::borrow(raised.value());
      throw_if_failed({code, nb::cast<std::string>(nb::str(error)), nb::cast<int>(error.attr("rank"))});
    }
  throw std::move(raised);
}

std::string shown(nb::handle value) { return nb::cast<std::string>(nb::module_::import_("ringlet.arguments").attr("shown")(value)); }

void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_python_error(error.status());
    }
  });
}

}  // namespace ringlet::python
