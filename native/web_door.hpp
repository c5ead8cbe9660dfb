#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rendezvous/incoming_links.hpp"
#include "transport/web/web_front.hpp"

namespace ringlet::native {

/// The settings for browsers that join.
struct WebConfig {
  std::optional<int> page_descriptor{};                  // a file with the packed page; it is closed once it is read
  std::optional<int> presence_descriptor{};              // rank 0: for PresenceReport, which closes it
  std::vector<std::string> allowed_origins;              // of pages that rank 0 does not serve
  std::optional<std::uint16_t> page_port{};              // other ranks: the port at which rank 0 serves the page
  std::optional<std::vector<std::string>> page_hosts{};  // without a token: see web::UpgradeRules
};

/// Reads the page; it has no files where there is no descriptor. Throws `InvalidArgument` where the descriptor holds no page.
web::PageBundle read_page(const WebConfig& config);

/// Serves the page to the incoming links that speak HTTP, and gives their WebSockets back to `incoming`, which outlives the result.
std::unique_ptr<web::WebFront> open_web_door(EventLoop& loop, IncomingLinks& incoming, web::PageBundle page, const WebConfig& config);

}  // namespace ringlet::native
