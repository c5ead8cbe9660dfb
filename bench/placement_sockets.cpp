// Measures large sums by the ring and by hub in groups with guests over TCP on loopback, and shows what the ranks choose by their own
// measurements there. All ranks are threads of this process, so the machine's processors and memory decide the result, not a network.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <vector>

#include "tests/native/guest.hpp"
#include "tests/native/ranks.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = 8 << 20;
constexpr int kRounds = 9;
const std::string kToken = "a token for this bench";

struct Outcome {
  double ms = 0;  // the median round
  std::string placement;
};

void run_guest(const Address& coordinator, int number, int size) {
  NativeGuest guest(coordinator, kToken, "guest " + std::to_string(number));
  if (const Status status = guest.meet(); !status.ok()) throw std::runtime_error(status.text());
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> values(kBytes / sizeof(float), 1.0F);
    Status status = guest.run(make_barrier(guest.options()));
    if (status.ok()) status = guest.run(make_all_reduce(ReduceOp::sum, values, values, 1, guest.options()));
    if (!status.ok()) throw std::runtime_error(status.text());
    if (values.back() != static_cast<float>(size)) throw std::runtime_error("a wrong sum");
  }
  guest.close();
}

Outcome measure(int natives, int guests, PlacementPolicy policy) {
  const int size = natives + guests;
  std::promise<Address> coordinator;
  const auto address = coordinator.get_future().share();
  std::vector<std::future<void>> threads;
  for (int number = 0; number < guests; ++number)
    threads.push_back(std::async(std::launch::async, [address, number, size] { run_guest(address.get(), number, size); }));
  Outcome outcome;
  const auto body = [&](Group& group) {
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<float> values(kBytes / sizeof(float), 1.0F);
      group.barrier();
      const auto start = Clock::now();
      group.all_sum(values);
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
    if (group.rank() != 0) return;
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    outcome = {times[kRounds / 2], group.describe_placement()};
  };
  run_ranks(natives, body, [&](native::WorldConfig& config) {
    config.options.size = size;
    config.options.guests = guests;
    config.options.placement.policy = policy;
    config.token = kToken;
    if (config.options.rank == 0) coordinator.set_value(*config.meeting.coordinator);
  });
  for (auto& thread : threads) thread.get();
  return outcome;
}

}  // namespace

int main() {
  const std::vector<std::pair<int, int>> groups{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 2}, {8, 1}};
  fmt::print("sums of {} MiB over loopback, median ms\n{:>8} {:>7} {:>9} {:>9}\n", kBytes >> 20, "natives", "guests", "ring", "hub");
  for (const auto& [natives, guests] : groups) {
    const double ring = measure(natives, guests, PlacementPolicy::ring).ms;
    const double hub = measure(natives, guests, PlacementPolicy::hub).ms;
    fmt::print("{:>8} {:>7} {:>9.1f} {:>9.1f}  {}\n", natives, guests, ring, hub,
               measure(natives, guests, PlacementPolicy::automatic).placement);
  }
}
