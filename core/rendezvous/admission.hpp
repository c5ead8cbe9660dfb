#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <variant>

#include "core/engine/world.hpp"
#include "core/rendezvous/candidate_responder.hpp"
#include "core/rendezvous/closing_sessions.hpp"
#include "core/rendezvous/coordinator.hpp"
#include "core/rendezvous/link_table.hpp"
#include "core/rendezvous/unidentified_peer.hpp"

namespace ringlet {

struct AdmissionOptions {
  /// Whether the ranks get the roster from rank 0; otherwise each reads its own hostfile.
  bool has_coordinator = true;
  /// The world's number, once this rank knows it.
  std::optional<std::uint64_t> world_id{};
};

/// The third phase of a meeting, which runs beside the second. It finds out which ranks the peers are that have dialled this one, and gives
/// their sessions to the world. Peers that do not fit are told why and dropped; a rank that was started for another world makes this world
/// fail. Belongs to the loop's thread.
class Admission {
 public:
  /// All arguments outlive it. `coordinator` is null except on rank 0. `on_admitted` runs from the loop when a rank or a guest has been
  /// admitted.
  Admission(EventLoop& loop, World& world, LinkTable& links, ClosingSessions& closing, Coordinator* coordinator,
            const AdmissionOptions& options, std::function<void()> on_admitted);

  /// Takes over an authenticated link.
  void receive(std::unique_ptr<Link> link);
  /// The world's number has become known: peers that have asked for a link with this rank before are answered now.
  void set_world_id(std::uint64_t id);
  /// Refuses all peers that are not ranks yet, and all that come from now on, and tells them the reason.
  void refuse_all(const Status& reason);
  /// Drops all peers that are not ranks yet, and all that come from now on, without telling them anything.
  void drop_all();

 private:
  struct Peer {
    std::unique_ptr<UnidentifiedPeer> connection;
    std::optional<std::variant<wire::Connect, wire::Propose>> early{};  // a request that came before the world's number was known
    std::optional<CandidateResponder> candidate{};                      // its proposal was accepted
  };
  using Peers = std::list<Peer>;

  void on_message(UnidentifiedPeer& connection, const std::optional<wire::ControlMessage>& message);
  void on_seat_request(Peer& peer, const wire::SeatRequest& request);
  void on_join(Peer& peer, const wire::Join& join);
  void on_connect(Peer& peer, const wire::Connect& connect);
  void on_propose(Peer& peer, const wire::Propose& propose);
  void on_candidate_message(Peer& peer, const wire::ControlMessage& message);
  void on_candidate_confirmed(Peer& peer);

  Status check(const wire::RankSettings& settings) const;
  bool passes(Peer& peer, const wire::RankSettings& settings);
  Peers::iterator find(const UnidentifiedPeer& connection);
  std::unique_ptr<Session> take(const Peer& peer);
  void reject(const Peer& peer, const Status& reason);
  void drop(const Peer& peer);

  EventLoop& loop_;
  World& world_;
  const WorldOptions& own_;
  LinkTable& links_;
  ClosingSessions& closing_;
  Coordinator* const coordinator_;
  AdmissionOptions options_;
  const std::function<void()> on_admitted_;
  Peers peers_;
  bool open_ = true;
  std::optional<Status> refusal_;  // of all peers that come
};

}  // namespace ringlet
