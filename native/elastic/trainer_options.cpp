#include "native/elastic/trainer_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ringlet/fsdp.hpp>
#include <ringlet/gradients.hpp>
#include <string>
#include <string_view>

#include "core/base/refuse.hpp"
#include "core/gradients/averager.hpp"
#include "native/hostfile.hpp"
#include "native/setting.hpp"

namespace ringlet {

namespace {

constexpr Duration kMinWait = Duration::seconds(600);

}  // namespace

MinRanks read_min_ranks(const ElasticTrainerOptions& options) {
  const auto count = native::number_setting(options.min_ranks, "the option min_ranks", native::process_variable, {"RINGLET_MIN_RANKS"});
  const Duration wait =
      native::duration_setting(options.min_wait, "the option min_wait", native::process_variable, "RINGLET_MIN_WAIT_MS", kMinWait, 0);
  return {count ? static_cast<int>(native::parse_integer(*count, 1, native::kMaxWorldSize)) : 1,
          std::chrono::milliseconds(wait.whole_milliseconds())};
}

}  // namespace ringlet

namespace ringlet::native {

void check_trainer(const Checkpoint& state, const ElasticTrainerOptions& options) {
  for (const Checkpoint::Entry& entry : state.entries())
    if (!entry.bounds.empty())
      refuse(fmt::format(
          "'{}' is sharded; an ElasticTrainer's state is whole on every rank, beside an ElasticFsdp's or an ElasticFullyShard's",
          entry.name));
  for (const std::string_view reserved : {kAverageResiduals, kShardResiduals}) {
    const auto has_name = [&](const auto& added) { return added.first == reserved; };
    const auto begins_with = [&](const Checkpoint::Entry& entry) { return entry.name.starts_with(std::string(reserved) + "."); };
    if (std::any_of(state.addends().begin(), state.addends().end(), has_name) ||
        std::any_of(state.entries().begin(), state.entries().end(), begins_with))
      refuse(fmt::format("the state has '{}', the name by which an ElasticTrainer saves residuals of its own; take another", reserved));
  }
  throw_if_failed(Averager::check(options.average));
  if (options.average.weight) refuse("the option average.weight is set; an ElasticTrainer weighs each rank by its samples");
  if (options.keep < 1) refuse(fmt::format("keep is {}; at least one checkpoint must be kept", options.keep));
  if (options.checkpoint.empty() && options.checkpoint_every > 0)
    refuse("checkpoint_every is set without the directory of the checkpoints (the option checkpoint)");
}

Status describe_lack(const MinRanks& least, int left, const Status& lost) {
  const double seconds = std::chrono::duration<double>(least.wait).count();
  return {Errc::peer_lost,
          fmt::format("{} {} left, and min_ranks is {}; in {} s not enough have joined{}{}", left, left == 1 ? "rank is" : "ranks are",
                      least.count, seconds, lost.ok() ? "" : ": ", lost.text()),
          lost.rank()};
}

}  // namespace ringlet::native
