#include "native/elastic/values_text.hpp"

#include <nlohmann/json.hpp>

#include "native/checkpoint/exchange.hpp"
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

std::map<std::string, CheckpointValue, std::less<>> parse_values(const Group& group, int giver, const std::string& text) {
  return read_from(group, giver, "the values of the training's state", [&] {
    std::map<std::string, CheckpointValue, std::less<>> values;
    const auto object = nlohmann::json::parse(text);
    for (const auto& [name, value] : object.items())
      values.emplace(name, value_from_json(name, {{"type", value.at(0)}, {"value", value.at(1)}, {"bits", value.at(1)}}));
    return values;
  });
}

}  // namespace ringlet::native
