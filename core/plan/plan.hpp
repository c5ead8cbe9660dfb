#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringlet {

/// The memory that a region is in. If an operation is in place, input and output are the same memory.
enum class Buffer : std::uint8_t { input, output, scratch };

struct Region {
  Buffer buffer = Buffer::input;
  std::size_t offset_bytes = 0;
  std::size_t bytes = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// The treatment of received bytes.
enum class Verb : std::uint8_t {
  copy,    // into = received
  reduce,  // into = received op operand
};

/// The index of a step whose progress (the bytes that are finished, from its start) bounds what depends on it. Receives are numbered first,
/// then combines, in order.
using ProgressIndex = std::int32_t;
inline constexpr ProgressIndex kAtOnce = -1;

struct Send {
  Region from;
  ProgressIndex after = kAtOnce;  // bytes may leave up to that step's progress; all of them once it is done
};

struct Receive {
  Region into;
  Region operand{};  // used by Verb::reduce
  Verb verb = Verb::copy;
  bool finish = false;  // this is the last reduction: divide and canonicalise NaNs at once
};

/// Reduces regions of equal size, in order, into `into`, and finishes the result unless it is a partial sum. It may run as far as all
/// operands have come; a plan's combines run one after the other.
struct Combine {
  struct Operand {
    Region from;
    ProgressIndex after = kAtOnce;
  };
  Region into;
  std::uint32_t first_operand = 0;  // index in Plan::operands
  std::uint32_t operand_count = 0;
  bool after_sends = false;  // wait until every send has left, because `into` is also sent from
  bool finish = true;        // divide and canonicalise NaNs
};

/// The exchange with one peer. Sends and receives with one peer happen in order; peers are independent of each other.
struct PeerSteps {
  int peer = 0;
  std::uint32_t first_send = 0, send_count = 0;
  std::uint32_t first_receive = 0, receive_count = 0;
  bool call_with_first_send = false;  // the call goes out with the first send, in one message; else at once
};

/// All steps of one collective for one rank, computed before the first byte moves. A value; clear() keeps its memory for the next plan.
struct Plan {
  std::vector<PeerSteps> peers;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<Combine> combines;
  std::vector<Combine::Operand> operands;
  Region copy_from{}, copy_to{};  // copied before all other steps, unless empty
  std::size_t scratch_bytes = 0;
  std::size_t segment_bytes = SIZE_MAX;  // most payload of a frame, where that is less than the world's
  bool reduces_in_caches = false;        // what is sent is added to soon, and little enough to stay in the processors' caches until then

  void clear();
};

}  // namespace ringlet
