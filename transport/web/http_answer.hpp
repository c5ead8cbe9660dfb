#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "transport/web/http_request.hpp"
#include "transport/web/page_bundle.hpp"

namespace ringlet::web {

/// The status of an answer to a page that may not open a WebSocket because of its origin, and of no other answer.
inline constexpr int kOriginRefused = 403;

/// The answer to one request. The body's bytes belong to the bundle.
struct Answer {
  int status = 0;
  std::string head;  // with the empty line at its end
  ConstBytes body;
  bool keep_alive = false;
  bool upgrade = false;  // the connection becomes a WebSocket after the answer
};

/// The path of the WebSocket, and the pages that may open it besides those that this port serves.
struct UpgradeRules {
  std::string path = "/ring";
  std::vector<std::string> allowed_origins;  // as browsers write them: "http://192.168.1.7:8080"
  /// Pages served by this port number may open it, whatever their host is called: rank 0 serves the page, and a machine has several names.
  std::optional<std::uint16_t> page_port{};
  /// Where there is no token: the names in lower case that a page's host may have, besides loopback addresses and the address that it
  /// dials. Any other name may be pointed at this machine by a stranger whose page somebody has open (DNS rebinding).
  std::optional<std::vector<std::string>> page_hosts{};
};

/// The answer to a request for a file of the page or for a WebSocket.
Answer answer_request(const HttpRequest& request, const PageBundle& page, const UpgradeRules& rules);

/// Returns the answer to any other request; the connection ends after it.
Answer refuse_request(int status);

/// Computes the Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455, 4.2.2).
std::string accept_key(std::string_view key);

}  // namespace ringlet::web
