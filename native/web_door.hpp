#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rendezvous/incoming_links.hpp"
#include "transport/unique_fd.hpp"
#include "transport/web/web_front.hpp"

namespace ringlet::native {

/// The settings for browsers that join.
struct WebConfig {
  std::vector<std::string> allowed_origins;              // of pages that rank 0 does not serve
  std::optional<std::uint16_t> page_port{};              // other ranks: the port at which rank 0 serves the page
  std::optional<std::vector<std::string>> page_hosts{};  // without a token: see web::UpgradeRules
};

/// What `ringlet serve` has opened for the rank that browsers reach.
struct WebFiles {
  UniqueFd page{};      // the packed page
  UniqueFd presence{};  // for PresenceReport
};

/// Reads the packed page; it has no files where there is no descriptor. Throws `InvalidArgument` where the descriptor holds no page.
web::PageBundle read_page(const UniqueFd& file);

/// Serves the page to the incoming links that speak HTTP, and gives their WebSockets back to `incoming`, which outlives the result.
std::unique_ptr<web::WebFront> open_web_door(EventLoop& loop, IncomingLinks& incoming, web::PageBundle page, const WebConfig& config);

}  // namespace ringlet::native
