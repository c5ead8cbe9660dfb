// What a change of the ranks costs the others.
//
// A rank that joins: the longest step of the others, beside their usual one.
//   RINGLET_TOKEN=... ringlet launch --elastic -n 2 -- build/release/bin/growth_bench 10
//   RINGLET_TOKEN=... RINGLET_JOIN=<the door that it prints> build/release/bin/growth_bench 10
// A rank that is killed, where ElasticFsdp holds AdamW's state: how long the others stand still, and their next steps. The numbers are
// millions of parameters, the rank that is killed, milliseconds of each step that are no communication, and the copies of each row.
//   RINGLET_TOKEN=... ringlet launch --elastic -n 4 -- build/release/bin/growth_bench 10 loss 3 0 2
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <ringlet/ringlet.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStepsAfter = 200;
constexpr std::uint64_t kStepsBeforeLoss = 6, kStepsAfterLoss = 16;
constexpr std::size_t kTensors = 16;

struct Done {};

double milliseconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void watch_growth(ringlet::Group world, std::size_t millions) {
  const bool joins = world.epoch() > 0;
  if (world.rank() == 0) fmt::print("RINGLET_JOIN={}\n", world.door()), std::fflush(stdout);
  std::vector<float> parameters(millions * 1'000'000, joins ? 0.0f : 1.0f), gradient(1 << 18, 1.0f);
  std::vector<double> milliseconds;
  double pause = 0;
  int steps_after = -1;
  ringlet::Checkpoint state;
  state.add("model", ringlet::Tree{{"parameters", parameters}});
  ringlet::ElasticTrainer trainer(std::move(world), state, {.on_change = [&](const ringlet::MembershipChange& change) {
                                    if (change.joined == 0) return;
                                    pause = std::chrono::duration<double, std::milli>(change.pause).count();
                                    steps_after = 0;
                                  }});
  world = ringlet::Group();
  auto last = Clock::now();
  try {
    trainer.run({.steps = 1'000'000, .batch = 64}, [&](ringlet::Step& step) {
      const auto now = Clock::now();
      milliseconds.push_back(milliseconds_between(last, now));
      last = now;
      step.average({{"gradient", gradient}});
      step.commit([] {});
      if (joins && steps_after < 0) steps_after = 0;
      if (steps_after >= 0 && ++steps_after > kStepsAfter) throw Done();
    });
  } catch (const Done&) {
  }
  if (trainer.world().rank() != 0) return;
  const double longest = *std::max_element(milliseconds.begin() + 1, milliseconds.end());
  fmt::print("{} M parameters (f32): a step takes {:.2f} ms (median), the longest {:.1f} ms; the ranks stood still for {:.1f} ms\n",
             millions, median(milliseconds), longest, pause);
}

/// A line of /proc/self/status, in MB.
std::size_t megabytes_of(const std::string& what) {
  std::ifstream status("/proc/self/status");
  std::string key;
  for (std::size_t kilobytes = 0; status >> key; status.ignore(1000, '\n'))
    if (key == what + ":" && status >> kilobytes) return kilobytes / 1000;
  return 0;
}

struct Loss {
  int victim = 0;
  std::chrono::milliseconds work{};
  int copies = 2;
};

void watch_loss(ringlet::Group world, std::size_t millions, const Loss& loss) {
  const int origin = world.rank();
  const std::size_t rows = millions * 1'000'000 / kTensors / 1000;
  std::vector<ringlet::Tensor> memory;
  ringlet::Tree parameters, gradients;
  for (std::size_t i = 0; i < kTensors; ++i)
    for (ringlet::Tree* tree : {&parameters, &gradients}) {
      memory.emplace_back(ringlet::DType::f32, ringlet::Shape{static_cast<std::int64_t>(rows), 1000});
      tree->add(fmt::format("{}", i), memory.back().view());
    }
  ringlet::ElasticFsdp fsdp(world, parameters, [] { return std::make_unique<ringlet::AdamW>(1e-3); }, {.copies = loss.copies});
  Clock::time_point noticed, begin;
  double pause = 0;
  bool has_lost = false;
  std::vector<double> before, after;
  ringlet::ElasticTrainer trainer(std::move(world), ringlet::Checkpoint(), fsdp,
                                  {.on_change = [&](const ringlet::MembershipChange& change) {
                                    noticed = Clock::now() - std::chrono::duration_cast<Clock::duration>(change.pause);
                                    has_lost = true;
                                  }});
  world = ringlet::Group();
  trainer.run({.steps = kStepsBeforeLoss + kStepsAfterLoss, .batch = 64}, [&](ringlet::Step& step) {
    begin = Clock::now();
    if (has_lost && pause == 0) pause = milliseconds_between(noticed, begin);
    if (origin == loss.victim && step.number() == kStepsBeforeLoss) std::raise(SIGKILL);
    std::this_thread::sleep_for(loss.work);
    fsdp.average(gradients);
    step.commit([&] { fsdp.update(); });
    (has_lost ? after : before).push_back(milliseconds_between(begin, Clock::now()));
    if (!has_lost && step.number() + 1 == kStepsBeforeLoss)
      fmt::print("rank {} of 4: {} MB of optimizer's state; the process has {} MB in use, {} MB at most\n", origin,
                 fsdp.state_bytes() / 1'000'000, megabytes_of("VmRSS"), megabytes_of("VmHWM"));
  });
  fmt::print("rank {} is now {}: a step took {:.0f} ms (median); stood still for {:.0f} ms; the next steps took {:.0f} ms\n", origin,
             trainer.world().rank(), median(before), pause, fmt::join(after, ", "));
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int position, unsigned long long otherwise) {
    return argc > position ? std::strtoull(argv[position], nullptr, 10) : otherwise;
  };
  try {
    const std::size_t millions = number(1, 10);
    if (argc > 2 && std::string(argv[2]) == "loss")
      watch_loss(ringlet::init(), millions,
                 {static_cast<int>(number(3, 3)), std::chrono::milliseconds(number(4, 0)), static_cast<int>(number(5, 2))});
    else
      watch_growth(ringlet::init(), millions);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "growth_bench: {}\n", error.what());
    return 1;
  }
}
