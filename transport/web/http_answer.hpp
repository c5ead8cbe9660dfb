#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "transport/web/http_request.hpp"
#include "transport/web/page_bundle.hpp"

namespace ringlet::web {

/// The answer to one request. The body's bytes belong to the bundle.
struct Answer {
  int status = 0;
  std::string head;  // with the empty line at its end
  ConstBytes body;
  bool keep_alive = false;
  bool upgrade = false;  // after it the connection is a WebSocket
};

/// The path of the WebSocket, and the pages that may open it besides those that this port serves.
struct UpgradeRules {
  std::string path = "/ring";
  std::vector<std::string> allowed_origins;  // as browsers write them: "http://192.168.1.7:8080"
  /// Pages of this port may open it, whatever their host is called: the page is rank 0's, and a machine has several names.
  std::optional<std::uint16_t> page_port{};
};

/// The answer to a request for a file of the page or for a WebSocket.
Answer answer_request(const HttpRequest& request, const PageBundle& page, const UpgradeRules& rules);

/// The answer to anything else; the connection ends with it.
Answer refuse_request(int status);

/// The Sec-WebSocket-Accept of a Sec-WebSocket-Key (RFC 6455, 4.2.2).
std::string accept_key(std::string_view key);

}  // namespace ringlet::web
