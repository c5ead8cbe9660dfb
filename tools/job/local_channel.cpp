#include "tools/job/local_channel.hpp"

namespace ringlet::job {

namespace {

class LocalChannel final : public MessageChannel {
 public:
  explicit LocalChannel(EventLoop& loop) : loop_(loop), self_(std::make_shared<LocalChannel*>(this)) {}
  ~LocalChannel() override {
    *self_ = nullptr;
    if (*other_ != nullptr)
      loop_.defer([other = other_] {
        if (*other == nullptr) return;
        const OnLost on_lost = (*other)->on_lost_;
        on_lost({Errc::peer_lost, "it ended"});
      });
  }
  static void connect(LocalChannel& one, LocalChannel& other) {
    one.other_ = other.self_;
    other.other_ = one.self_;
  }

  void start(OnMessage on_message, OnLost on_lost) override {
    on_message_ = std::move(on_message);
    on_lost_ = std::move(on_lost);
  }
  void send(const Message& message) override {
    loop_.defer([other = other_, message]() mutable {
      if (*other == nullptr) return;
      // The callback may destroy the channel, and the function with it.
      const OnMessage on_message = (*other)->on_message_;
      on_message(std::move(message));
    });
  }
  std::size_t unsent_bytes() const override { return 0; }
  std::string peer_name() const override { return "this machine"; }

 private:
  using Self = std::shared_ptr<LocalChannel*>;  // holds nullptr once the channel is destroyed

  EventLoop& loop_;
  Self self_, other_;
  OnMessage on_message_;
  OnLost on_lost_;
};

}  // namespace

std::pair<std::unique_ptr<MessageChannel>, std::unique_ptr<MessageChannel>> make_local_channels(EventLoop& loop) {
  auto one = std::make_unique<LocalChannel>(loop), other = std::make_unique<LocalChannel>(loop);
  LocalChannel::connect(*one, *other);
  return {std::move(one), std::move(other)};
}

}  // namespace ringlet::job
