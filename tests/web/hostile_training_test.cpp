#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <future>
#include <random>
#include <regex>

#include "tests/campaign.hpp"
#include "tests/core/seeds.hpp"
#include "tests/launch/command_process.hpp"
#include "tests/native/expect.hpp"
#include "tests/native/guest.hpp"
#include "tests/preface.hpp"
#include "tests/transport/flood.hpp"
#include "tests/web/assault.hpp"
#include "tests/web/attacks.hpp"
#include "tests/web/small_training.hpp"
#include "tests/web/web_network.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;

namespace {

constexpr int kNatives = 2, kGuests = 2;

/// `ringlet serve` with native ranks that train, and guests over WebSockets that train with them, as threads.
class Training {
 public:
  /// `option` is one of serve's.
  explicit Training(const std::string& option = "--elastic")
      : process_({"serve", "-n", std::to_string(kNatives), "-b", std::to_string(kGuests), "-p", "0", "--host", "127.0.0.1", option,
                  "--page", page_with_index(page_), "--", RINGLET_TRAINING_RANK}) {
    process_.wait_for_stderr("#token=");
    std::smatch link;
    const std::string told = process_.err();
    REQUIRE(std::regex_search(told, link, std::regex(R"(:(\d+)/#token=(\S+))")));
    port_ = static_cast<std::uint16_t>(std::stoi(link[1]));
    token_ = link[2];
    for (int number = 0; number < kGuests; ++number)
      guests_.push_back(std::async(std::launch::async, [this, number] { return train(number); }));
    process_.wait_for_stdout("training", kNatives);
  }
  ~Training() { end_after(0); }

  std::uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }
  /// Returns how many steps have been taken so far.
  int steps() const { return steps_; }
  /// Makes the first guest end the training after this step, or after the present one.
  void end_after(int step) { last_step_ = step; }
  bool takes_a_step() {
    const int before = steps();
    while (steps() == before && !over()) guests_.front().wait_for(std::chrono::milliseconds(10));
    return steps() > before;
  }
  bool over() const { return guests_.front().wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  /// Returns the one result of all ranks, once they have ended.
  std::string result() {
    std::vector<std::string> results;
    for (auto& guest : guests_) results.push_back(guest.get());
    const Outcome outcome = process_.finish();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    for (int rank = 0; rank < kNatives; ++rank)
      CHECK_THAT(outcome.out, Contains("[" + std::to_string(rank) + "] " + results.front() + "\n"));
    for (const std::string& result : results) CHECK(result == results.front());
    return results.front();
  }

 private:
  static std::string page_with_index(const TemporaryDirectory& page) {
    std::ofstream(page.path() + "/index.html") << "page";
    return page.path();
  }

  std::string train(int number) {
    NativeGuest guest({"127.0.0.1", port_}, token_, "guest " + std::to_string(number), [number](UvLoop& loop) {
      return std::make_unique<WebNetwork>(loop, std::make_unique<UvNetwork>(loop), static_cast<unsigned>(number));
    });
    const Status met = guest.meet();
    expect(met.ok(), met.text());
    SmallTraining training(guest.rank(), kNatives + kGuests);
    const double distance = training.distance();
    for (bool goes_on = true; goes_on;) {
      auto& values = training.contribute(number == 0 && training.steps() + 1 >= last_step_);
      const Status status = guest.run(make_all_reduce(ReduceOp::sum, values, values, 1, guest.options()));
      expect(status.ok(), status.text());
      goes_on = training.step();
      if (number == 0) steps_ = training.steps();
    }
    expect(training.distance() < distance, "nothing was learnt");
    guest.close();
    return training.result();
  }

  const TemporaryDirectory page_;
  CommandProcess process_;
  std::uint16_t port_ = 0;
  std::string token_;
  std::atomic<int> steps_{0};
  std::atomic<int> last_step_{1'000'000};
  std::vector<std::future<std::string>> guests_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

/// Returns hostile clients, each with the answer that it must get.
std::vector<Blow> blows() {
  const std::string host = "Host: ring:1\r\n", upgraded = "HTTP/1.1 101 ";
  std::vector<Blow> list{
      {.what = "no key", .first = replaced(upgrade_request(), "Sec-WebSocket-Key", "X-Key"), .answer = "HTTP/1.1 400 "},
      {.what = "old version", .first = replaced(upgrade_request(), "Version: 13", "Version: 8"), .answer = "HTTP/1.1 426 "},
      {.what = "no upgrade", .first = "GET /ring HTTP/1.1\r\n" + host + "\r\n", .answer = "HTTP/1.1 426 "},
      {.what = "two hosts", .first = upgrade_request(host), .answer = "HTTP/1.1 400 "},
      {.what = "another path", .first = replaced(upgrade_request(), "/ring", "/../ring"), .answer = "HTTP/1.1 404 "},
      {.what = "wrong origin", .first = upgrade_request("Origin: http://evil.example\r\n"), .answer = "HTTP/1.1 403 "},
      {.what = "null origin", .first = upgrade_request("Origin: null\r\n"), .answer = "HTTP/1.1 403 "},
      {.what = "frames in a hurry", .first = upgrade_request() + frame(kBinary, "RNGL"), .answer = "HTTP/1.1 400 "},
      {.what = "a body", .first = "POST / HTTP/1.1\r\n" + host + "Content-Length: 9\r\n\r\n", .answer = "HTTP/1.1 413 "},
      {.what = "a long header", .first = "GET / HTTP/1.1\r\n" + host + "X: " + std::string(9000, 'x'), .answer = "HTTP/1.1 431 "},
      {.what = "TLS", .first = std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), .answer = "HTTP/1.1 400 "},
      {.what = "another protocol", .first = upgrade_request(), .after_upgrade = frame(kBinary, "SSH-2.0-ringlet\r\n"), .answer = upgraded},
  };
  // To a server that waits for bytes these are legal, and they end in order.
  const auto ends_before = [](const Attack& attack) {
    return attack.what == "huge message" || attack.what == "data after close" || attack.what == "close after close";
  };
  for (const Attack& attack : attacks())
    if (!ends_before(attack))
      list.push_back({.what = attack.what,
                      .first = upgrade_request(),
                      .after_upgrade = attack.bytes,
                      .answer = upgraded,
                      .last = server_frame(kClose, close_payload(attack.code))});
  const std::string opening = preface_text() + std::string(32, 'n'), request = std::string(24, '\0') + std::string(32, 'p');
  // This client sends a proof, and a wrong one, before the server has sent its own nonce.
  list.push_back({.what = "a proof that is none", .first = opening + request});
  list.push_back({.what = "the same in frames",
                  .first = upgrade_request(),
                  .after_upgrade = frame(kBinary, opening) + frame(kBinary, request),
                  .answer = upgraded});
  return list;
}

/// Begins several of each kind of client that is slow on purpose.
void begin_slow_ones(Assault& assault) {
  for (int count = 0; count < 3; ++count) {
    assault.begin({.what = "silence", .first = ""});
    assault.begin({.what = "silence after half a magic", .first = "RN"});
    assault.begin({.what = "a slow header", .first = "GET / HTTP/1.1\r\nHost: ring:1\r\nX: ", .drip = "x"});
    assault.begin({.what = "a slow handshake", .first = preface_text(), .drip = "n"});
    assault.begin({.what = "silence after the upgrade", .first = upgrade_request(), .answer = "HTTP/1.1 101 "});
    assault.begin({.what = "a slow frame",
                   .first = upgrade_request(),
                   .after_upgrade = frame(kBinary, std::string(70'000, 'x')).substr(0, 14),
                   .drip = "RNGL",
                   .answer = "HTTP/1.1 101 "});
  }
}

/// Begins more clients than the server wants at a time, with random contents.
void begin_flood(Assault& assault) {
  std::mt19937 random(1);
  for (int count = 0; count < 260; ++count) {
    std::string rubbish(random() % 600, '\0');
    for (char& letter : rubbish) letter = static_cast<char>(random());
    const bool in_frames = count % 4 == 0;
    if (count % 4 == 1) rubbish.clear();
    assault.begin({.what = "flood " + std::to_string(count),
                   .first = in_frames ? upgrade_request() : rubbish,
                   .after_upgrade = in_frames ? rubbish : ""});
  }
}

void expect_refusal(const Training& training, const std::string& token, const std::string& reason) {
  NativeGuest guest({"127.0.0.1", training.port()}, token, "stranger",
                    [](UvLoop& loop) { return std::make_unique<WebNetwork>(loop, std::make_unique<UvNetwork>(loop), 99); });
  const Status status = guest.meet();
  CHECK_FALSE(status.ok());
  CHECK_THAT(status.text(), Contains(reason));
}

}  // namespace

TEST_CASE("hostile clients are thrown out while ranks train, and change nothing in what they learn") {
  std::string attacked;
  int steps = 0;
  const auto connections = static_cast<int>(share_of(10'000));
  Campaign campaign("strangers' connections and requests to `ringlet serve` while ranks train");
  campaign.begin(connections);
  {
    Training training;
    Assault slow(training.port());
    begin_slow_ones(slow);
    Assault direct(training.port());
    for (const Blow& blow : blows()) {
      direct.begin(blow);
      // So few are held at a time that none is thrown out to make room.
      while (direct.held() >= 40 && direct.goes_on()) REQUIRE_FALSE(training.over());
      if (slow.held() > 0) slow.goes_on();
    }
    while (direct.goes_on()) REQUIRE_FALSE(training.over());
    direct.check();
    CHECK(training.takes_a_step());

    expect_refusal(training, "", "token");
    expect_refusal(training, "another token, which is wrong", "token");

    Assault flood(training.port());
    begin_flood(flood);
    CHECK(training.takes_a_step());
    while (flood.goes_on()) {
      REQUIRE_FALSE(training.over());
      slow.goes_on();
    }
    while (slow.goes_on()) REQUIRE_FALSE(training.over());
    slow.check();
    flood.check();
    auto many =
        std::async(std::launch::async, [&] { return test::flood(training.port(), connections, {}, [&] { return !training.over(); }); });
    CHECK(training.takes_a_step());
    CHECK(many.get());
    CHECK(training.takes_a_step());
    training.end_after(0);
    attacked = training.result();
    steps = training.steps();
  }
  Training undisturbed;
  undisturbed.end_after(steps);
  const bool same = undisturbed.result() == attacked;
  CHECK(same);
  if (same) campaign.goes_well(connections);
}

TEST_CASE("a guest that comes too late to a group that is not elastic is told so") {
  Training training("--no-elastic");
  expect_refusal(training, training.token(), "complete");
  CHECK(training.takes_a_step());
}
