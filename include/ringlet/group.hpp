#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ringlet/error.hpp>
#include <ringlet/init_options.hpp>
#include <ringlet/stream.hpp>
#include <ringlet/tensor.hpp>
#include <ringlet/wire.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet {

namespace native {
class SharedGroup;
struct WorkState;
}  // namespace native

/// Options that every operation takes.
struct CallOptions {
  Stream stream{};  ///< the stream in which the operation waits for its turn
  /// How long the operation may take from the moment it starts. If unset, it is the group's `operation_timeout`.
  std::optional<std::chrono::milliseconds> timeout{};
  /// Of a call that returns a work: whether the caller waits for that right after, which then costs no switch of threads. The operation
  /// does not depend on it: where nobody waits it goes on a few milliseconds later.
  bool waits_at_once = false;
};

/// The handle of an operation that was started. Movable. The buffers given to the operation are borrowed until it has ended; the destructor
/// waits for that (the operation's deadline bounds the wait). All members may be called from any thread, by one thread at a time; on_done()
/// also while another thread waits.
class [[nodiscard]] Work {
 public:
  /// A work that stands for no operation: it is done, and its status is ok.
  Work() = default;
  /// For Ringlet's own use: programs get works from Group's calls.
  Work(std::shared_ptr<native::SharedGroup> group, std::shared_ptr<native::WorkState> state)
      : group_(std::move(group)), state_(std::move(state)) {}
  /// A work that was moved from is done. Assignment first waits for the operation that it replaces.
  ///@{
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other) noexcept;
  ///@}
  /// Waits until the operation has ended; throws nothing.
  ~Work();

  /// Waits until the operation has ended; throws its error.
  void wait();
  /// Waits at most `timeout` and returns false if the operation is then still running; it is not cancelled. Throws the operation's error.
  bool wait_for(std::chrono::milliseconds timeout);
  /// Whether the operation has ended, in success or failure. Does not block.
  bool done() const;
  /// Waits until the operation has ended and returns its status; throws nothing.
  Status status();
  /// Calls `function` once, with the operation's status, when the operation has ended, or soon if it has already; also if this work is gone
  /// by then. It runs on a thread that this process has for such calls alone, one after the other, and may use this library there, but may
  /// not throw; while it blocks, others wait. May be called several times; the functions are called in that order.
  void on_done(std::function<void(const Status&)> function);

 private:
  std::shared_ptr<native::SharedGroup> group_;
  std::shared_ptr<native::WorkState> state_;
};

/// Describes this rank's link to another rank.
struct LinkInfo {
  int peer = 0;                       ///< the other rank's number in the group
  std::string_view medium;            ///< "tcp", "memory"
  std::string_view cipher;            ///< "aes256gcm", "chacha20"; empty where its bytes are not encrypted, or move through memory
  std::string own_address;            ///< this end's, as this rank sees it: "10.0.0.1:40123"
  std::string peer_address;           ///< the other end's
  std::string own_interface;          ///< the name of this end's network interface, if known
  std::string peer_interface;         ///< the other end's
  std::string_view kind = "unknown";  ///< "wireless" if one of the two interfaces is, else "wired" or "unknown"
  /// How many addresses one of the two ranks tried to reach the other; 0 if there was no choice.
  int tried = 0;
  std::chrono::nanoseconds round_trip{};  ///< as measured for the choice; 0 if it was not measured
  double bytes_per_second = 0;            ///< as measured for the choice; 0 if it was not measured
};

struct Reformed;

/// A set of ranks that call collectives together: the world that init() formed, or a part of it that split() made. Copies stand for the
/// same group, and pending works keep it alive. All calls may come from any thread; every rank must start the operations of one stream in
/// the same order. Operations of different groups overlap; they share the world's links.
///
/// Blocking calls throw `ringlet::Error`. The first failure (a lost rank, a mismatch, a passed deadline) ends the world with all its
/// groups: every pending operation and every later call fails with that error. After an error the contents of an output buffer are
/// unspecified. Calls take ranks of this group; `Status::rank()` is always the rank in the world, and the text says both.
///
/// When the last copy of a group is destroyed, this rank leaves the group. Other members that still need it then get `PeerLost`; the rest
/// do not notice. The world lives until the last of its groups is gone.
class Group {
 public:
  /// Makes a group of this process alone.
  Group();
  /// For Ringlet's own use: programs get groups from init() and split().
  explicit Group(std::shared_ptr<native::SharedGroup> shared) : shared_(std::move(shared)) {}
  /// For Ringlet's own use: the internals that other parts of the library need.
  native::SharedGroup& shared() const noexcept { return *shared_; }

  /// This process' rank in the group, from 0.
  int rank() const noexcept;
  /// The number of ranks in the group.
  int size() const noexcept;
  /// The number of guests in the group: browsers, which joined through rank 0 of the world.
  int guests() const noexcept;

  /// Forms a group of the ranks that give the same `color`, ordered by `key`, then by rank in this group; a negative key stands for the
  /// caller's rank. A rank with a negative colour joins no group and gets nullopt. Every rank of this group calls it, as a collective of
  /// `options.stream`; the timeout holds for each of its two rounds. A rank may be in 65,536 groups at a time, and a group counts until all
  /// its ranks have left it. Beyond that all ranks get `InvalidArgument`, and this group stays usable.
  std::optional<Group> split(int color, int key = -1, const CallOptions& options = {}) const;

  /// Forms a group of these ranks of this group, in this order. They alone call it, all with the same ranks and tag; the others take no
  /// part and need not know. Calls with the same tag that have members in common come in the same order on all of them; those with
  /// different tags, 0 to 1023, may overlap. The timeout holds for each of its two rounds. Members whose ranks differ get `MismatchError`,
  /// and this group stays usable.
  Group create(std::span<const int> ranks, int tag = 0, const CallOptions& options = {}) const;

  /// Reduces `values` over all ranks, in place; every rank gets the same bits. Dtype and element count are the same on all ranks.
  ///@{
  void all_sum(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::sum, values, values, options); }
  void all_prod(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::prod, values, values, options); }
  void all_max(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::max, values, values, options); }
  void all_min(TensorView values, const CallOptions& options = {}) { all_reduce(ReduceOp::min, values, values, options); }
  ///@}
  /// Computes the mean over all ranks, in place. The rank that owns a part divides its sum once; on the ring, f16 is divided before it is
  /// added, so that the sum does not overflow, whatever the buffer's size. Floating dtypes only.
  void all_mean(TensorView values, const CallOptions& options = {}) { all_mean(values, values, options); }

  /// Reduces out of place: `output` has the dtype and element count of `input`, and is `input` itself or does not overlap it. As all
  /// reductions, it throws `InvalidArgument` for a bitwise operation on a floating dtype.
  ///@{
  void all_reduce(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_reduce_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}
  /// Computes the mean out of place, with the same rules for `output` as all_reduce.
  ///@{
  void all_mean(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_mean_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}

  /// Rank r gets the r-th part of axis 0 of the reduced input. If the extent of axis 0 is no multiple of the group's size, the first ranks
  /// get one row more. `output` must not overlap `input`.
  ///@{
  void reduce_scatter(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work reduce_scatter_async(ReduceOp op, ConstTensorView input, TensorView output, const CallOptions& options = {});
  void sum_scatter(ConstTensorView input, TensorView output, const CallOptions& options = {}) {
    reduce_scatter(ReduceOp::sum, input, output, options);
  }
  ///@}
  /// Like reduce_scatter, for the mean, which the rank that gets a part divides once. Floating dtypes only.
  ///@{
  void mean_scatter(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work mean_scatter_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}

  /// Concatenates every rank's `input` along axis 0, in rank order. All have equally many elements; `output` has size() times the elements.
  ///@{
  void all_gather(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_gather_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}

  /// sum_scatter and all_gather into a new tensor. all_gather makes one row of each scalar, so that the result has the shape (size(),).
  ///@{
  [[nodiscard]] Tensor sum_scatter(ConstTensorView input, const CallOptions& options = {});
  [[nodiscard]] Tensor all_gather(ConstTensorView input, const CallOptions& options = {});
  ///@}

  /// Like reduce_scatter, but rank r's part has counts[r] rows (the extent of axis 0), which may be 0. It begins at row
  /// counts[0]+...+counts[r-1] of the reduced input. Counts are the same on every rank and are read during the call only.
  ///@{
  void reduce_scatter_v(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                        const CallOptions& options = {});
  [[nodiscard]] Work reduce_scatter_v_async(ReduceOp op, ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                            const CallOptions& options = {});
  ///@}
  /// The same for the mean.
  ///@{
  void mean_scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options = {});
  [[nodiscard]] Work mean_scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                          const CallOptions& options = {});
  ///@}
  /// Concatenates every rank's `input`, of counts[r] rows, along axis 0. In place, `input` is this rank's own part of `output`.
  ///@{
  void all_gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, const CallOptions& options = {});
  [[nodiscard]] Work all_gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts,
                                        const CallOptions& options = {});
  ///@}

  /// Reduces `input` over all ranks into `output` of rank `root`; the `output` of other ranks is ignored. In place on the root, `output` is
  /// `input`.
  ///@{
  void reduce(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work reduce_async(ReduceOp op, ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  ///@}
  /// The same for the mean. Floating dtypes only.
  ///@{
  void reduce_mean(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work reduce_mean_async(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  ///@}

  /// Rank `root` gets every rank's `input`, concatenated along axis 0; the `output` of other ranks is ignored. The shape is the same on all
  /// ranks, or rank r has counts[r] rows. In place on the root, `input` is its own part of `output`.
  ///@{
  void gather(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work gather_async(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  void gather_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options = {});
  [[nodiscard]] Work gather_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                                    const CallOptions& options = {});
  ///@}

  /// Rank r gets the r-th part of rank `root`'s `input` along axis 0; the `input` of other ranks is ignored. The rows must divide evenly by
  /// the group's size, or rank r gets counts[r] of them. In place on the root, `output` is its own part of `input`.
  ///@{
  void scatter(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  [[nodiscard]] Work scatter_async(ConstTensorView input, TensorView output, int root, const CallOptions& options = {});
  void scatter_v(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root, const CallOptions& options = {});
  [[nodiscard]] Work scatter_v_async(ConstTensorView input, TensorView output, std::span<const std::int64_t> counts, int root,
                                     const CallOptions& options = {});
  ///@}

  /// Sends the r-th part of this rank's `input` along axis 0 to rank r, and receives the r-th part of `output` from rank r. The rows must
  /// divide evenly by the group's size. `output` must not overlap `input`.
  ///@{
  void all_to_all(ConstTensorView input, TensorView output, const CallOptions& options = {});
  [[nodiscard]] Work all_to_all_async(ConstTensorView input, TensorView output, const CallOptions& options = {});
  ///@}
  /// Sends send_counts[r] rows to rank r and receives receive_counts[r] from it. `MismatchError` if the counts of two ranks differ.
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

  /// Sends and receives from rank to rank, matched in order per (source, stream). A send ends once the receiver has matched it and its
  /// bytes have left, so two ranks that both send first must use the asynchronous form. If dtype or shape differ, both get `MismatchError`,
  /// and the group stays usable.
  ///@{
  void send(ConstTensorView values, int destination, const CallOptions& options = {});
  [[nodiscard]] Work send_async(ConstTensorView values, int destination, const CallOptions& options = {});
  void recv(TensorView values, int source, const CallOptions& options = {});
  [[nodiscard]] Work recv_async(TensorView values, int source, const CallOptions& options = {});
  ///@}
  /// Receives from whichever rank has sent a message of the stream that no recv() from that rank waits for, and returns that rank; where
  /// several have, they take turns. A recv() from a rank goes before, also if it was called later. Where the dtype or shape differs from
  /// that message, this call and its sender get `MismatchError`. `source` is written before the work is done, and borrowed as `values` is.
  ///@{
  int recv_any(TensorView values, const CallOptions& options = {});
  [[nodiscard]] Work recv_any_async(TensorView values, int& source, const CallOptions& options = {});
  ///@}
  /// Receives into a new tensor of the dtype and shape of `like`, whose elements are ignored.
  [[nodiscard]] Tensor recv_like(ConstTensorView like, int source, const CallOptions& options = {});

  /// Names the algorithm by which a collective ("all_reduce", ...; a `_v` form counts as its even form) moves a buffer of this many bytes
  /// of f32, or sums it (counted as in nccl-tests: of gathers the output, of scatters the input): "exchange", "doubling", "direct", "ring",
  /// "hub" or "machines". The same on every rank, but while ranks trade parts (`RINGLET_PARTS=measured`): it is what holds for calls from
  /// now on, and ranks learn of a change a moment apart. With a `wire` it is the answer for averages of gradients that cross the network in
  /// it.
  /// Throws `InvalidArgument` for an unknown collective.
  std::string_view algorithm(std::string_view operation, std::size_t bytes, const std::optional<Wire>& wire = std::nullopt) const;
  /// Describes the group's layout in a line for people, the same on every rank as algorithm() is: "2 native ranks, 2 browsers: large
  /// all-reduces by hub (estimated 38 ms for 64 MiB; ring 61 ms)". It names the ranks that own smaller parts now.
  std::string describe_placement() const;

  /// How this rank's bytes reach the others: "tcp", "memory" (ranks of one machine share memory), "mixed", or "none" in a group
  /// of one.
  std::string_view links() const;
  /// This rank's links to all others, by rank. Throws the world's error if the world has failed.
  std::vector<LinkInfo> link_info() const;

  // Elastic groups (InitOptions::elastic) survive the loss of ranks. docs/elastic.md says what is promised.

  /// Whether this group's world survives the loss of ranks.
  bool elastic() const noexcept;
  /// How often the world was formed anew before this group was made: 0 at first.
  std::uint32_t epoch() const noexcept;
  /// Waits until the ranks that are left have agreed on who goes on, and returns their world. To be called, by all of them, once a call has
  /// thrown `PeerLost`, or after revoke(). Groups that split() made are to be made anew from the new world; buffers of the failed calls
  /// hold anything. `CallOptions::timeout` bounds the wait for their agreement. Throws `InvalidArgument` if the world is not elastic or has
  /// not failed, `PeerLost` if the others have gone on without this rank, `Timeout` if nobody could decide in time.
  [[nodiscard]] Reformed reform(const CallOptions& options = {}) const;
  /// Returns whether `mine` is true on all ranks: the same answer on all that are left, even if ranks are lost during the call or were
  /// before; the next call then throws `PeerLost`. A rank that is left and calls reform() instead counts as false. Each rank calls it
  /// equally often, one thread at a time. Throws like reform() if the world has failed.
  bool agree(bool mine, const CallOptions& options = {}) const;
  /// Ends the epoch on all ranks: all calls throw `Cancelled`, and reform() follows.
  void revoke() const;
  /// Leaves the world, also one that is not elastic, without waiting for anybody: all calls of this group, of its copies and of what
  /// split() made throw `Cancelled` from then on, on this rank. Where the others need this rank they get `PeerLost`, and go on at once if
  /// the world is elastic. Without this call a rank leaves when the last of its groups is destroyed.
  void leave() const;
  /// Where processes knock that are to join the group (InitOptions::join): "host:port" at this rank, which stays the same in all worlds of
  /// this process. Empty if the group is not elastic.
  std::string door() const;
  /// Admits the processes and browsers that knock at the door of any rank. All native ranks of an elastic world call it together, again and
  /// again, such as before each step of a training, while no operation is pending. It never waits for those that join: a call at which
  /// somebody knocks begins to form the next world, in the background, and returns nullopt, as all calls do until all have met; each costs
  /// one small all-reduce. If they do not meet, the group goes on as it is, and they knock again. The call at which all have met returns a
  /// world of the ranks of this one, numbered as they are, and the new ranks behind them, and this world is left. Where a rank is lost
  /// meanwhile, the next call throws `PeerLost`.
  ///
  /// In a world with browsers the call is no collective. Where somebody knocks it throws `Cancelled`, as the operations of all ranks then
  /// do: reform() returns a world of the native ranks, and the browsers come in again together with those that have knocked.
  [[nodiscard]] std::optional<Reformed> admit(const CallOptions& options = {}) const;
  /// For a rank that the others have gone on without, which reform() has said: joins them again by one of their doors, which all ranks of a
  /// world know of each other, and returns the world in which it is a new rank. It keeps its own door. It waits for a minute at most, and
  /// may be called again after an error. Throws like init(), and `InvalidArgument` if the others have not gone on without this rank.
  [[nodiscard]] Group rejoin() const;

 private:
  std::shared_ptr<native::SharedGroup> shared_;
};

/// The world of those who go on after a loss, or with new ranks.
struct Reformed {
  Group world;                ///< of all who go on
  std::vector<int> before;    ///< by rank: the rank in the world of the group that was called; -1 of a rank that has joined
  std::vector<int> lost;      ///< ranks of that world that are not in this one, ascending
  std::uint64_t lineage = 0;  ///< differs where a world was cut in two that both went on
};

/// Whether the named backend can be used here; false for unknown names.
bool is_available(std::string_view backend = "any") noexcept;

/// Joins or forms the group. With nothing configured it returns a group of one or, if strict, throws `InvalidArgument`. An incomplete
/// configuration always throws `InvalidArgument`, naming what is missing. Throws `Timeout`, `PeerLost` or `ProtocolError` if the meeting
/// fails.
Group init(const InitOptions& options = {});

/// Leaves all groups of other ranks that this process has, as Group::leave() does, and waits a moment for the others to read that. Happens
/// by itself when the process ends by exit() or returns from main(), so that a rank that is ready first is no loss for the others; for
/// languages in which `InitOptions` hold functions that may not be called any more then.
void leave_all() noexcept;

}  // namespace ringlet
