#pragma once

#include "tools/doctor/facts.hpp"

namespace ringlet::doctor {

enum class Severity : std::uint8_t { note, warning, error };

std::string_view name_of(Severity severity) noexcept;

/// A problem or an observation, and what to do about it.
struct Finding {
  Severity severity = Severity::note;
  std::string code;     // for programs, for example "token-differs"; `ringlet doctor --help` has the list
  std::string subject;  // the machine, interface or address concerned
  std::string text;     // one or two sentences
  std::string next;     // the command to run, and on which machine
};

/// Returns the findings, the worst first. Findings of equal severity are in the order of the facts.
std::vector<Finding> diagnose(const Facts& facts);

}  // namespace ringlet::doctor
