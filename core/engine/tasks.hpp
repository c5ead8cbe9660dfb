#pragma once

#include <functional>
#include <ringlet/status.hpp>

#include "core/base/bytes.hpp"
#include "core/base/time.hpp"
#include "core/engine/left_by_rounding.hpp"
#include "core/plan/call.hpp"
#include "core/wire/call_record.hpp"

namespace ringlet {

/// Runs exactly once, from the loop, never inside the call that took it.
using Completion = std::function<void(const Status&)>;

/// One collective as its caller gave it.
struct CollectiveTask {
  Call call;
  ConstBytes input;
  Bytes output;
  Duration timeout;
  Completion completion;
  const LeftByRounding* left = nullptr;  // of an all-reduce of blocks; null: what rounding their sum leaves is dropped
};

/// In place of a peer: a receive takes the next message of whichever rank has sent one.
inline constexpr int kAnySource = -1;

/// One message as its caller gave it.
struct MessageTask {
  int peer = 0;
  MessageShape shape;
  ConstBytes source;  // of a send
  Bytes destination;  // of a receive
  Duration timeout;
  Completion completion;
  int* sender = nullptr;  // of a receive from any rank: gets the sender's rank before the completion runs
  Instant since{};        // of the program's own messages, if there is a trace: when it was given
};

}  // namespace ringlet
