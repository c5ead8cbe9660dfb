#pragma once

#include <stdexcept>
#include <string>

namespace ringlet::launch {

/// Says that the launch cannot be carried out, with the sentence for the user and the exit code.
class LaunchError : public std::runtime_error {
 public:
  LaunchError(int exit_code, const std::string& text) : std::runtime_error(text), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace ringlet::launch
