#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <thread>

#include "tests/native/expect.hpp"
#include "tests/native/guest.hpp"
#include "tests/native/ranks.hpp"
#include "tests/preface.hpp"
#include "tests/transport/raw_socket.hpp"
#include "tests/web/web_network.hpp"
#include "tests/web/web_sim.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

const std::string kToken = "a token for this test";

NativeGuest::MakeNetwork over_web_sockets(unsigned seed) {
  return [seed](UvLoop& loop) { return std::make_unique<WebNetwork>(loop, std::make_unique<UvNetwork>(loop), seed); };
}

void expect_ok(const Status& status) { expect(status.ok(), status.text()); }

/// Opens hostile connections until `stop`.
void attack(std::uint16_t port, const std::atomic<bool>& stop) {
  std::mt19937 random(port);
  const std::vector<std::string> blows{"",
                                       "GET",
                                       std::string("\0\0\0\0\0", 5),
                                       "RNGL\x7f rubbish that is no handshake",
                                       "GET / HTTP/1.1\r\nHost: ring:1\r\n\r\n",
                                       upgrade_request("Origin: http://evil.example\r\n"),
                                       upgrade_request() + frame(kBinary, "RNGL"),
                                       upgrade_request(),
                                       std::string(20'000, 'x')};
  const std::vector<std::string> frames{frame(kBinary, "not a Ringlet preface"), frame(kText, "text"),
                                        server_frame(kBinary, "unmasked"),       frame(0xf2, "bits"),
                                        frame(kClose, close_payload(9)),         frame(kBinary, preface_text())};
  while (!stop) {
    const auto socket = RawSocket::connected_to(port);
    const auto say = [&](const std::string& text) { ::send(socket.descriptor(), text.data(), text.size(), MSG_NOSIGNAL); };
    say(blows[random() % blows.size()]);
    const timeval patience{0, 2000};
    setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char answer[512];
    static_cast<void>(::recv(socket.descriptor(), answer, sizeof answer, 0));
    say(frames[random() % frames.size()]);
  }
}

}  // namespace

TEST_CASE("native ranks and guests over WebSockets compute together, whoever else knocks") {
  const std::pair<int, int> ranks = GENERATE(std::pair(1, 1), std::pair(1, 3), std::pair(2, 2));
  const int natives = ranks.first, guests = ranks.second;
  const bool attacked = GENERATE(false, true);
  CAPTURE(natives, guests, attacked);
  const int size = natives + guests;
  const float sum = static_cast<float>(size * (size + 1) / 2);
  const std::vector<std::size_t> counts{1, 1000, 300'000, 1, 50'000};
  std::promise<Address> coordinator;
  const auto address = coordinator.get_future().share();
  std::atomic<bool> stop{false};
  std::vector<std::future<void>> threads;
  for (int number = 0; number < guests; ++number)
    threads.push_back(std::async(std::launch::async, [&, number] {
      NativeGuest guest(address.get(), kToken, "guest " + std::to_string(number), over_web_sockets(static_cast<unsigned>(number)));
      expect_ok(guest.meet());
      for (const std::size_t count : counts) {
        std::vector<float> values(count, static_cast<float>(guest.rank() + 1));
        expect_ok(guest.run(make_all_reduce(ReduceOp::sum, values, values, 1, guest.options())));
        expect(values == std::vector<float>(count, sum), "the guest's sum");
      }
      expect_ok(guest.run(make_barrier(guest.options())));
      guest.close();
    }));
  auto attacker = std::async(std::launch::async, [&] {
    if (attacked) attack(address.get().port, stop);
  });
  run_ranks(
      natives,
      [&](Group& group) {
        for (const std::size_t count : counts) {
          std::vector<float> values(count, static_cast<float>(group.rank() + 1));
          group.all_sum(values);
          expect(values == std::vector<float>(count, sum), "the sum");
        }
        group.barrier();
        stop = true;
        attacker.wait();
      },
      [&](native::WorldConfig& config) {
        config.options.size = size;
        config.options.guests = guests;
        config.token = kToken;
        if (config.options.rank == 0) coordinator.set_value(*config.meeting.coordinator);
      });
  for (auto& thread : threads) thread.get();
  SUCCEED();
}

TEST_CASE("a guest over WebSockets without the token is refused, and told so") {
  std::promise<Address> coordinator;
  const auto address = coordinator.get_future().share();
  const auto enter = [&](const std::string& token, unsigned seed) {
    NativeGuest guest(address.get(), token, "guest", over_web_sockets(seed));
    Status status = guest.meet();
    if (status.ok()) guest.close();
    return status;
  };
  auto guests = std::async(std::launch::async, [&] {
    const Status refused = enter("another token, which is wrong", 1);
    expect(!refused.ok() && refused.text().find("token") != std::string::npos, refused.text());
    expect_ok(enter(kToken, 2));
  });
  run_ranks(
      1, [](Group&) {},
      [&](native::WorldConfig& config) {
        config.options.size = 2;
        config.options.guests = 1;
        config.token = kToken;
        coordinator.set_value(*config.meeting.coordinator);
      });
  guests.get();
  SUCCEED();
}
