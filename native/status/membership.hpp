#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/time.hpp"
#include "transport/unique_fd.hpp"

namespace ringlet::native {

/// How a group came to have other ranks than before.
struct GroupChange {
  std::vector<int> lost{};  // by their numbers before
  std::string cause{};      // why the first of them is lost
  int joined = 0;           // how many of the ranks are new
  Duration pause{};         // after a loss: until those who are left had agreed; after new ranks came: the switch to the new world
};

/// The group that a rank of an elastic world is in now.
struct GroupState {
  std::uint32_t epoch = 0;
  std::uint64_t lineage = 0;
  int rank = 0, size = 0;
  std::string door{};
  std::optional<GroupChange> change{};  // the last one
  std::uint64_t lost = 0, joined = 0;   // ranks, since this one is here
};

/// Knows how the group of this rank changes, for `ringlet status` and for the process that started the rank: to that one it says each new
/// state of an elastic group, and which rank's loss has ended another, over an inherited stream socket (RINGLET_MEMBERSHIP_FD), as a line
/// of JSON (status_report.hpp). It outlives the worlds of its rank, which hand it on. Any thread.
class MembershipLog {
 public:
  /// Without a socket only the state is kept.
  explicit MembershipLog(UniqueFd socket) : socket_(std::move(socket)) {}

  /// The rank has come into a group: `state`, without the sums. Its change is unset where the rank was in none before. Does not block:
  /// where the reader does not take a line, the socket is closed and nothing more is sent.
  void enter(GroupState state);
  /// The loss of that rank has ended the group. Tells it as enter() does.
  void end_by_loss(int rank);
  GroupState state() const;

 private:
  void tell(const std::string& line);

  mutable std::mutex mutex_;
  UniqueFd socket_;
  GroupState state_;
};

}  // namespace ringlet::native
