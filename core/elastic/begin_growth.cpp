#include "core/elastic/begin_growth.hpp"

#include "core/engine/requests.hpp"

namespace ringlet {

namespace {

constexpr std::size_t kShareNumbers = sizeof(GrowthShare) / sizeof(std::int32_t);

}  // namespace

Procedure::Action BeginGrowth::next() {
  switch (stage_) {
    case Stage::shares:
      stage_ = Stage::port;
      return run(for_purpose(Purpose::growth, make_all_gather({&own_, DType::i32, kShareNumbers},
                                                              {shares_.data(), DType::i32, shares_.size() * kShareNumbers}, world_)));
    case Stage::port: {
      const auto planned = plan_growth(shares_, world_.rank, largest_size_);
      if (!planned.ok()) return Done{planned.status()};
      plan_ = planned.value();
      if (!plan_) break;
      stage_ = Stage::end;
      if (world_.rank == 0) port_ = calls_.listen(*plan_);
      return run(for_purpose(Purpose::growth, make_broadcast(TensorView(&port_, DType::i32, 1), 0, world_)));
    }
    case Stage::end:
      if (world_.rank != 0) calls_.meet(*plan_, static_cast<std::uint16_t>(port_));
      if (port_ != 0) calls_.send_tickets(*plan_, static_cast<std::uint16_t>(port_));
      break;
  }
  return Done{};
}

}  // namespace ringlet
