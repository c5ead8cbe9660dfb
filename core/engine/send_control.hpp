#pragma once

#include <span>
#include <string>

#include "core/engine/session.hpp"
#include "core/wire/control.hpp"

namespace ringlet {

/// Queues a control message ahead of the frames of all operations.
inline void send_control(Session& session, const wire::ControlMessage& message) {
  const std::string payload = wire::encode_control(message);
  FrameHeader header;
  header.kind = FrameKind::control;
  session.send_owned(header, std::as_bytes(std::span(payload)));
}

}  // namespace ringlet
