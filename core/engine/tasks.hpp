#pragma once

#include <functional>
#include <ringlet/status.hpp>

#include "core/base/bytes.hpp"
#include "core/base/time.hpp"
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
};

/// One message as its caller gave it.
struct MessageTask {
  int peer = 0;
  MessageShape shape;
  ConstBytes source;  // of a send
  Bytes destination;  // of a receive
  Duration timeout;
  Completion completion;
};

}  // namespace ringlet
