#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/delay.hpp>
#include <ringlet/error.hpp>
#include <ringlet/stream.hpp>
#include <ringlet/tensor.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

namespace native {
class SharedGroup;
struct WorkState;
}  // namespace native

/// What every operation can be told.
struct CallOptions {
  Stream stream{};  ///< where the operation waits for its turn
  /// How long the operation may take from the moment it starts; unset: the group's `operation_timeout`.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// Handle of an operation that was started. Movable. The buffers given to the operation are borrowed until it has ended;
/// the destructor waits for that (the operation's deadline bounds it). All members may be called from any one thread at a time.
class [[nodiscard]] Work {
 public:
  /// Nothing was started: done, in success.
  Work() = default;
  /// Ringlet's own: Group's calls make works.
  Work(std::shared_ptr<native::SharedGroup> group, std::shared_ptr<native::WorkState> state)
      : group_(std::move(group)), state_(std::move(state)) {}
  /// What is moved from is done. Assignment first waits for the operation that it takes the place of.
  ///@{
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other) noexcept;
  ///@}
  /// Waits for the end; throws nothing.
  ~Work();

  /// Waits for the end; throws the operation's error.
  void wait();
  /// Waits at most `timeout`; false if the operation still runs then. Does not cancel it. Throws the operation's error.
  bool wait_for(std::chrono::milliseconds timeout);
  /// Whether it has ended, in success or failure. Does not block.
  bool done() const;
  /// Waits for the end; returns the operation's status and throws nothing.
  Status status();

 private:
  std::shared_ptr<native::SharedGroup> group_;
  std::shared_ptr<native::WorkState> state_;
};

/// A rank's link with another one.
struct LinkInfo {
  int peer = 0;                       ///< its rank in the group
  std::string_view medium;            ///< "tcp", "memory"
  std::string own_address;            ///< "10.0.0.1:40123", as this rank sees it
  std::string peer_address;           ///< the other end's
  std::string own_interface;          ///< its name, as far as it is known
  std::string peer_interface;         ///< the other end's
  std::string_view kind = "unknown";  ///< "wired", "wireless" where one of the two interfaces is, "unknown"
  /// How many addresses of one of them the other has tried; 0: there was nothing to choose.
  int tried = 0;
  std::chrono::nanoseconds round_trip{};  ///< as measured to choose; 0: not measured
  double bytes_per_second = 0;            ///< the same
};

/// A set of ranks that call collectives together: the world that init() formed, or a part of it that split() made. A value: copies mean
/// the same group, and works that are pending keep it alive. All calls may come from any thread; every rank must start the operations of
/// one stream in the same order. Operations of different groups overlap; they share the world's links.
///
/// Blocking calls throw `ringlet::Error`. The first failure (a lost rank, a mismatch, a passed deadline) ends the world with all its
/// groups: every pending operation ends with that error, and so does every later call. The contents of an output buffer after an error are
/// unspecified. Ranks in calls are this group's; `Status::rank()` is always the rank in the world, and the text says both.
///
/// When the last value of a group goes, this rank leaves the group. The other members notice only if they still need it: then they get
/// `PeerLost`. The world lives until the last of its groups has gone, whichever that is.
class Group {
 public:
  /// A group of this process alone.
  Group();
  /// Ringlet's own: init() and split() make groups.
  explicit Group(std::shared_ptr<native::SharedGroup> shared) : shared_(std::move(shared)) {}
  /// Ringlet's own: what other parts of the library use of a group.
  native::SharedGroup& shared() const noexcept { return *shared_; }

  /// This process' number in the group, from 0.
  int rank() const noexcept;
  /// How many ranks the group has.
  int size() const noexcept;
  /// How many of them are guests: browsers, which joined through rank 0 of the world.
  int guests() const noexcept;

  /// Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for that
  /// rank. A negative colour: this rank is in no group, and gets nullopt. Every rank of this group calls it, as a collective of
  /// `options.stream`; the timeout holds for each of its two rounds. A rank may be in 65,536 groups at a time, each counting until all its
  /// ranks have let go of it: otherwise `InvalidArgument` on all ranks, and this group lives on.
  std::optional<Group> split(int color, int key = -1, const CallOptions& options = {}) const;

  /// Reduces `values` over all ranks, in place; every rank ends with the same bits. Same dtype and element count on all ranks.
  ///@{
  void all_sum(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::sum, values, values, options); }
  void all_prod(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::prod, values, values, options); }
  void all_max(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::max, values, values, options); }
  void all_min(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::min, values, values, options); }
  ///@}
  /// The mean over all ranks, in place: the sum is divided once, by the rank that owns the part; on the ring, f16 is divided before it is
  /// added, so that no size of buffer overflows. Floating dtypes only.
  void all_mean(TensorView values, const CallOptions& options = {}) { all_mean(values, values, options); }

  /// Out of place: `output` has the dtype and element count of `input`, and is `input` itself or does not overlap it.
  ///@{
  void all_reduce(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_reduce_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}
  /// The mean out of place, as all_reduce.
  ///@{
  void all_mean(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_mean_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}

  /// Rank r gets the r-th part of axis 0 of the reduced input. Where the extent of axis 0 does not divide by the group's size, the first
  /// ranks get one row more. `output` must not overlap `input`.
  ///@{
  void reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work reduce_scatter_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  void sum_scatter(ConstTensorView input, TensorView output, const CallOptions& options = {}) {
    reduce_scatter(ReduceOp::sum, input, output, options);
  }
  ///@}

  /// Concatenates every rank's `input` along axis 0, in rank order. Same shape on all ranks; `output` has size() times the elements.
  ///@{
  void all_gather(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_gather_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}

  /// The same into a new tensor: rank r's part of axis 0; every rank's `input` one behind the other, where a scalar becomes (size(),).
  ///@{
  [[nodiscard]] Tensor sum_scatter(ConstTensorView input, const CallOptions& options = {});
  [[nodiscard]] Tensor all_gather(ConstTensorView input, const CallOptions& options = {});
  ///@}

  /// Parts of given sizes: `counts[r]` is the extent of axis 0, the rows, of rank r's part; 0 is allowed. The same counts on every rank.
  /// They are read during the call only. Rank r gets rows counts[0]+...+counts[r-1] and following of the reduced input.
  ///@{
  void reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                        const CallOptions& options = {});
  [[nodiscard]] Work reduce_scatter_v_async(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                            const CallOptions& options = {});
  ///@}
  /// `output` is the concatenation along axis 0 of every rank's `input` of counts[r] rows. In place: `input` is this rank's part of it.
  ///@{
  void all_gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options = {});
  [[nodiscard]] Work all_gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                        const CallOptions& options = {});
  ///@}

  /// Reduces `input` over all ranks into `output` of rank `root`; other ranks' `output` is not looked at. In place on the root: `output`
  /// is `input`.
  ///@{
  void reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work reduce_async(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  ///@}

  /// Rank `root` gets every rank's `input`, concatenated along axis 0; other ranks' `output` is not looked at. Same shape on all ranks, or
  /// counts[r] rows of rank r. In place on the root: `input` is its own part of `output`.
  ///@{
  void gather(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work gather_async(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  void gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options = {});
  [[nodiscard]] Work gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                                    const CallOptions& options = {});
  ///@}

  /// Rank r gets the r-th part along axis 0 of `input` of rank `root`; other ranks' `input` is not looked at. The rows must divide by the
  /// group's size, or rank r gets counts[r] of them. In place on the root: `output` is its own part of `input`.
  ///@{
  void scatter(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work scatter_async(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  void scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options = {});
  [[nodiscard]] Work scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                                     const CallOptions& options = {});
  ///@}

  /// The r-th part along axis 0 of this rank's `input` goes to rank r; the r-th part of `output` comes from rank r. The rows must divide by
  /// the group's size. `output` must not overlap `input`.
  ///@{
  void all_to_all(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_to_all_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}
  /// send_counts[r] rows go to rank r, receive_counts[r] come from it. What one rank sends the other must expect: else `MismatchError`.
  ///@{
  void all_to_all_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                    std::span<const std::int64_t> receive_counts, const CallOptions& options = {});
  [[nodiscard]] Work all_to_all_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> send_counts,
                                        std::span<const std::int64_t> receive_counts, const CallOptions& options = {});
  ///@}

  /// Copies `values` of rank `root` to every rank.
  ///@{
  void broadcast(TensorView values, int root, const CallOptions& options = {});
  [[nodiscard]] Work broadcast_async(TensorView values, int root, const CallOptions& options = {});
  ///@}

  /// Returns once every rank has called it.
  ///@{
  void barrier(const CallOptions& options = {});
  [[nodiscard]] Work barrier_async(const CallOptions& options = {});
  ///@}

  /// Point to point, matched in order per (source, stream). A send ends once the receiver has matched it and its bytes have left; so two
  /// ranks that both send first use the async form. Another dtype or shape on the receiving side is a `MismatchError` on both; the group
  /// lives on.
  ///@{
  void send(ConstTensorView values, int destination, const CallOptions& options = {});
  [[nodiscard]] Work send_async(ConstTensorView values, int destination, const CallOptions& options = {});
  void recv(TensorView values, int source, const CallOptions& options = {});
  [[nodiscard]] Work recv_async(TensorView values, int source, const CallOptions& options = {});
  ///@}
  /// Receives a new tensor of the dtype and shape of `like`, whose elements are not looked at.
  [[nodiscard]] Tensor recv_like(ConstTensorView like, int source, const CallOptions& options = {});

  /// How a collective ("all_reduce", ...; a `_v` form goes as its even form) moves a buffer of this many bytes (nccl-tests' count: of
  /// gathers the output, of scatters the input): "exchange", "doubling", "direct", "ring" or "leaves". The same on every rank. Throws
  /// `InvalidArgument` for a name that is none.
  std::string_view algorithm(std::string_view operation, std::size_t bytes) const;
  /// A line for people on how the group is laid out: "2 native ranks, 2 browsers: large all-reduces by leaves (estimated 38 ms for 64 MiB;
  /// ring 61 ms)". The same on every rank.
  std::string describe_placement() const;

  /// How this rank's bytes reach the others: "tcp", "memory" (ranks of one machine read each other's), "mixed", or "none" in a group of
  /// one.
  std::string_view links() const;
  /// By rank, without this one. Throws the world's error where that has failed.
  std::vector<LinkInfo> link_info() const;

 private:
  std::shared_ptr<native::SharedGroup> shared_;
};

/// How to form or join a group. What is unset comes from the environment.
struct InitOptions {
  /// Strict: an error that says what is missing, instead of a group of one, where nothing is configured.
  bool strict = false;
  /// "any" or "tcp".
  std::string backend = "any";
  std::optional<int> rank{};                 ///< RINGLET_RANK, then MLX_RANK
  std::optional<int> world_size{};           ///< RINGLET_WORLD_SIZE
  std::optional<std::string> coordinator{};  ///< RINGLET_COORDINATOR: host:port or [v6]:port, where rank 0 listens
  std::optional<std::string> hostfile{};     ///< RINGLET_HOSTFILE, then MLX_HOSTFILE: a JSON list of each rank's list of addresses
  /// RINGLET_LISTEN: where this rank listens, host or host:port; unset: at all usable interfaces, on the loopback where the coordinator is.
  std::optional<std::string> listen{};
  /// RINGLET_ADVERTISE: the addresses that the others are told, host or host:port, separated by commas, where they are not this machine's
  /// own (NAT, containers).
  std::optional<std::string> advertise{};
  /// RINGLET_INTERFACES: "eth0,eth1": only these; "!wlan0": all usable ones but these. Unset: all but bridges of containers and the like.
  std::optional<std::string> interfaces{};
  /// RINGLET_GUESTS, 0: how many of the ranks are browsers, which join through rank 0. They are the last ones.
  std::optional<int> guests{};
  /// RINGLET_TOKEN, then the file RINGLET_TOKEN_FILE: what all ranks prove to know; at least 16 characters. `ringlet token` makes one.
  /// Without it ranks listen on this machine only.
  std::optional<std::string> token{};
  /// RINGLET_ENCRYPT (on, off; unset: on where there is a token): what the ranks send each other is encrypted. The same on all ranks.
  /// Without a token it keeps out who merely listens, and not who stands between two ranks.
  std::optional<bool> encrypt{};
  /// RINGLET_PEER_MEMORY (on, off): ranks of one machine may read each other's memory, where the system lets them, which is faster.
  std::optional<bool> peer_memory{};
  /// RINGLET_STATUS (on, off): `ringlet status` of the same user may ask this rank, at a socket in a directory of the user's own, what all
  /// ranks do.
  std::optional<bool> status{};
  /// RINGLET_CONNECT_TIMEOUT_MS, 60 s, with guests 10 min: all ranks must have met by then
  std::optional<std::chrono::milliseconds> connect_timeout{};
  std::optional<std::chrono::milliseconds> operation_timeout{};  ///< RINGLET_TIMEOUT_MS, 10 min: of an operation, from its start
  /// RINGLET_WARN_MS, 10 s, 0: never. After how long an operation that still runs is worth a warning, which names the ranks that it waits
  /// for; again after twice the time, and so on.
  std::optional<std::chrono::milliseconds> warn_after{};
  /// Gets the warnings; unset: they are lines on stderr.
  DelayHandler on_delay{};
  std::optional<std::chrono::milliseconds> heartbeat_timeout{};  ///< RINGLET_HEARTBEAT_TIMEOUT_MS, 10 s: silence after which a peer is lost
};

/// Whether the named backend can be used here. Unknown names are false.
bool is_available(std::string_view backend = "any") noexcept;

/// Joins or forms the group. With nothing configured: a group of one, or, if strict, `InvalidArgument`. A half-configured environment
/// is always `InvalidArgument`, naming what is missing. Throws `Timeout`, `PeerLost` or `ProtocolError` if the ranks do not meet.
Group init(const InitOptions& options = {});

}  // namespace ringlet
