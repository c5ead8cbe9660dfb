#pragma once

#include <nanobind/nanobind.h>

#include <ringlet/status.hpp>
#include <string>

namespace ringlet::python {

namespace nb = nanobind;

/// Has the library's errors thrown in Python as the classes of the same names in ringlet.errors, which have `rank`.
void bind_errors(nb::module_& module);
/// The name of the class in ringlet.errors that stands for a code; "Error" for ok.
const char* class_of(Errc code) noexcept;
/// The error of Python's that stands for a status; None for ok.
nb::object error_of(const Status& status);
/// A value of Python's for an error's text, which arguments.py makes.
std::string shown(nb::handle value);
/// Throws InvalidArgument.
[[noreturn]] void refuse(std::string text);

}  // namespace ringlet::python
