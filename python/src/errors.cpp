#include "errors.hpp"

#include <nanobind/stl/string.h>

#include <memory>
#include <ringlet/error.hpp>
#include <string>
#include <utility>

#include "callbacks.hpp"

namespace ringlet::python {
namespace {

/// What Python has raised, where it passes through the library as an error of the library's: it comes out as the same object.
class RaisedByPython {
 public:
  explicit RaisedByPython(nb::object error) : error_(shared_object(std::move(error))) {}

  void restore() const {
    PyObject* const error = error_->ptr();
    PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(error))), Py_NewRef(error), PyException_GetTraceback(error));
  }

 private:
  std::shared_ptr<nb::object> error_;
};

template <class LibraryError>
class Raised : public LibraryError, public RaisedByPython {
 public:
  Raised(Status status, nb::object error) : LibraryError(std::move(status)), RaisedByPython(std::move(error)) {}
};

/// What the library tells others of an error, whose class may be the program's own.
std::string text_of(const nb::object& error) {
  try {
    return nb::cast<std::string>(nb::str(error));
  } catch (const std::exception&) {
    return nb::type_name(error.type()).c_str();
  }
}

template <class LibraryError>
void throw_if_of_class(const nb::python_error& raised, Errc code) {
  if (!raised.matches(nb::module_::import_("ringlet.errors").attr(class_of(code)))) return;
  const nb::object error = nb::borrow(raised.value());
  int rank = -1;
  if (!nb::try_cast(nb::getattr(error, "rank", nb::none()), rank)) rank = -1;
  throw Raised<LibraryError>({code, text_of(error), rank}, error);
}

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

bool RaisedBySignals::look() {
  RaisedBySignals* const scope = signal_scope;
  if (scope == nullptr) return false;
  return with_lock([scope] {
    if (!scope->raised_ && PyErr_CheckSignals() != 0) scope->raised_.emplace();
    return scope->raised_.has_value();
  });
}

void RaisedBySignals::rethrow() {
  if (raised_) throw std::move(*raised_);
}

void rethrow(nb::python_error& raised) {
  throw_if_of_class<InvalidArgument>(raised, Errc::invalid_argument);
  throw_if_of_class<MismatchError>(raised, Errc::mismatch);
  throw_if_of_class<PeerLost>(raised, Errc::peer_lost);
  throw_if_of_class<Timeout>(raised, Errc::timed_out);
  throw_if_of_class<ProtocolError>(raised, Errc::protocol_error);
  throw_if_of_class<Cancelled>(raised, Errc::cancelled);
  throw_if_of_class<IoError>(raised, Errc::io_error);
  throw std::move(raised);
}

std::string shown(nb::handle value) { return nb::cast<std::string>(nb::module_::import_("ringlet.arguments").attr("shown")(value)); }

void refuse(std::string text) { throw InvalidArgument({Errc::invalid_argument, std::move(text)}); }

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const RaisedByPython& error) {
      error.restore();
    } catch (const Error& error) {
      set_python_error(error.status());
    }
  });
}

}  // namespace ringlet::python
