#pragma once

#include <array>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/gradients/averager.hpp"
#include "tests/core/procedures.hpp"

namespace ringlet::test {

inline std::shared_ptr<Procedure> average(ProcedureWorld& world, int rank, const Tree& tree, const AverageOptions& options = {}) {
  return std::make_shared<TreeAverage>(world.engine(rank), world.agreements(rank), tree, options);
}

/// Returns the actions that the procedure asks for. There is no network: each action counts as done at once.
inline std::vector<std::string> asked(Procedure& procedure) {
  std::vector<std::string> all;
  for (;;) {
    const auto action = procedure.next();
    all.push_back(std::array<std::string, 6>{"run", "start", "send", "receive", "wait", "done"}[action.index()]);
    if (std::holds_alternative<Procedure::Done>(action)) return all;
  }
}

}  // namespace ringlet::test
