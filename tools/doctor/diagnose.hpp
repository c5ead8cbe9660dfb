#pragma once

#include "tools/doctor/facts.hpp"

namespace ringlet::doctor {

enum class Severity : std::uint8_t { note, warning, error };

std::string_view name_of(Severity severity) noexcept;

/// What is wrong, and what to do.
struct Finding {
  Severity severity = Severity::note;
  std::string code;     // for programs: "token-differs"; the list stands in `ringlet doctor --help`
  std::string subject;  // the machine, interface or address that it is about
  std::string text;     // a sentence or two
  std::string next;     // the command to run, and where
};

/// The worst first, else in the order of the facts.
std::vector<Finding> diagnose(const Facts& facts);

}  // namespace ringlet::doctor
