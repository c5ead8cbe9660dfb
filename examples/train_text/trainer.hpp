#pragma once

#include <cstdint>
#include <memory>
#include <ringlet/ringlet.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "corpus.hpp"
#include "model.hpp"
#include "options.hpp"
#include "placement.hpp"
#include "stopwatch.hpp"

namespace train_text {

/// One rank's part of training. All members are collective: every rank calls them in the same order.
/// They throw `ringlet::Error` where the group fails.
class Trainer {
 public:
  /// Checks that all ranks have the same text and options (else `InputError`, naming the ranks) and gives all of them the parameters of
  /// rank 0, where `options.mode` wants them. `options` and `corpus` must outlive the trainer.
  Trainer(const Options& options, const Corpus& corpus, ringlet::Group group);

  /// The first step to take: 0, or with `options.resume` what follows the newest checkpoint, which is loaded. Throws `InputError` where
  /// the checkpoint does not fit, or where there is one without `options.resume`.
  int begin();
  /// Saves a checkpoint if one is due after so many steps.
  void save_if_due(int steps_done);

  /// Step number `step`, counted from 0: each rank takes its part of the batch, the gradients are averaged and applied. Returns the loss
  /// over the whole batch.
  double step(int step);

  /// Mean loss over the held-out windows, which the ranks share.
  double validation_loss();

  /// The hash of each rank's parameters. They are equal if all went well.
  std::vector<std::uint64_t> parameter_hashes();

  /// This rank's share of the time of all steps so far that went into waiting for the group.
  double communication_share() const;
  /// The mean of `communication_share` over all ranks.
  double mean_communication_share();
  double training_seconds() const { return training_.seconds(); }

  /// What the model writes after `prompt`. Every rank gets the same.
  std::string sample(std::string_view prompt);

  const Transformer<float>& model() const { return model_; }
  const Placement& placement() const { return *placement_; }

 private:
  void check_agreement();
  double train_on(int step);

  const Options& options_;
  const Corpus& corpus_;
  ringlet::Group group_;
  std::uint64_t text_hash_;
  Transformer<float> model_;
  std::unique_ptr<Placement> placement_;
  Stopwatch training_;
  Stopwatch waiting_for_losses_;
  double communication_seconds_ = 0;
};

}  // namespace train_text
