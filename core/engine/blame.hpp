#pragma once

#include <ringlet/status.hpp>
#include <string>

#include "core/engine/options.hpp"

namespace ringlet {

/// Whether this build may be a member that others join. A browser's rank is a guest, whose package is small.
#if defined(__EMSCRIPTEN__)
inline constexpr bool kJudgesNewcomers = false;
#else
inline constexpr bool kJudgesNewcomers = true;
#endif

/// Who is to blame where a world fails, by what this rank has seen or was told. A value type.
class Blame {
 public:
  explicit Blame(const WorldOptions& options);

  /// The newcomers have taken part in what all agreed on.
  void trust_newcomers() { first_on_probation_ = options_.size; }
  bool is_on_probation(int rank) const { return kJudgesNewcomers && rank >= first_on_probation_ && rank < options_.natives(); }

  /// What it means that the peer ends the world with this status. `name` is the peer's.
  Status of_abort(int peer, const std::string& name, const Status& status) const;
  /// However a guest breaks an elastic world, for the others it is one that they have lost, unless it has revoked the epoch; so is a
  /// newcomer on probation that calls something else than they, since it may be any program that knows the token.
  Status as_loss(const Status& status) const;

 private:
  bool is_guest_of_elastic(int rank) const { return options_.elastic && rank < options_.size && options_.is_guest(rank); }

  const WorldOptions& options_;  // outlive this object
  int first_on_probation_;       // the newcomers from this rank on
};

}  // namespace ringlet
