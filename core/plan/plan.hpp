#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringlet {

/// Which memory a region lies in. An operation in place has the same memory as input and output.
enum class Buffer : std::uint8_t { input, output, scratch };

struct Region {
  Buffer buffer = Buffer::input;
  std::size_t offset_bytes = 0;
  std::size_t bytes = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// What is done with received bytes.
enum class Verb : std::uint8_t {
  copy,    // into = received
  reduce,  // into = received op operand
};

/// A piece of work whose finished prefix, in bytes, bounds what depends on it: first the receives, then the combines, in order.
using ProgressIndex = std::int32_t;
inline constexpr ProgressIndex kAtOnce = -1;

struct Send {
  Region from;
  ProgressIndex after = kAtOnce;  // only bytes below that progress may leave; all of them once it is done
};

struct Receive {
  Region into;
  Region operand{};  // for Verb::reduce
  Verb verb = Verb::copy;
  bool finish = false;  // this reduction is the last: divide and canonicalise at once
};

/// Reduces regions of equal size, in order, into `into`, and finishes. May run as far as every operand has come; a plan's combines run one
/// after the other.
struct Combine {
  struct Operand {
    Region from;
    ProgressIndex after = kAtOnce;
  };
  Region into;
  std::uint32_t first_operand = 0;  // in Plan::operands
  std::uint32_t operand_count = 0;
  bool after_sends = false;  // `into` is also sent from: not before every send has left
};

/// What is exchanged with one peer. Sends and receives with one peer happen in order; peers are independent of each other.
struct PeerSteps {
  int peer = 0;
  std::uint32_t first_send = 0, send_count = 0;
  std::uint32_t first_receive = 0, receive_count = 0;
  bool call_with_first_send = false;  // the peer is told of the call when the first send may leave, in one message; else at once
};

/// All steps of one collective for one rank, computed before the first byte moves. A value; clearing keeps its memory for the next one.
struct Plan {
  std::vector<PeerSteps> peers;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<Combine> combines;
  std::vector<Combine::Operand> operands;
  Region copy_from{}, copy_to{};  // copied before anything else, where not empty
  std::size_t scratch_bytes = 0;

  void clear();
};

}  // namespace ringlet
