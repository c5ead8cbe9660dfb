#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <ringlet/delay.hpp>
#include <ringlet/dtype.hpp>
#include <ringlet/parts_policy.hpp>
#include <string>

namespace ringlet {

/// What ranks of an elastic group do that cannot know whether the others go on without them, because the network between them is cut.
enum class OnSplit : std::uint8_t {
  wait = 0,  ///< wait until a majority is there, or the others are known to have ended
  fork = 1,  ///< after ten seconds each part goes on, with a lineage of its own, until it hears of one with a better claim
};

/// Options for forming or joining a group. Options that are unset come from the environment variable that is named with each. Of the ways
/// to meet (`coordinator`, `hostfile`, `join`) one that is set here leaves the variables of the others unread.
struct InitOptions {
  /// If nothing is configured, strict throws an error that says what is missing; otherwise init() makes a group of one. What torchrun, Open
  /// MPI, MPICH, Slurm or Kubernetes have set configures it where no rank is given here or by Ringlet's variables (RINGLET_SCHEDULER).
  bool strict = false;
  /// The backend: "any" or "tcp".
  std::string backend = "any";
  std::optional<int> rank{};                 ///< RINGLET_RANK, then MLX_RANK
  std::optional<int> world_size{};           ///< RINGLET_WORLD_SIZE
  std::optional<std::string> coordinator{};  ///< RINGLET_COORDINATOR: host:port or [v6]:port, where rank 0 listens
  /// A socket that listens already, of rank 0 and with `coordinator`: the others meet it there. init() uses a duplicate, and closes neither
  /// this one nor what others have of it. Default: RINGLET_COORDINATOR_FD where the coordinator is that of the environment, else a new one.
  std::optional<int> listen_fd{};
  std::optional<std::string> hostfile{};  ///< RINGLET_HOSTFILE, then MLX_HOSTFILE: a JSON list of each rank's list of addresses
  /// RINGLET_LISTEN: where this rank listens, host or host:port. Default: all usable interfaces, or loopback if the coordinator is there.
  std::optional<std::string> listen{};
  /// RINGLET_ADVERTISE: the addresses that other ranks are told, host or host:port, separated by commas, if they are not this machine's own
  /// (NAT, containers).
  std::optional<std::string> advertise{};
  /// RINGLET_INTERFACES: "eth0,eth1" for these alone, "!wlan0" for all usable ones but this. Default: all but bridges of containers etc.
  std::optional<std::string> interfaces{};
  /// RINGLET_GUESTS, default 0: how many ranks are browsers, which join through rank 0. They have the highest ranks.
  std::optional<int> guests{};
  /// RINGLET_TOKEN, then the file RINGLET_TOKEN_FILE: a secret of at least 16 characters that each rank must prove to know. `ringlet token`
  /// makes one. Without it ranks listen on this machine only.
  std::optional<std::string> token{};
  /// RINGLET_ENCRYPT (on, off; default: on if there is a token): whether traffic between ranks is encrypted. The same on all ranks. Without
  /// a token it protects against eavesdroppers, but not against a man in the middle.
  std::optional<bool> encrypt{};
  /// RINGLET_PEER_MEMORY (on, off): whether ranks of one machine may share memory and read each other's, if the system permits it. It is
  /// faster.
  std::optional<bool> peer_memory{};
  /// RINGLET_STATUS (on, off): whether `ringlet status` of the same user may ask this rank what all ranks do. It asks at a socket in a
  /// directory that only the user may enter.
  std::optional<bool> status{};
  /// RINGLET_TRACE: the file of a trace of what this rank does when (docs/trace.md). A rank among several writes its part beside it, with
  /// its rank before the extension. A launcher that was given --trace decides instead.
  std::optional<std::string> trace{};
  /// RINGLET_CONNECT_TIMEOUT_MS, default 60 s, with guests 10 min: the time in which all ranks must have met.
  std::optional<std::chrono::milliseconds> connect_timeout{};
  std::optional<std::chrono::milliseconds> operation_timeout{};  ///< RINGLET_TIMEOUT_MS, default 10 min: of an operation, from its start
  /// RINGLET_WARN_MS, default 10 s, 0 for never: the time after which an operation that is still running is warned of, with the ranks that
  /// it waits for. The warning is repeated after twice the time, and so on.
  std::optional<std::chrono::milliseconds> warn_after{};
  /// RINGLET_ORDER (any, rank; default: any): the order in which collectives add. In that of the ranks a sum has the same bits however
  /// gradients are divided into buckets or shards. The same on all ranks; a process that joins a running group gets the group's.
  std::optional<ReduceOrder> order{};
  /// RINGLET_PARTS (even, passive, measured; default: passive): whether the parts that ranks own in an all-reduce follow the speed of their
  /// links. The same on all ranks; a process that joins a running group gets the group's.
  std::optional<PartsPolicy> parts{};
  /// RINGLET_ELASTIC (on, off; default: off): whether the group survives the loss of ranks (Group::reform()). The same on all ranks. Guests
  /// then come and go (Group::admit()); with `guests` init() waits until so many have come first.
  std::optional<bool> elastic{};
  std::optional<OnSplit> on_split{};  ///< RINGLET_ON_SPLIT (wait, fork; default: fork)
  /// RINGLET_JOIN: host:port,... of doors (Group::door()) of an elastic group that runs. init() knocks at one after the other until the
  /// group admits this process (Group::admit()), at most for the connect timeout. The group says which rank this process gets, so the
  /// variables that say who is who are not used.
  std::optional<std::string> join{};
  /// RINGLET_DOOR: where processes knock that want to join, host or host:port, of an elastic group. Default: where this rank listens for
  /// the others, or for a group of one where it may listen, at a port of its own.
  std::optional<std::string> door{};
  /// The function that gets the warnings. If unset, they are printed to stderr.
  DelayHandler on_delay{};
  /// Is asked by a thread that waits in init() or in a call of the group, or of a group that comes from it, at least ten times a second,
  /// whether to stop waiting: for languages in which signals are to end a call. It is asked on that thread; it may not throw, nor call this
  /// library. Once it returns true, the call throws `Cancelled`, and so do all others of the world, on all ranks: after that there is
  /// reform(), if the world is elastic. In reform() itself it ends the wait alone. Destructors do not ask.
  std::function<bool()> interrupted{};
  /// RINGLET_HEARTBEAT_TIMEOUT_MS, default 10 s, 4 s if elastic: silence after which a peer is lost
  std::optional<std::chrono::milliseconds> heartbeat_timeout{};
};

}  // namespace ringlet
