#include "tools/command/this_machine.hpp"

#include <fmt/format.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "native/this_process.hpp"
#include "simd/kernels.hpp"
#include "tools/command/available_memory.hpp"
#include "tools/tokens/group_token.hpp"
#include "tools/tokens/saved_token.hpp"
#include "transport/crypto/token_authenticator.hpp"

namespace ringlet::command {

std::string announced_name() {
  const std::string name = native::machine_name();
  return name.empty() ? "unnamed" : name;
}

std::optional<std::string> find_name_mistake(const char* option, const std::string& text) {
  discovery::Profile profile;
  profile.name = text;
  const std::string limited = discovery::limited(profile).name;
  if (!text.empty() && limited == text) return std::nullopt;
  return fmt::format("{} '{}': give 1 to {} bytes of UTF-8 without control characters", option, limited, discovery::kMaxNameBytes);
}

std::optional<std::string> find_group_mistake(const std::string& group) {
  if (const auto mistake = tokens::find_group_mistake(group)) return "--" + *mistake;
  return find_name_mistake("--group", group);
}

std::vector<discovery::Device> machine_devices() {
  std::uint64_t total = uv_get_total_memory();
  // In a container with a memory limit, the limit counts.
  if (const std::uint64_t limit = uv_get_constrained_memory(); limit > 0) total = std::min(total, limit);
  discovery::Device cpu;
  cpu.kind = "cpu";
  cpu.cores = uv_available_parallelism();
  cpu.memory_bytes = total;
  cpu.free_memory_bytes = std::min(available_memory(), total);
  cpu.simd = simd::find({})->name();
  return {cpu};
}

std::uint64_t random_number() {
  std::array<std::byte, sizeof(std::uint64_t)> bytes{};
  TokenAuthenticator("").fill_random(bytes);
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::string fresh_token() {
  TokenAuthenticator randomness("");
  return tokens::make_token(randomness);
}

}  // namespace ringlet::command
