#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/refuse.hpp"
#include "core/base/time.hpp"

namespace ringlet::native {

/// What was set, and where it comes from ("RINGLET_LISTEN", "InitOptions::listen"), for messages.
struct Setting {
  std::string name;
  std::string value;
};

/// Looks a variable up; nothing where it is not set or empty.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

/// The process' environment.
std::optional<std::string> process_variable(std::string_view name);

/// The first of these variables that is set.
std::optional<Setting> first_set(const Variables& variables, std::initializer_list<std::string_view> names);

/// The option of InitOptions where there is one, otherwise the first of the variables that is set.
///@{
std::optional<Setting> number_setting(const std::optional<int>& option, const char* option_name, const Variables& variables,
                                      std::initializer_list<std::string_view> names);
std::optional<Setting> text_setting(const std::optional<std::string>& option, const char* option_name, const Variables& variables,
                                    std::initializer_list<std::string_view> names);
///@}

// These throw `InvalidArgument` that names the setting, its value, and what is possible.

std::int64_t parse_integer(const Setting& setting, std::int64_t least, std::int64_t most);
/// In milliseconds, `least` of them at least.
Duration duration_setting(const std::optional<std::chrono::milliseconds>& option, const char* option_name, const Variables& variables,
                          std::string_view name, Duration otherwise, std::int64_t least = 1);
/// "on" or "off".
bool switch_setting(const std::optional<bool>& option, const Variables& variables, std::string_view name, bool otherwise);
/// The text of the file that the setting names.
std::string read_named_file(const Setting& setting);

}  // namespace ringlet::native
