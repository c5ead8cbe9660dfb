#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <thread>

#include "core/rendezvous/guest_entry.hpp"
#include "tests/launch/command_process.hpp"
#include "tools/launch/guest_list.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

using namespace ringlet;
using namespace ringlet::test;

namespace {

/// A guest that takes a seat and waits until it is destroyed.
class WaitingGuest {
 public:
  WaitingGuest(int port, const std::string& token, const std::string& name)
      : thread_([this, port, token, name] {
          UvNetwork network(loop_);
          TokenAuthenticator authenticator(token);
          GuestEntryOptions options;
          options.coordinator = {"127.0.0.1", static_cast<std::uint16_t>(port)};
          options.name = name;
          // The guest has no use for its seat: it does not take the session from the entry, which closes it.
          GuestEntry entry(loop_, network, authenticator, options, [this](const Result<GuestEntry::Entry>&) { gone_ = true; });
          while (!gone_) loop_.wait();
        }) {}
  ~WaitingGuest() {
    loop_.post([this] { gone_ = true; });
    thread_.join();
  }

 private:
  UvLoop loop_;
  bool gone_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("serve says who comes and who goes") {
  TemporaryDirectory page;
  std::ofstream(page.path() + "/index.html") << "page";
  CommandProcess process({"serve", "-b", "2", "-p", "0", "--host", "127.0.0.1", "--page", page.path(), "--", RINGLET_COMMAND, "bench"});
  process.wait_for_stderr("#token=");
  std::smatch link;
  const std::string told = process.err();
  REQUIRE(std::regex_search(told, link, std::regex(R"(:(\d+)/#token=(\S+))")));
  const int port = std::stoi(link[1]);
  {
    const WaitingGuest first(port, link[2], "Chromium on Linux");
    process.wait_for_stderr("ringlet serve: browser 1 of 2 is here: Chromium on Linux, 127.0.0.1:");
  }
  process.wait_for_stderr("ringlet serve: a browser left: Chromium on Linux, 127.0.0.1:");
  process.wait_for_stderr("; 0 of 2 are here\n");
  const WaitingGuest second(port, link[2], "Safari on iOS");
  process.wait_for_stderr("ringlet serve: browser 1 of 2 is here: Safari on iOS, 127.0.0.1:");
  process.send(SIGTERM);
  CHECK(process.finish().exit_code == 128 + SIGTERM);
}

TEST_CASE("a report of guests is told as what changed") {
  launch::GuestList list(3);
  using Sentences = std::vector<std::string>;
  CHECK(list.feed("") == Sentences{});
  CHECK(list.feed("\n") == Sentences{});
  CHECK(list.feed("b, 1") == Sentences{});
  CHECK(list.feed(":2\n") == Sentences{"browser 1 of 3 is here: b, 1:2"});
  CHECK(list.feed("b, 1:2\ta\n") == Sentences{"browser 2 of 3 is here: a"});
  CHECK(list.feed("a\tb, 1:2\n") == Sentences{});
  CHECK(list.feed("c\n\n") == Sentences{"a browser left: a; 1 of 3 are here", "a browser left: b, 1:2; 0 of 3 are here",
                                        "browser 1 of 3 is here: c", "a browser left: c; 0 of 3 are here"});
}
