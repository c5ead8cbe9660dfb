#include "native/outer/check_outer.hpp"

#include <fmt/format.h>

#include "core/base/refuse.hpp"

namespace ringlet::native {

void check_outer(const Tree& parameters, const OuterTrainerOptions& options) {
  if (options.inner_steps < 1) refuse(fmt::format("inner_steps is {}; it must be at least 1", options.inner_steps));
  if (options.fragments < 1 || options.inner_steps % options.fragments != 0)
    refuse(
        fmt::format("fragments is {}; it must be at least 1 and divide inner_steps, which is {}", options.fragments, options.inner_steps));
  if (static_cast<std::size_t>(options.fragments) > parameters.size())
    refuse(fmt::format("fragments is {}, but there are {} parameters; each fragment needs one", options.fragments, parameters.size()));
  const int interval = options.inner_steps / options.fragments;
  if (options.overlap < 0 || options.overlap >= interval)
    refuse(fmt::format("overlap is {}; it must be at least 0 and below inner_steps / fragments, which is {}", options.overlap, interval));
  if (!(options.mixing >= 0 && options.mixing <= 1)) refuse(fmt::format("mixing is {}; it must be from 0 to 1", options.mixing));
  if (options.elastic.average.communication_type)
    refuse("elastic.average.communication_type is set; of an OuterTrainer the option wire says how differences cross the network");
  for (const Leaf& leaf : parameters)
    if (leaf.values.dtype() != DType::f32 && leaf.values.dtype() != DType::f64)
      refuse(fmt::format("the parameter '{}' is {}; an OuterTrainer takes f32 and f64, in which small differences are not lost", leaf.name,
                         name_of(leaf.values.dtype())));
}

void check_outer_steps(std::uint64_t steps, const OuterTrainerOptions& options) {
  const auto interval = static_cast<std::uint64_t>(options.inner_steps / options.fragments);
  if (steps % interval != 0) refuse(fmt::format("{} inner steps are no multiple of inner_steps / fragments, which is {}", steps, interval));
}

}  // namespace ringlet::native
