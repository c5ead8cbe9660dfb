#include "native/elastic/values_text.hpp"

#include <nlohmann/json.hpp>

#include "native/checkpoint/manifest_json.hpp"

namespace ringlet::native {

std::string values_text(const Checkpoint& state) {
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : state.values()) {
    const nlohmann::json saved = to_json(value);
    object[name] = {saved["type"], saved.contains("bits") ? saved["bits"] : saved["value"]};
  }
  return object.dump();
}

std::map<std::string, CheckpointValue, std::less<>> parse_values(const std::string& text) {
  std::map<std::string, CheckpointValue, std::less<>> values;
  try {
    const auto object = nlohmann::json::parse(text).get<std::map<std::string, nlohmann::json>>();
    for (const auto& [name, value] : object)
      values.emplace(name, value_from_json(name, {{"type", value.at(0)}, {"value", value.at(1)}, {"bits", value.at(1)}}));
  } catch (const nlohmann::json::exception& error) {
    throw ProtocolError(
        {Errc::protocol_error, std::string("the values of the training that another rank sends cannot be read: ") + error.what()});
  }
  return values;
}

}  // namespace ringlet::native
