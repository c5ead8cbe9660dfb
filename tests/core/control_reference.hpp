#pragma once

#include "control.pb.h"
#include "core/wire/control.hpp"
#include "sim/sim_random.hpp"

namespace ringlet::test {

/// A message of any kind, with fields of any size.
wire::ControlMessage random_message(SimRandom& random);
/// The same message as protoc's class holds it.
ringlet_reference::ControlMessage to_reference(const wire::ControlMessage& message);

}  // namespace ringlet::test
