// Measures what one TCP link between two processes costs over loopback: round trips of small messages, and the rate of a stream.
//   link_bench [--wait]     --wait: block for each event instead of polling
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "transport/uv/uv_loop.hpp"
#include "transport/uv/uv_network.hpp"

using namespace ringlet;

namespace {

constexpr std::size_t kSegment = 512 * 1024;

/// Sends `to_send_` bytes out of one buffer and counts what comes in.
class Counter final : public LinkUser {
 public:
  std::span<const ConstBytes> to_send() override {
    outgoing_ = ConstBytes(buffer_).first(std::min(left_to_send, buffer_.size()));
    return {&outgoing_, 1};
  }
  void sent(std::size_t bytes) override { left_to_send -= bytes; }
  std::span<const Bytes> to_receive() override { return {&incoming_, 1}; }
  void received(std::size_t bytes) override { received_bytes += bytes; }
  void receive_ended() override { ended = true; }
  void link_failed(const Status& status) override {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    std::exit(1);
  }

  void send(std::size_t bytes) {
    left_to_send += bytes;
    link->wake();
  }

  std::unique_ptr<Link> link;
  std::size_t left_to_send = 0;
  std::size_t received_bytes = 0;
  bool ended = false;

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kSegment);
  std::vector<std::byte> received_ = std::vector<std::byte>(kSegment);
  ConstBytes outgoing_;
  Bytes incoming_{received_};
};

struct End {
  UvLoop loop;
  UvNetwork network{loop};
  Counter user;
  bool blocking = false;
  std::size_t expected_bytes = 0;

  template <class Condition>
  void run_until(Condition condition) {
    while (!condition()) {
      // The other process has ended, so nothing more will come.
      if (user.ended) std::exit(1);
      if (blocking)
        loop.wait();
      else if (!loop.poll())
        sched_yield();
    }
  }
  void take(std::unique_ptr<Link> link) {
    user.link = std::move(link);
    user.link->start(user);
  }
  /// Bytes are counted from the start of the run, since the peer's next message may come in while the last answer leaves.
  void receive(std::size_t bytes) {
    expected_bytes += bytes;
    run_until([&] { return user.received_bytes >= expected_bytes; });
  }
  void exchange(std::size_t bytes, bool first) {
    if (first) user.send(bytes);
    if (first) loop.flush();
    receive(bytes);
    if (!first) user.send(bytes);
    if (!first) run_until([&] { return user.left_to_send == 0; });
  }
};

constexpr std::array<std::size_t, 3> kMessages{64, 4096, 65536};
constexpr int kRounds = 2'000;
constexpr std::size_t kStreamBytes = std::size_t{1} << 30;

void answer(std::uint16_t port, bool blocking) {
  End end;
  end.blocking = blocking;
  end.network.dial({"127.0.0.1", port}, Duration::seconds(10),
                   [&](Result<std::unique_ptr<Link>> link) { end.take(std::move(link).value()); });
  end.run_until([&] { return end.user.link != nullptr; });
  for (const auto bytes : kMessages)
    for (int round = 0; round < kRounds; ++round) end.exchange(bytes, false);
  end.exchange(kStreamBytes, false);
  end.user.link->finish_sending();
  end.run_until([&] { return end.user.ended; });
}

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void measure(End& end) {
  for (const auto bytes : kMessages) {
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      end.exchange(bytes, true);
      times.push_back(microseconds_since(start));
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    std::printf("%zu bytes there and back: %.2f us (median)\n", bytes, times[kRounds / 2]);
  }
  for (const char* direction : {"to", "from"}) {
    const auto start = std::chrono::steady_clock::now();
    if (std::string_view(direction) == "to") {
      end.user.send(kStreamBytes);
      end.run_until([&] { return end.user.left_to_send == 0; });
    } else {
      end.receive(kStreamBytes);
    }
    std::printf("stream %s the peer: %.2f GB/s\n", direction, static_cast<double>(kStreamBytes) / microseconds_since(start) / 1e3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool blocking = argc > 1 && std::string_view(argv[1]) == "--wait";
  int ports[2];
  if (::pipe(ports) != 0) return 1;
  const auto child = ::fork();
  if (child == 0) {
    std::uint16_t port = 0;
    if (::read(ports[0], &port, sizeof port) != sizeof port) return 1;
    answer(port, blocking);
    return 0;
  }
  {
    End end;
    end.blocking = blocking;
    auto listener = end.network.listen({"127.0.0.1", 0}, [&](std::unique_ptr<Link> link) { end.take(std::move(link)); });
    if (!listener.ok()) return 1;
    const auto port = listener.value()->address().port;
    if (::write(ports[1], &port, sizeof port) != sizeof port) return 1;
    end.run_until([&] { return end.user.link != nullptr; });
    measure(end);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return 0;
}
