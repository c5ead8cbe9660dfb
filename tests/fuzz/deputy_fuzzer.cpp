#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tools/job/message_link.hpp"

using namespace ringlet;

namespace {

/// Time stands still, and nothing runs by itself.
class StillLoop final : public EventLoop {
 public:
  Instant now() const override { return {}; }
  void defer(Task) override {}
  TimerId after(Duration, Task) override { return 1; }
  void cancel(TimerId) override {}
};

class FedLink final : public Link {
 public:
  void start(LinkUser& user) override { user_ = &user; }
  void wake() override {}
  void finish_sending() override {}
  std::string peer_name() const override { return "fuzzer"; }

  void feed(ConstBytes bytes, std::size_t piece) {
    while (!bytes.empty()) {
      const auto parts = user_->to_receive();
      if (parts.empty()) return;
      const std::size_t count = std::min({piece, parts.front().size(), bytes.size()});
      std::memcpy(parts.front().data(), bytes.data(), count);
      bytes = bytes.subspan(count);
      user_->received(count);
    }
  }

 private:
  LinkUser* user_ = nullptr;
};

struct Heard {
  std::vector<job::Message> messages;
  int losses = 0;
  friend bool operator==(const Heard&, const Heard&) = default;
};

Heard hear(ConstBytes bytes, std::size_t piece) {
  Heard heard;
  StillLoop loop;
  auto link = std::make_unique<FedLink>();
  FedLink& fed = *link;
  job::MessageLink channel(loop, std::move(link), job::kPipeLimits);
  channel.start([&](job::Message message) { heard.messages.push_back(std::move(message)); }, [&](const Status&) { ++heard.losses; });
  fed.feed(bytes, piece);
  return heard;
}

}  // namespace

// Bytes on the pipes between a launcher and its deputy: they hold the same messages in whatever pieces they come, and at most one loss.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ConstBytes bytes = std::as_bytes(std::span(data + 1, size - 1));
  const Heard heard = hear(bytes, std::max<std::size_t>(bytes.size(), 1));
  if (heard.losses > 1 || hear(bytes, std::size_t{1} + data[0]) != heard) std::abort();
  return 0;
}
