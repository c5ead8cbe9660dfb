#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/session.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// How this rank is linked with another.
struct LinkReport {
  std::string own_name, peer_name;  // addresses, for people
  std::string_view medium;
  wire::Path path{};  // `tried` is 0 where there was nothing to choose
  bool dialled = false;
};

/// The ranks of a world as one of them knows them: its session with each of the others, the way there, and their names.
class Peers {
 public:
  explicit Peers(int size) : peers_(static_cast<std::size_t>(size)) {}

  bool has_session(int rank) const { return at(rank).session != nullptr; }
  /// There is one.
  Session& session(int rank) const { return *at(rank).session; }
  /// Puts the session with a rank in the place of the one there was, which is given back.
  std::unique_ptr<Session> exchange_session(int rank, std::unique_ptr<Session> session);
  template <class Each>
  void for_each_session(Each each) const {
    for (const Peer& peer : peers_)
      if (peer.session) each(*peer.session);
  }
  /// "tcp", "memory", "mixed", or "none" where there is no session.
  std::string_view media() const;

  void set_path(int rank, const wire::Path& path, bool dialled);
  /// Of a rank with which there is a session.
  LinkReport link_with(int rank) const;

  /// What people know the rank by; empty: nothing is known.
  const std::string& name(int rank) const { return at(rank).name; }
  void set_name(int rank, std::string name) { at(rank).name = std::move(name); }
  /// "rank 3 (Chromium on Linux, 10.0.0.9:4711)".
  std::string text_of(int rank) const;
  /// The status with the name of the rank that it blames.
  Status with_name(const Status& status) const;

  /// The rank's link went with the relay, which has left the world.
  void cut_off(int rank);
  bool has_left(int rank) const;

 private:
  struct Peer {
    std::unique_ptr<Session> session;  // null for this rank
    wire::Path path{};
    bool dialled = false;
    std::string name{};
    bool cut_off = false;
  };
  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& at(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  std::vector<Peer> peers_;  // by rank
};

}  // namespace ringlet
