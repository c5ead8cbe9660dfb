#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/port_range.hpp"
#include "core/base/refuse.hpp"
#include "core/base/result.hpp"
#include "core/base/time.hpp"

namespace ringlet::native {

/// A value that was set, and the name of its source for messages ("RINGLET_LISTEN", "the option listen").
struct Setting {
  std::string name;
  std::string value;
};

/// Returns a variable's value, or nothing where it is not set or is empty.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

/// Looks a variable up in the process' environment; nothing where it is not set or empty.
std::optional<std::string> process_variable(std::string_view name);

/// The first of these variables that is set.
std::optional<Setting> first_set(const Variables& variables, std::initializer_list<std::string_view> names);

/// Return the option of InitOptions where it is set, otherwise the first of the variables that is set.
///@{
std::optional<Setting> number_setting(const std::optional<int>& option, const char* option_name, const Variables& variables,
                                      std::initializer_list<std::string_view> names);
std::optional<Setting> text_setting(const std::optional<std::string>& option, const char* option_name, const Variables& variables,
                                    std::initializer_list<std::string_view> names);
///@}

// These throw `InvalidArgument` that names the setting, its value, and what is possible.

std::int64_t parse_integer(const Setting& setting, std::int64_t least, std::int64_t most);
/// A duration in milliseconds, of which there have to be at least `least`.
Duration duration_setting(const std::optional<std::chrono::milliseconds>& option, const char* option_name, const Variables& variables,
                          std::string_view name, Duration otherwise, std::int64_t least = 1);
/// Reads a switch, which is "on" or "off".
bool switch_setting(const std::optional<bool>& option, const Variables& variables, std::string_view name, bool otherwise);
/// The ports that RINGLET_PORTS allows; any where it is not set. `invalid_argument` that says what is possible.
Result<PortRange> ports_setting(const Variables& variables);
/// Reads the file that the setting names; also throws `Cancelled` where `interrupted`, asked ten times a second, says so.
std::string read_named_file(const Setting& setting, std::function<bool()> interrupted);

}  // namespace ringlet::native
