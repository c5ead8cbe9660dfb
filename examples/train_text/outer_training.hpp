#pragma once

#include <cstdint>
#include <functional>
#include <ringlet/group.hpp>
#include <ringlet/outer.hpp>

#include "corpus.hpp"
#include "inner_steps.hpp"
#include "options.hpp"
#include "replica.hpp"

namespace train_text {

/// A rank's part of a run with `inner_steps`: it trains alone with its share of each batch, and ringlet::OuterTrainer averages.
class OuterTraining {
 public:
  /// `options` and `corpus` are the same on all ranks and must outlive the training; `on_change` is MembershipChange's. Collective, except
  /// where this rank joins others that train already.
  OuterTraining(const Options& options, const Corpus& corpus, ringlet::Group group, bool joins,
                std::function<void(const ringlet::MembershipChange&)> on_change);

  /// Trains to the end; `after` gets each step of this rank and its loss. Then all ranks have the same parameters: throws
  /// `std::runtime_error` if not, or if a loss is not finite, and `ringlet::Error` if the group fails. Throws `InputError` if the others
  /// train with another text or other settings.
  void run(const std::function<void(const ringlet::InnerStep& step, double loss)>& after);

  /// The mean loss of the held-out text with this rank's parameters.
  double validate();
  std::uint64_t parameter_hash() { return replica_.parameter_hash(); }
  const ringlet::Group& world() const { return world_; }
  /// At which step this rank begins; known once the first step has been taken.
  int first_step() const { return steps_.first(); }
  /// How many sequences all ranks have computed that are left at the end; known after run().
  double samples() const { return samples_; }
  /// The seconds for which this rank has computed.
  double computing_seconds() const { return steps_.seconds(); }
  /// How many averages are done.
  std::uint64_t averages() const { return trainer_.averages(); }
  const Transformer<float>& model() const { return model_; }
  Transformer<float>& model() { return model_; }
  Replica& replica() { return replica_; }
  /// Those that all ranks share, the outer momentum too.
  std::size_t outer_bytes() const { return replica_.parameter_bytes() * (options_.outer_momentum > 0 ? 2 : 1); }

 private:
  /// A replica whose gradients nobody averages.
  class Alone final : public Replica {
   public:
    using Replica::Replica;
  };

  ringlet::OuterTrainerOptions outer_options();
  void require_same_inputs(const ringlet::Checkpoint& state) const;
  double take_step(const ringlet::InnerStep& step, const std::function<void(const ringlet::InnerStep&, double)>& after);
  void compare_ends();

  const Options& options_;
  const Corpus& corpus_;
  std::uint64_t inputs_hash_;
  Transformer<float> model_;
  Alone replica_;
  InnerSteps steps_;
  std::function<void(const ringlet::MembershipChange&)> on_change_;
  ringlet::OuterTrainer trainer_;
  ringlet::Group world_;
  double samples_ = 0;
};

}  // namespace train_text
