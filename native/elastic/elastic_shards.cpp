#include "native/elastic/elastic_shards.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/refuse.hpp"
#include "core/optimizers/norm.hpp"
#include "native/exclusive_call.hpp"

namespace ringlet {

ElasticShards::State::State(const Group& world, MakeOptimizer make, const native::HeldRowsOptions& options, std::optional<double> norm)
    : rows(world, std::move(make), options), max_norm(norm) {
  if (norm) throw_if_failed(check_max_norm(*norm));
}

std::string ElasticShards::State::enter(Group world) {
  const native::ExclusiveCall entering(is_entering, "enter() of elastic shards within their enter()");
  leave_world();
  const std::string norm = max_norm ? fmt::format("{}", *max_norm) : "unset";
  std::string lost = rows.enter(std::move(world), fmt::format("max_norm {}\n{}", norm, settings()));
  begin_in_world();
  has_begun = true;
  if (lost.empty()) gather();
  return lost;
}

void ElasticShards::State::add_to(Checkpoint& checkpoint, std::string_view parameters, std::string_view optimizer) {
  if (!has_begun) refuse("add_to() before enter()");
  rows.finish_moves();
  add_parameters(checkpoint, parameters);
  checkpoint.add_slots(optimizer, rows.parts().front().optimizer->state(), rows.layout());
  add_residuals(checkpoint);
}

void ElasticShards::State::update() {
  rows.update();
  for (ShardResiduals& own : residuals()) own.commit();
}

/// Residuals are of a training that is not continued.
void ElasticShards::State::forget() {
  rows.forget();
  for (ShardResiduals& own : residuals()) own.clear();
}

void ElasticShards::State::loaded(std::uint64_t step) {
  if (!has_begun) refuse("loaded() before enter()");
  rows.loaded(step);
  // The first holders are here, so no rows are lost.
  (void)enter(rows.group());
}

/// The second holder scales by the same norm, so both have the same bits.
std::optional<double> ElasticShards::State::clip() {
  if (!max_norm) return std::nullopt;
  const double norm = clip_grad_norm_sharded(rows.group(), rows.parts().front().gradients, *max_norm, rows.stream());
  for (std::size_t place = 1; place < rows.parts().size(); ++place) clip_to_norm(rows.parts()[place].gradients, norm, *max_norm);
  return norm;
}

ElasticShards::ElasticShards(std::unique_ptr<State> state) : state_(std::move(state)) {}
ElasticShards::~ElasticShards() = default;

std::string ElasticShards::enter(Group world) { return state_->enter(std::move(world)); }
void ElasticShards::update() { state_->update(); }
void ElasticShards::gather() { state_->gather(); }

void ElasticShards::add_to(Checkpoint& checkpoint, std::string_view parameters, std::string_view optimizer) const {
  state_->add_to(checkpoint, parameters, optimizer);
}
void ElasticShards::loaded(std::uint64_t step) { state_->loaded(step); }
void ElasticShards::forget() noexcept { state_->forget(); }
std::uint64_t ElasticShards::step() const noexcept { return state_->rows.step(); }
ShardLayout ElasticShards::layout() const { return state_->rows.layout(); }
std::size_t ElasticShards::bytes_to_rebuild() const { return state_->rows.bytes_to_rebuild(); }
std::size_t ElasticShards::state_bytes() const noexcept { return state_->rows.state_bytes(); }

}  // namespace ringlet
