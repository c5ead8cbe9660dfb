#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/wire/call_record.hpp"
#include "core/wire/control.hpp"
#include "tests/core/raw_peer.hpp"
#include "tests/core/sim_group.hpp"

namespace ringlet::test {

inline ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

inline FrameHeader header_of(FrameKind kind, std::size_t payload_bytes, std::uint64_t sequence = 0) {
  FrameHeader header;
  header.kind = kind;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.sequence = sequence;
  return header;
}

/// The bytes that one rank sends.
class Script {
 public:
  Script& add(ConstBytes bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Script& frame(const FrameHeader& header, ConstBytes payload = {}) {
    std::array<std::byte, kFrameHeaderBytes> encoded{};
    encode(header, encoded.data());
    return add(encoded).add(payload);
  }
  Script& control(const wire::ControlMessage& message) {
    const std::string payload = wire::encode_control(message);
    return frame(header_of(FrameKind::control, payload.size()), bytes_of(payload));
  }
  Script& join(bool elastic = false) { return control(wire::Join{{1, 2, 0, 0, elastic}, "", 5000}).control(wire::Ready{}); }
  Script& call(std::uint64_t sequence, const Call& call, std::uint16_t stream = 0) {
    std::vector<std::byte> record;
    append_call(call, 0, record);
    FrameHeader header = header_of(FrameKind::call, record.size(), sequence);
    header.stream = stream;
    return frame(header, record);
  }
  Script& data(std::uint64_t sequence, std::uint32_t transfer, std::size_t bytes, std::size_t offset = 0, std::uint16_t stream = 0) {
    FrameHeader header = header_of(FrameKind::data, bytes, sequence);
    header.stream = stream;
    header.transfer = transfer;
    header.offset = offset;
    return frame(header, Values(bytes));
  }
  Script& offer(std::uint64_t sequence, const MessageShape& shape, bool eager, std::uint16_t stream = 0) {
    const auto record = encode_message_shape(shape);
    FrameHeader header = header_of(FrameKind::offer, record.size, sequence);
    header.flags = eager ? kFlagEager : std::uint8_t{0};
    header.stream = stream;
    return frame(header, ConstBytes(record.bytes).first(record.size));
  }
  Script& message(std::uint64_t sequence, std::size_t bytes, std::size_t offset = 0) {
    FrameHeader header = header_of(FrameKind::message, bytes, sequence);
    header.offset = offset;
    return frame(header, Values(bytes));
  }
  const Values& bytes() const { return bytes_; }

 private:
  Values bytes_;
};

inline Call sum_of(std::size_t count, Algorithm algorithm) {
  Call call;
  call.kind = CollectiveKind::all_reduce;
  call.dtype = DType::f32;
  call.rows = count;
  call.algorithm = algorithm;
  return call;
}

inline Call gathered(std::uint64_t first, std::uint64_t second) {
  Call call = sum_of(first + second, Algorithm::direct);
  call.kind = CollectiveKind::all_gather;
  call.counts = {first, second};
  return call;
}

/// Returns what rank 1 tells rank 0 of an all_to_all_v: the rows for rank 0, and the rows from it.
inline Call exchanged(std::uint64_t sent, std::uint64_t received) {
  Call call = gathered(sent, received);
  call.kind = CollectiveKind::all_to_all;
  call.rows = 0;
  return call;
}

/// Rank 0 of two, with operations pending, and a raw peer in the place of rank 1.
struct Victim {
  SimGroup group;
  RawPeer peer;
  std::vector<std::vector<float>> values{std::vector<float>(10), std::vector<float>(20), std::vector<float>(100), std::vector<float>(5),
                                         std::vector<float>(6),  std::vector<float>(8),  std::vector<float>(5)};
  const std::vector<std::int64_t> counts{3, 5}, sent{4, 1}, received{4, 4};
  std::vector<Outcome*> outcomes;
  Values later;

  static GroupSetup setup(std::uint64_t seed, bool elastic) {
    GroupSetup setup;
    setup.world.elastic = elastic;
    setup.seed = seed;
    setup.connect_timeout = Duration::seconds(5);
    setup.world.limits = {64, 128};
    setup.world.operation_timeout = Duration::seconds(5);
    return setup;
  }
  /// `script` joins a group that is not elastic; the peer joins one of the kind that is wanted.
  explicit Victim(std::uint64_t seed, const Values& script, bool elastic = false) : group(setup(seed, elastic)), peer(group.sim()) {
    // The bytes that join the group go first; the rest follows when the operations have been started.
    const auto split = static_cast<std::ptrdiff_t>(std::min(script.size(), Script().join().bytes().size()));
    later.assign(script.begin() + split, script.end());
    const Values first = elastic ? Script().join(true).bytes() : Values(script.begin(), script.begin() + split);
    group.start_meeting(0);
    peer.use_token(kSimToken);
    peer.dial_until_linked(group.listening_address(0), [this, first] { peer.send(first); });
    group.sim().run_until([&] { return group.met(0).has_value(); }, {.time = Duration::seconds(10)});
  }
  void start_operations() {
    const WorldOptions& options = group.options(0);
    for (const std::size_t i : {0U, 1U, 2U})
      outcomes.push_back(&group.start(0, 0, make_all_reduce(ReduceOp::sum, values[i], values[i], 1, options)));
    outcomes.push_back(&group.start(0, 0, make_barrier(options)));
    const ConstTensorView own_part(values[5].data(), DType::f32, 3);
    outcomes.push_back(&group.start(0, 0, make_all_gather_v(own_part, values[5], counts, options)));
    outcomes.push_back(&group.start(0, 0, make_all_to_all_v(values[6], values[5], sent, received, options)));
    outcomes.push_back(&group.receive(0, 0, make_receive(values[3], 1, options)));
    outcomes.push_back(&group.send(0, 0, make_send(values[4], 1, options)));
    group.sim().run_for(Duration::milliseconds(50));
    peer.send(later);
  }
  /// Returns false where an operation hangs.
  bool run() { return group.run_until_done(Duration::seconds(60)); }
};

/// Returns what a well-behaved rank 1 would send for these operations.
inline Script good_session() {
  Script script;
  script.join();
  script.call(0, sum_of(10, Algorithm::exchange)).data(0, 0, 40);
  script.call(1, sum_of(20, Algorithm::direct)).data(1, 0, 64).data(1, 1, 16);
  script.offer(0, {DType::f32, Shape{5}}, true).message(0, 20).frame(header_of(FrameKind::accept, 0));
  script.call(2, sum_of(100, Algorithm::ring)).data(2, 0, 100).data(2, 0, 92, 100).data(2, 1, 208);
  script.frame(header_of(FrameKind::heartbeat, 0)).call(3, Call{}).data(3, 0, 0);
  script.call(4, gathered(3, 5)).data(4, 0, 20).call(5, exchanged(4, 1)).data(5, 0, 16);
  return script;
}

}  // namespace ringlet::test
