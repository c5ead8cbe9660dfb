#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/payload_sink.hpp"
#include "core/engine/send_control.hpp"
#include "core/engine/world.hpp"
#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/dialler.hpp"
#include "core/rendezvous/incoming_links.hpp"
#include "core/rendezvous/link_table.hpp"
#include "core/rendezvous/rank_settings.hpp"
#include "sim/sim_network.hpp"
#include "tests/core/test_authenticator.hpp"

namespace ringlet::test {

inline const std::string kPhaseToken = "a token for phases";

inline WorldOptions world_options(int rank, int size, int guests = 0) {
  WorldOptions options;
  options.rank = rank;
  options.size = size;
  options.guests = guests;
  options.kernels = simd::find("");
  return options;
}

inline wire::RankSettings settings(std::uint32_t rank, std::uint32_t size = 3, std::uint32_t guests = 0) {
  return settings_of(world_options(static_cast<int>(rank), static_cast<int>(size), static_cast<int>(guests)));
}

/// The other end of a session, which remembers the control messages that come.
class Talker final : private SessionOwner {
 public:
  explicit Talker(EventLoop& loop) : loop_(loop) {}
  void use(std::unique_ptr<Link> link) {
    session_ = std::make_unique<Session>(std::move(link), loop_, static_cast<SessionOwner&>(*this), SessionOptions{});
  }
  bool talks() const { return session_ != nullptr; }
  void send(const wire::ControlMessage& message) { send_control(*session_, message); }

  std::vector<wire::ControlMessage> heard;
  bool ended = false;

  template <class Message>
  const Message* last() const {
    return heard.empty() ? nullptr : std::get_if<Message>(&heard.back());
  }

 private:
  PayloadSink* on_frame(Session& session, const FrameHeader&) override { return session.gather_control(); }
  void on_control(Session&, ConstBytes payload) override { heard.push_back(*wire::decode_control(payload)); }
  void on_session_failed(Session&, const Status&) override { ended = true; }
  void on_session_ended(Session&) override { ended = true; }

  EventLoop& loop_;
  std::unique_ptr<Session> session_;
};

/// One rank's node with what all phases need, and talkers on nodes of their own.
struct Stage {
  SimWorld sim{11};
  SimNode& node = sim.add_node();
  TestAuthenticator authenticator{1, kPhaseToken};
  World world;
  LinkTable links;
  ClosingSessions closing{node.loop(), {}};
  Dialler dialler{node.loop(), node.network(), authenticator};
  IncomingLinks incoming{node.loop(), authenticator};
  std::unique_ptr<Listener> listener;
  int changes = 0;

  struct Other {
    SimNode* node = nullptr;
    std::unique_ptr<TestAuthenticator> authenticator;
    std::unique_ptr<Dialler> dialler;
    std::unique_ptr<IncomingLinks> incoming;
    std::unique_ptr<Listener> listener;
    std::deque<Talker> talkers;
  };
  std::deque<Other> others;

  explicit Stage(const WorldOptions& options) : world(node.loop(), options), links(options.size, options.rank) {}

  std::function<void()> count_changes() {
    return [this] { ++changes; };
  }
  void pass(Duration time = Duration::seconds(1)) { sim.run_for(time); }
  /// Listens at this node and gives each link that comes to `on_link`.
  void listen(IncomingLinks::OnLink on_link) {
    incoming.set_on_link(std::move(on_link));
    listener = std::move(node.network().listen({node.host(), 5000}, incoming.acceptor())).value();
  }
  Other& add_other(const std::string& token = kPhaseToken) {
    Other& other = others.emplace_back();
    other.node = &sim.add_node();
    other.authenticator = std::make_unique<TestAuthenticator>(others.size() + 10, token);
    return other;
  }
  /// Dials this node from a new one and sends `first`; then `time` passes.
  Talker& dial(const wire::ControlMessage& first, Duration time = Duration::seconds(1)) {
    Other& other = add_other();
    other.dialler = std::make_unique<Dialler>(other.node->loop(), other.node->network(), *other.authenticator);
    Talker& talker = other.talkers.emplace_back(other.node->loop());
    other.dialler->dial({node.host(), 5000}, {}, {}, [&talker, first](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) return;
      talker.use(std::move(link).value());
      talker.send(first);
    });
    pass(time);
    return talker;
  }
  /// Adds a node that listens and talks with all who dial it.
  Other& add_listener(const std::string& token = kPhaseToken) {
    Other& other = add_other(token);
    other.incoming = std::make_unique<IncomingLinks>(other.node->loop(), *other.authenticator);
    other.incoming->set_on_link(
        [&other](std::unique_ptr<Link> link) { other.talkers.emplace_back(other.node->loop()).use(std::move(link)); });
    other.listener = std::move(other.node->network().listen({other.node->host(), 5000}, other.incoming->acceptor())).value();
    return other;
  }
  static wire::Endpoint endpoint(const Other& other) { return {other.node->host(), 5000}; }
};

}  // namespace ringlet::test
