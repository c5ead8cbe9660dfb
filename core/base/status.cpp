#include <array>
#include <ringlet/status.hpp>

namespace ringlet {

std::string_view name_of(Errc code) noexcept {
  constexpr std::array<std::string_view, 8> kNames{"ok",        "invalid_argument", "mismatch",  "peer_lost",
                                                   "timed_out", "protocol_error",   "cancelled", "io_error"};
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace ringlet
