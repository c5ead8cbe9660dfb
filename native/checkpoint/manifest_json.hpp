#pragma once

#include <limits>
#include <nlohmann/json.hpp>

#include "native/checkpoint/manifest.hpp"

namespace ringlet::native {

/// Strict readers of JSON from a file: another type, a missing key or a number out of bounds is an `IoError` that names the key.
[[noreturn]] void refuse_manifest(const std::string& what);
const nlohmann::json& member(const nlohmann::json& object, const char* key, nlohmann::json::value_t type);
std::uint64_t unsigned_in(const nlohmann::json& number, const char* what, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
std::uint64_t unsigned_member(const nlohmann::json& object, const char* key,
                              std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
const std::string& text_member(const nlohmann::json& object, const char* key);
const nlohmann::json& list_member(const nlohmann::json& object, const char* key);

nlohmann::json to_json(const CheckpointValue& value);
CheckpointValue value_from_json(const std::string& name, const nlohmann::json& json);

}  // namespace ringlet::native
