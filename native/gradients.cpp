#include <ringlet/gradients.hpp>
#include <utility>

#include "core/base/refuse.hpp"
#include "core/gradients/averager.hpp"
#include "native/procedure_driver.hpp"
#include "native/residual_addends.hpp"
#include "native/shared_group.hpp"

namespace ringlet {

struct GradientAverager::State {
  State(Group group, const AverageOptions& options)
      : wire(options.communication_type), averager(group.shared().options(), options), driver({std::move(group)}, options.stream) {}

  const std::optional<Wire> wire;
  Averager averager;
  native::ProcedureDriver driver;  // declared last: its destructor waits for the collectives that use the averager's buckets
};

GradientAverager::GradientAverager(Group group, const AverageOptions& options) {
  throw_if_failed(Averager::check(options));
  state_ = std::make_unique<State>(std::move(group), options);
}
GradientAverager::GradientAverager(GradientAverager&&) noexcept = default;
GradientAverager& GradientAverager::operator=(GradientAverager&&) noexcept = default;
GradientAverager::~GradientAverager() = default;

void GradientAverager::set_weight(std::optional<double> weight) { throw_if_failed(state_->averager.set_weight(weight)); }

void GradientAverager::add(TensorView gradient) {
  throw_if_failed(state_->averager.add(gradient));
  state_->driver.drive(state_->averager);
}

void GradientAverager::finish() {
  state_->averager.close();
  state_->driver.drive(state_->averager);
}

std::size_t GradientAverager::collectives() const noexcept { return state_->averager.collectives(); }

void GradientAverager::add_to(Checkpoint& checkpoint, std::string_view name) {
  native::add_residuals(checkpoint, name, state_->wire, {{&state_->averager.residuals()}});
}

void average_gradients(Group group, std::span<const TensorView> gradients, const AverageOptions& options) {
  throw_if_failed(Averager::check(options));
  if (has_feedback(options.communication_type))
    refuse("average_gradients: error feedback needs a tree with names, or a GradientAverager, to keep what rounding leaves out");
  Averager averager(group.shared().options(), options, Averager::kFewBuckets);
  throw_if_failed(averager.add_all(gradients));
  native::ProcedureDriver({std::move(group)}, options.stream).drive(averager);
}

void average_gradients(Group group, const Tree& gradients, const AverageOptions& options) {
  native::SharedGroup& shared = group.shared();
  TreeAverage average(shared.engine(), shared.agreements(), gradients, options);
  native::ProcedureDriver({std::move(group)}, options.stream).drive(average);
}

}  // namespace ringlet
