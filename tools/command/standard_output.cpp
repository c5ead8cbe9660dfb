#include "tools/command/standard_output.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/launch/standard_error.hpp"

namespace ringlet::command {

namespace {

int output_error = 0;  // an errno

}  // namespace

void print_out(std::string_view text) {
  if (is_output_lost()) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  output_error = errno != 0 ? errno : EIO;
}

bool is_output_lost() noexcept { return output_error != 0; }

int check_output(int exit_code) {
  if (!is_output_lost()) return exit_code;
  launch::print_error("ringlet: cannot write to standard output: {}\n", std::strerror(output_error));
  return output_error == EPIPE ? 128 + SIGPIPE : 1;
}

}  // namespace ringlet::command
