#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/address.hpp"
#include "core/engine/session.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// How this rank is linked with another.
struct LinkReport {
  std::string own_name, peer_name;  // addresses, for people
  std::string_view medium;
  std::string_view cipher;  // empty where it is not encrypted
  wire::Path path{};        // `tried` is 0 where there was nothing to choose
  bool dialled = false;
};

/// Whether a link does not leave the machine: both ends have one address, or the one reads the other's memory.
bool is_inside_machine(std::string_view medium, std::string_view own_name, std::string_view peer_name);

/// What one rank of a world knows of the others: the session with each of them, the path of its link, its name, and its door.
class Peers {
 public:
  explicit Peers(int size) : peers_(static_cast<std::size_t>(size)) {}

  bool has_session(int rank) const { return at(rank).session != nullptr; }
  /// There has to be a session with the rank.
  Session& session(int rank) const { return *at(rank).session; }
  /// Replaces the session with a rank and returns the former one, which may be null.
  std::unique_ptr<Session> exchange_session(int rank, std::unique_ptr<Session> session);
  template <class Each>
  void for_each_session(Each each) const {
    for (const Peer& peer : peers_)
      if (peer.session) each(*peer.session);
  }
  /// The medium of all links together: "tcp", "memory", "mixed", or "none" where there is no session.
  std::string_view media() const;
  /// The cipher of all links together that have one: "aes256gcm", "chacha20", "mixed", or "none" where none has.
  std::string_view ciphers() const;

  void set_path(int rank, const wire::Path& path, bool dialled);
  /// There has to be a session with the rank.
  LinkReport link_with(int rank) const;

  /// The rank's name for people; empty where none is known.
  const std::string& name(int rank) const { return at(rank).name; }
  void set_name(int rank, std::string name) { at(rank).name = std::move(name); }
  /// Where processes knock that are to join the group of this rank; its port is 0 where that is not known, and of a guest.
  const Address& door(int rank) const { return at(rank).door; }
  void set_door(int rank, Address door) { at(rank).door = std::move(door); }
  /// The rank with its name: "rank 3 (Chromium on Linux, 10.0.0.9:4711)".
  std::string text_of(int rank) const;
  /// Returns the status with the name of the rank that it blames in its text.
  Status with_name(const Status& status) const;

  /// Closes the link with a rank that cannot be reached any more, because its relay has left the world.
  void cut_off(int rank);
  bool has_left(int rank) const;

 private:
  struct Peer {
    std::unique_ptr<Session> session;  // null for this rank
    wire::Path path{};
    bool dialled = false;
    std::string name{};
    Address door{};
    bool cut_off = false;
  };
  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& at(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  std::vector<Peer> peers_;  // by rank
};

}  // namespace ringlet
