#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/job/messages.hpp"

namespace ringlet::agent {

/// The environment variables that this machine's owner lets others set for the programs that they start here: numbers of threads, and
/// Ringlet's own limits and switches of speed, unless more are named. No list of dangerous variables would be complete, since every
/// interpreter, library and tool has some by which it loads code or writes files.
class AllowedVariables {
 public:
  /// `named`: more of them; a * at the end of one stands for any ending.
  explicit AllowedVariables(std::vector<std::string> named = {});

  /// A sentence where one of them may not be set, with what the machine's owner would have to do.
  std::optional<std::string> find_refused(const std::vector<job::Variable>& variables) const;
  /// A sentence where an entry of the command line is no name, or one that only Ringlet sets.
  std::optional<std::string> find_mistake() const;

 private:
  bool allows(std::string_view name) const;

  std::vector<std::string> named_;
};

/// A sentence where no machine would take these arguments and variables: there are too many, a name is none, or Ringlet itself sets it.
std::optional<std::string> find_mistake(const job::StartRanks& start);

}  // namespace ringlet::agent
