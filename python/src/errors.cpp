#include "errors.hpp"

#include <nanobind/stl/string.h>

#include <ringlet/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "callbacks.hpp"

namespace ringlet::python {
namespace {

/// Names of C++ in the library's texts, and what Python calls the same.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"InitOptions::", "the option "},
    {"ElasticTrainerOptions::", "the option "},
    {"Wire::int8()", "int8"},
    {"Wire::int4()", "int4"},
    {"Group::", "Group."},
    {"Step::", "Step."},
    {"FullyShard::", "FullyShard."},
    {"ElasticFsdp::", "ElasticFsdp."},
    {"ElasticShards::", "ElasticShards."},
};

std::string in_words_of_python(std::string text) {
  for (const auto& [name, of_python] : kNames)
    for (std::size_t place = 0; (place = text.find(name, place)) != std::string::npos; place += of_python.size())
      text.replace(place, name.size(), of_python);
  return text;
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
  return nb::module_::import_("ringlet.errors").attr(class_of(status.code()))(in_words_of_python(status.text()), status.rank());
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
