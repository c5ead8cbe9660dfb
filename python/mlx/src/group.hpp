#pragma once

#include <group_share.h>
#include <mlx/distributed/distributed_impl.h>

#include <chrono>
#include <memory>

namespace ringlet_mlx {

/// Frees a share of a group.
struct ShareFree {
  void operator()(ringlet_share* share) const noexcept;
};
using Share = std::unique_ptr<ringlet_share, ShareFree>;

/// Another share of the same group. Throws `std::runtime_error`.
Share copy_of(ringlet_share& share);

struct Calls;

/// A group of Ringlet's as MLX has its own back ends: operations are nodes of MLX's graph, and run on the thread of their stream when they
/// are evaluated. Each stream of MLX's is one of the group's, numbered in the order in which a program first uses them with the group,
/// which is that of the other ranks, whatever MLX's own numbers are there.
///
/// Errors of Ringlet's become `std::runtime_error`s whose text begins with the class in ringlet.errors, "ringlet.PeerLost (rank 2): ...":
/// MLX keeps nothing else of what an operation throws.
class Group : public mlx::core::distributed::detail::GroupImpl {
 public:
  explicit Group(Share share);

  /// Throws `std::invalid_argument` for a stream of a GPU.
  mlx::core::Stream communication_stream(mlx::core::StreamOrDevice s) override;
  int rank() override;
  int size() override;
  /// Throws `std::invalid_argument` on a rank with a negative color, once all have split.
  std::shared_ptr<GroupImpl> split(int color, int key) override;

  void all_sum(const mlx::core::array& input, mlx::core::array& output, mlx::core::Stream stream) override;
  void all_max(const mlx::core::array& input, mlx::core::array& output, mlx::core::Stream stream) override;
  void all_min(const mlx::core::array& input, mlx::core::array& output, mlx::core::Stream stream) override;
  void all_gather(const mlx::core::array& input, mlx::core::array& output, mlx::core::Stream stream) override;
  void sum_scatter(const mlx::core::array& input, mlx::core::array& output, mlx::core::Stream stream) override;
  /// The message leaves while the stream goes on, so ranks may all send before they receive. An error of it is thrown by a later operation
  /// of the group, once that has done its part.
  void send(const mlx::core::array& input, int destination, mlx::core::Stream stream) override;
  void recv(mlx::core::array& output, int source, mlx::core::Stream stream) override;

 private:
  void reduce(int op, const mlx::core::array& input, mlx::core::array& output, mlx::core::Stream stream);
  /// Has the stream's thread call `operation` with the group's calls.
  template <class Operation>
  void dispatch(mlx::core::Stream stream, Operation operation);

  // Shared with the operations that are not done.
  std::shared_ptr<Calls> calls_;
};

/// Waits until the messages that all groups of this process have sent are received, or have failed, at most for `timeout`, and returns
/// whether they are.
bool await_messages(std::chrono::milliseconds timeout);

}  // namespace ringlet_mlx
