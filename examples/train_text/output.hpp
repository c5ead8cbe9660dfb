#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "report.hpp"

namespace train_text {

/// Opens the file of an option such as "--log-losses"; closed where `path` is empty. Throws `InputError` if it cannot be written.
std::ofstream open_log(const std::filesystem::path& path, const char* option, bool appends);

/// How the group has changed: `ranks` go on, of which `joined` are new, or, where some were lost by `cause`, of so many before.
std::string change_text(int step, int ranks, int joined, int ranks_before, double pause_seconds, std::string_view cause);

/// Prints the report to standard output, for people or as a line of JSON. Throws `std::system_error` if that fails.
void print_report(const Report& report, bool as_json, std::string_view sample);

}  // namespace train_text
