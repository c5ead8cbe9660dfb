#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/rendezvous/reception.hpp"
#include "transport/web/web_front.hpp"

namespace ringlet::native {

/// How browsers come in.
struct WebConfig {
  std::optional<int> page_descriptor{};      // rank 0: a file with the page, packed; the world closes it
  std::optional<int> presence_descriptor{};  // rank 0: presence.hpp; the world closes it
  std::vector<std::string> allowed_origins;  // of pages that are not rank 0's
  std::optional<std::uint16_t> page_port{};  // on the other ranks: the one that rank 0 serves the page at
};

/// No files where there is no descriptor. Throws `InvalidArgument` where it holds no page.
web::PageBundle read_page(const WebConfig& config);

/// Takes from the reception what speaks HTTP, serves the page, and gives WebSockets back to it. The reception outlives what is returned.
std::unique_ptr<web::WebFront> open_web_door(EventLoop& loop, Reception& reception, web::PageBundle page, const WebConfig& config);

}  // namespace ringlet::native
