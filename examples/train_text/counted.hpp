#pragma once

#include <string>
#include <string_view>

namespace train_text {

/// "1 step", "2 steps".
inline std::string counted(long long count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace train_text
