#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/alive_guard.hpp"
#include "core/engine/world.hpp"
#include "native/status/membership.hpp"
#include "transport/uv/local_server.hpp"

namespace ringlet::native {

/// Tells other programs of this user what the ranks of a world do (`ringlet status`), at a socket in the user's own directory
/// (status_directory.hpp). The answer is one JSON object; its fields are in status_report.hpp. Belongs to the loop's thread, and is
/// destroyed before the loop and the world.
class StatusSocket {
 public:
  /// The request that a program has to send.
  static constexpr const char* kRequest = "status";

  /// `world_id` is the same on all ranks. `membership`: of an elastic world; null otherwise.
  StatusSocket(UvLoop& loop, ringlet::World& world, std::uint64_t world_id, std::shared_ptr<const MembershipLog> membership)
      : loop_(loop), world_(world), world_id_(world_id), membership_(std::move(membership)) {}
  StatusSocket(const StatusSocket&) = delete;
  StatusSocket& operator=(const StatusSocket&) = delete;

  /// Returns `io_error` where the directory or the socket cannot be made; the state cannot be asked for then.
  Status open();

 private:
  void on_request(const std::string& request, LocalServer::Answer answer);
  void answer_all(const Survey& survey);

  UvLoop& loop_;
  ringlet::World& world_;
  const std::uint64_t world_id_;
  const std::shared_ptr<const MembershipLog> membership_;
  std::unique_ptr<LocalServer> server_;
  std::vector<LocalServer::Answer> waiting_;  // for the survey that is under way
  AliveGuard guard_;
};

}  // namespace ringlet::native
