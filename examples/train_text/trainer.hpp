#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ringlet/group.hpp>
#include <string>

#include "corpus.hpp"
#include "options.hpp"
#include "placement.hpp"
#include "run.hpp"

namespace train_text {

/// A native rank's part of a run: carries out the acts of its `Run`, one after the other, with blocking calls. All members are collective:
/// every rank calls them in the same order. They throw `ringlet::Error` where the group fails.
class Trainer {
 public:
  /// `options` and `corpus` are the same on all ranks (see opening.hpp) and must outlive the trainer.
  Trainer(const Options& options, const Corpus& corpus, ringlet::Group group);
  ~Trainer();

  /// Carries out what comes next and says what it was; `Act::end` where nothing is left. The first one loads the newest checkpoint, with
  /// `options.resume`: throws `InputError` where it does not fit, or where there is one without `options.resume`. Throws
  /// `std::runtime_error` on all ranks alike where training cannot go on: ranks whose parameters differ, a loss that is not finite.
  Act advance();

  const Run& run() const { return *run_; }
  Run& run() { return *run_; }
  /// After `beginning`: how many steps were done before.
  int first_step() const { return first_step_; }
  const Transformer<float>& model() const { return model_; }
  Placement& placement() { return *placement_; }
  const Placement& placement() const { return *placement_; }
  /// What the model wrote, after `Act::sample`.
  const std::string& sample() const { return sample_; }

 private:
  void begin();
  bool has_checkpoints() const;
  ringlet::Group saving_group() const;
  void carry_out_exchange();
  void save();

  const Options& options_;
  ringlet::Group group_;
  std::uint64_t text_hash_;
  Transformer<float> model_;
  std::unique_ptr<Placement> placement_;
  std::unique_ptr<Run> run_;
  std::optional<ringlet::Work> loss_sum_;  // under way since the loss was known
  int first_step_ = 0;
  std::string sample_;
};

}  // namespace train_text
