#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/group_context.hpp"

namespace ringlet {

/// Keeps the calls and data frames that peers have sent for operations of a stream that have not started here yet. A peer that exceeds its
/// budget (EarlyBudget) ends the world.
class EarlyArrivals {
 public:
  /// A data frame of an operation that has not started here. It counts as kept for the peer as long as it exists.
  struct Frame final : PayloadSink {
    Frame(EarlyArrivals& arrivals, int from, const FrameHeader& frame_header);
    ~Frame();
    Frame(const Frame&) = delete;
    Bytes direct() override { return Bytes(memory).first(header.payload_bytes).subspan(filled); }
    void received_direct(std::size_t count) override { filled += count; }
    std::size_t consume(ConstBytes piece) override;
    void frame_ended() override;
    ConstBytes payload() const { return ConstBytes(memory).first(header.payload_bytes); }

    EarlyArrivals& owner;
    const int peer;
    const FrameHeader header;
    std::vector<std::byte> memory;  // as long as the payload at least
    std::size_t filled = 0;
    bool complete = false;
  };

  /// `on_frame_ended` is called for each frame that has been received completely.
  EarlyArrivals(GroupContext& group, std::uint16_t stream, std::function<void(int peer, std::uint64_t sequence)> on_frame_ended)
      : group_(group), stream_(stream), on_frame_ended_(std::move(on_frame_ended)) {}
  ~EarlyArrivals();
  EarlyArrivals(const EarlyArrivals&) = delete;

  /// `ahead` is the distance between `sequence` and the operation that this rank is in.
  void add_call(int peer, std::uint64_t sequence, std::uint64_t ahead, const Call& call);
  /// Returns where the payload of a data frame goes, or null where the world has failed.
  PayloadSink* add_frame(int peer, const FrameHeader& header);
  std::optional<Call> take_call(int peer, std::uint64_t sequence);
  /// Returns the operation's next frame in the order of arrival, or none where there is none or it is still being received.
  std::list<Frame> take_frame(int peer, std::uint64_t sequence);

 private:
  struct Arrivals {
    std::optional<Call> call;
    std::list<Frame> frames;  // an empty one takes no memory of its own
  };
  using Key = std::pair<std::uint64_t, int>;  // sequence, peer

  void drop_if_empty(std::map<Key, Arrivals>::iterator arrivals);
  std::vector<std::byte> take_memory(std::size_t bytes);
  void keep_memory(std::vector<std::byte> memory) noexcept;

  GroupContext& group_;
  const std::uint16_t stream_;
  const std::function<void(int, std::uint64_t)> on_frame_ended_;
  std::array<std::vector<std::byte>, 16> spare_;  // memory of frames that have gone, for the next ones
  std::map<Key, Arrivals> arrivals_;
};

}  // namespace ringlet
