#pragma once

#include <optional>
#include <string>

#include "tests/temporary_directory.hpp"
#include "tools/machines/known_machines.hpp"

namespace ringlet::test {

/// A user's configuration.
class Home {
 public:
  std::string folder() const { return directory_.path() + "/ringlet"; }
  std::string key_file() const { return folder() + "/machine"; }
  std::string list_file() const { return folder() + "/machines/home"; }
  machines::Variables variables() const {
    return [path = directory_.path()](std::string_view name) { return name == "XDG_CONFIG_HOME" ? std::optional(path) : std::nullopt; };
  }
  machines::MachineKey key() const { return machines::MachineKey::load(variables()); }
  machines::KnownMachines known(const machines::PublicKey& own = {}) const { return {"home", own, variables()}; }

 private:
  TemporaryDirectory directory_;
};

/// A machine's key that follows from a number.
inline machines::MachineKey made_key(std::uint32_t number) {
  Key secret{};
  for (std::size_t i = 0; i < sizeof number; ++i) secret[i] = static_cast<std::byte>(number >> (8 * i));
  return machines::MachineKey(secret);
}

}  // namespace ringlet::test
