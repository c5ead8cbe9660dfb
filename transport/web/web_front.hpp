#pragma once

#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "transport/web/http_exchange.hpp"
#include "transport/web/page_bundle.hpp"
#include "transport/web/web_socket_link.hpp"

namespace ringlet::web {

struct WebOptions {
  UpgradeRules upgrade;
  /// The highest number of HTTP connections at a time. One more replaces the oldest of the host that has the most.
  std::size_t max_connections = 64;
  ExchangeLimits exchange;
  WebSocketLimits web_socket;
  /// Called when a page whose origin may not open a WebSocket tries that first, for a bounded number of origins.
  std::function<void(const std::string& origin)> on_refused_origin{};
};

/// Serves the worker page to browsers, and makes links from their WebSockets. It owns a connection until the connection becomes a
/// WebSocket. It belongs to the loop's thread, and must be destroyed before the loop.
class WebFront final : public HttpExchange::Owner {
 public:
  /// `on_web_socket` runs on the loop's thread with a link that has not been started, and may destroy the front.
  WebFront(EventLoop& loop, PageBundle page, WebOptions options, std::function<void(std::unique_ptr<Link>)> on_web_socket);
  WebFront(const WebFront&) = delete;
  WebFront& operator=(const WebFront&) = delete;

  /// Takes over a connection from which `first_bytes` have already been read. May be called inside a call to the link's former user.
  void receive(std::unique_ptr<Link> connection, ConstBytes first_bytes);
  std::size_t connection_count() const { return visits_.size(); }

 private:
  struct Visit {
    Visit(WebFront& front, std::string from, std::unique_ptr<Link> connection)
        : host(std::move(from)), exchange(front.loop_, std::move(connection), front.options_.exchange, front) {}
    const std::string host;
    HttpExchange exchange;
  };

  void make_room();
  Answer answer(const HttpRequest& request) override;
  void tell_refused(const std::string& origin);
  void over(HttpExchange& exchange) override;
  void upgraded(HttpExchange& exchange, std::unique_ptr<Link> link) override;

  EventLoop& loop_;
  const PageBundle page_;
  const WebOptions options_;
  const std::function<void(std::unique_ptr<Link>)> on_web_socket_;
  std::list<Visit> visits_;  // oldest first
  std::set<std::string> refused_origins_;
};

}  // namespace ringlet::web
