#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <ringlet/error.hpp>
#include <string>

namespace ringlet::native {

[[noreturn]] inline void refuse_told(std::size_t rank, const std::string& why) {
  throw ProtocolError(
      {Errc::protocol_error, fmt::format("rank {} says what cannot be read of a checkpoint: {}", rank, why), static_cast<int>(rank)});
}

/// Returns `read` of the JSON that a rank of the group has told. Throws `ProtocolError` with the rank where it is something else. All ranks
/// have the same texts, so all throw.
template <class Read>
auto read_told(std::size_t rank, const std::string& text, Read&& read) {
  try {
    return read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    refuse_told(rank, error.what());
  }
}

}  // namespace ringlet::native
