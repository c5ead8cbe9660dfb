#include "native/pmi.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <functional>
#include <ringlet/error.hpp>
#include <string>
#include <thread>

using namespace ringlet;
using Catch::Matchers::Contains;

namespace {

/// A process manager that gives each line that it gets to `answer`, and sends what this returns.
class Manager {
 public:
  explicit Manager(std::function<std::string(const std::string&)> answer) {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) != 0) throw std::runtime_error("no pair of sockets");
    thread_ = std::thread([this, answer = std::move(answer)] {
      std::string line;
      for (char c = 0; ::read(ends_[1], &c, 1) == 1;) {
        if (c != '\n') {
          line += c;
          continue;
        }
        const std::string reply = answer(std::exchange(line, {}));
        if (reply == "close") ::shutdown(ends_[1], SHUT_RDWR);
        // In pieces, as a stream may come.
        for (const char piece : reply)
          if (::send(ends_[1], &piece, 1, MSG_NOSIGNAL) != 1) return;
      }
    });
  }
  ~Manager() {
    ::close(ends_[0]);
    thread_.join();
    ::close(ends_[1]);
  }
  native::PmiClient client(std::function<bool()> interrupted = {}, Duration timeout = Duration::seconds(60)) const {
    return {ends_[0], timeout, std::move(interrupted)};
  }

 private:
  int ends_[2]{};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a value goes from its giver to all by PMI") {
  std::string kept;
  const auto serve = [&](const std::string& line) -> std::string {
    if (line == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_7\n";
    if (line == "cmd=put kvsname=kvs_7 key=where value=node3") {
      kept = "node3";
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (line == "cmd=barrier_in") return "cmd=barrier_out\n";
    if (line == "cmd=get kvsname=kvs_7 key=where") return "cmd=get_result rc=0 msg=success value=" + kept + "\n";
    return "cmd=unknown rc=-1\n";
  };
  Manager manager(serve);
  CHECK(manager.client().share("where", "node3") == "node3");
  CHECK(manager.client().share("where", std::nullopt) == "node3");
  CHECK(manager.client().job() == "kvs_7");
  CHECK_THROWS_WITH(manager.client().share("other", std::nullopt), Contains("cmd=get kvsname=kvs_7 key=other") && Contains("rc=-1"));
}

TEST_CASE("the process manager is told that the process will end well, if it still listens") {
  int told = 0;
  const Manager manager([&](const std::string& line) -> std::string {
    ++told;
    return line == "cmd=finalize" ? "cmd=finalize_ack\n" : "cmd=unknown rc=-1\n";
  });
  manager.client().finish();
  CHECK(told == 1);
  const Manager gone([](const std::string&) { return "close"; });
  gone.client().finish();
  gone.client().finish();
}

TEST_CASE("a process manager that says something else, nothing, or goes ends init() with what it said") {
  CHECK_THROWS_WITH(Manager([](const std::string&) { return "cmd=finalize_ack\n"; }).client().job(),
                    Contains("finalize_ack") && Contains("RINGLET_RANK"));
  CHECK_THROWS_WITH(Manager([](const std::string&) { return "cmd=my_kvsname rc=0\n"; }).client().job(), Contains("no name"));
  CHECK_THROWS_WITH(Manager([](const std::string&) { return std::string(5000, 'x'); }).client().job(), Contains("end of the line"));
  CHECK_THROWS_WITH(Manager([](const std::string&) { return "close"; }).client().job(), Contains("closed"));
  const Manager silent([](const std::string&) { return ""; });
  CHECK_THROWS_AS(silent.client([] { return true; }).job(), Cancelled);
  CHECK_THROWS_AS(silent.client({}, Duration::milliseconds(60)).job(), Timeout);
}
