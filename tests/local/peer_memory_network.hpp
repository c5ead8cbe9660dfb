#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/conformance/network_suite.hpp"
#include "transport/local/peer_memory.hpp"
#include "transport/local/peer_memory_link.hpp"

namespace ringlet::test {

/// This process's own memory, of which some reads fail.
class FaultyMemory final : public PeerMemory {
 public:
  std::unique_ptr<PeerMemory> memory = local::open_peer_memory();
  std::mt19937 random{1};
  unsigned fail_per_mille = 0;
  int reads = 0;
  int failures = 0;

  std::uint64_t own_process() const override { return memory->own_process(); }
  bool read(std::uint64_t process, std::uint64_t from, std::span<const Bytes> into, std::uint64_t then_from, Bytes then) override {
    ++reads;
    const bool fails = random() % 1000 < fail_per_mille;
    if (!fails && memory->read(process, from, into, then_from, then)) return true;
    ++failures;
    // A failed read may have left anything in the destination.
    for (const Bytes part : into) std::fill(part.begin(), part.end(), std::byte{0xdd});
    return false;
  }
};

/// Turns both ends of each connection into peer-memory links. The first link dialled and the first accepted are one connection, and so on.
class PeerMemoryLinks {
 public:
  FaultyMemory memory;
  std::size_t pull_bytes = 64;
  local::PeerMemoryTuning tuning{};
  std::shared_ptr<local::Neighbours> neighbours;  // of both ends

  std::unique_ptr<Link> wrap(std::unique_ptr<Link> link, std::size_t side) {
    const std::size_t index = counts_[side]++;
    while (connections_.size() <= index) add();
    auto& [marks, peers] = connections_[index];
    tuning.pull_bytes = pull_bytes;
    return std::make_unique<local::PeerMemoryLink>(std::move(link), memory, std::move(marks[side]), peers[side], tuning, neighbours);
  }

 private:
  struct Connection {
    std::array<std::unique_ptr<local::Mark>, 2> marks;
    std::array<local::PeerMark, 2> peers;
  };
  void add() {
    Connection& connection = connections_.emplace_back();
    for (std::size_t side = 0; side < 2; ++side) {
      auto& mark = connection.marks[side] = std::make_unique<local::Mark>();
      for (std::byte& byte : mark->word) byte = static_cast<std::byte>(random_());
      connection.peers[1 - side] = {memory.own_process(), reinterpret_cast<std::uintptr_t>(mark.get()), mark->word};
    }
  }

  std::mt19937 random_{7};
  std::deque<Connection> connections_;
  std::array<std::size_t, 2> counts_{};
};

/// A network whose links are put over those of another one by `Links::wrap(link, side)`.
template <class Links>
class WrappedNetwork final : public Network {
 public:
  WrappedNetwork(Network& network, Links& links) : network_(network), links_(links) {}
  Result<std::unique_ptr<Listener>> listen(const Address& address, Acceptor on_accept) override {
    return network_.listen(address, [this, on_accept](std::unique_ptr<Link> link) { on_accept(links_.wrap(std::move(link), 1)); });
  }
  void dial(const Address& address, Duration timeout, Dialled on_dialled) override {
    network_.dial(address, timeout, [this, on_dialled](Result<std::unique_ptr<Link>> link) {
      if (!link.ok()) return on_dialled(link.status());
      on_dialled(Result<std::unique_ptr<Link>>(links_.wrap(std::move(link).value(), 0)));
    });
  }

 private:
  Network& network_;
  Links& links_;
};

/// A pair of networks that puts links over those of another pair.
template <class Links>
class WrappedPair final : public conformance::NetworkPair {
 public:
  template <class... Arguments>
  explicit WrappedPair(conformance::NetworkPair& pair, Arguments&&... arguments)
      : links{std::forward<Arguments>(arguments)...}, pair_(pair) {
    for (std::size_t side = 0; side < 2; ++side) networks_.push_back(std::make_unique<WrappedNetwork<Links>>(pair.network(side), links));
  }
  Links links;

  EventLoop& loop(std::size_t side) override { return pair_.loop(side); }
  Network& network(std::size_t side) override { return *networks_[side]; }
  Address any_port(std::size_t side) override { return pair_.any_port(side); }
  bool drive(const std::function<bool()>& condition) override { return pair_.drive(condition); }
  void destroy_network(std::size_t side) override { networks_[side].reset(); }

 private:
  conformance::NetworkPair& pair_;
  std::vector<std::unique_ptr<Network>> networks_;
};

using PeerMemoryNetwork = WrappedNetwork<PeerMemoryLinks>;
using PeerMemoryPair = WrappedPair<PeerMemoryLinks>;

/// Returns the cases of links, without those of what a peer-memory link does not do: to change its user, to go on sending while it has no
/// room, and to be rid of its bytes before the other end reads.
inline std::vector<conformance::Case> peer_memory_link_cases() {
  std::vector<conformance::Case> cases;
  for (const auto& family : {conformance::link_cases(), conformance::closing_cases()}) {
    for (const auto& test : family) {
      const bool changes_user = test.name.find("one user after another") == 0 || test.name == "a new user hears of the end";
      const bool needs_no_reader = test.name == "no room until a wake" || test.name == "bytes wait for the start";
      if (!changes_user && !needs_no_reader) cases.push_back(test);
    }
  }
  return cases;
}

}  // namespace ringlet::test
