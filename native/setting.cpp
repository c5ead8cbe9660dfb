#include "native/setting.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "native/input_file.hpp"

namespace ringlet::native {

namespace {

constexpr std::int64_t kMaxMilliseconds = 1'000'000'000;

}  // namespace

std::optional<std::string> process_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<Setting> first_set(const Variables& variables, std::initializer_list<std::string_view> names) {
  for (const auto name : names)
    if (auto value = variables(name)) return Setting{std::string(name), std::move(*value)};
  return std::nullopt;
}

std::optional<Setting> number_setting(const std::optional<int>& option, const char* option_name, const Variables& variables,
                                      std::initializer_list<std::string_view> names) {
  if (option) return Setting{option_name, std::to_string(*option)};
  return first_set(variables, names);
}

std::optional<Setting> text_setting(const std::optional<std::string>& option, const char* option_name, const Variables& variables,
                                    std::initializer_list<std::string_view> names) {
  if (option) return Setting{option_name, *option};
  return first_set(variables, names);
}

std::int64_t parse_integer(const Setting& setting, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const char* end = setting.value.data() + setting.value.size();
  const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    refuse(fmt::format("{} is '{}'; it must be a whole number from {} to {}", setting.name, setting.value, least, most));
  return number;
}

Duration duration_setting(const std::optional<std::chrono::milliseconds>& option, const char* option_name, const Variables& variables,
                          std::string_view name, Duration otherwise, std::int64_t least) {
  if (option) {
    if (option->count() < least || option->count() > kMaxMilliseconds)
      refuse(fmt::format("{} is {} ms; it must be {} to {} ms", option_name, option->count(), least, kMaxMilliseconds));
    return Duration::milliseconds(option->count());
  }
  const auto setting = first_set(variables, {name});
  return setting ? Duration::milliseconds(parse_integer(*setting, least, kMaxMilliseconds)) : otherwise;
}

bool switch_setting(const std::optional<bool>& option, const Variables& variables, std::string_view name, bool otherwise) {
  if (option) return *option;
  const auto setting = first_set(variables, {name});
  if (!setting) return otherwise;
  if (setting->value != "on" && setting->value != "off")
    refuse(fmt::format("{} is '{}'; it must be 'on' or 'off'", setting->name, setting->value));
  return setting->value == "on";
}

Result<PortRange> ports_setting(const Variables& variables) {
  const auto text = variables("RINGLET_PORTS");
  if (!text) return PortRange{};
  if (const auto ports = parse_port_range(*text)) return *ports;
  return Status{Errc::invalid_argument, fmt::format("RINGLET_PORTS is '{}'; write FIRST-LAST, a port, or any", *text)};
}

std::string read_named_file(const Setting& setting, std::function<bool()> interrupted) {
  auto text = read_input_file(setting.value, {.interrupted = std::move(interrupted)});
  if (text.status().code() == Errc::cancelled)
    throw Cancelled({Errc::cancelled, fmt::format("init() was interrupted while it read '{}' ({})", setting.value, setting.name)});
  if (!text.ok())
    refuse(fmt::format("{} is '{}', which cannot be read: {}; check the path", setting.name, setting.value, text.status().text()));
  return std::move(text).value();
}

}  // namespace ringlet::native
