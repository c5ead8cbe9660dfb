#include "transport/web/web_front.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::web {

WebFront::WebFront(EventLoop& loop, PageBundle page, WebOptions options, std::function<void(std::unique_ptr<Link>)> on_web_socket)
    : loop_(loop), page_(std::move(page)), options_(std::move(options)), on_web_socket_(std::move(on_web_socket)) {}

void WebFront::receive(std::unique_ptr<Link> connection, ConstBytes first_bytes) {
  if (exchanges_.size() >= options_.max_connections) exchanges_.pop_front();
  exchanges_.emplace_back(loop_, std::move(connection), options_.exchange, *this).start(first_bytes);
}

Answer WebFront::answer(const HttpRequest& request) { return answer_request(request, page_, options_.upgrade); }

void WebFront::over(HttpExchange& exchange) {
  exchanges_.remove_if([&](const HttpExchange& other) { return &other == &exchange; });
}

void WebFront::upgraded(HttpExchange& exchange, std::unique_ptr<Link> link) {
  auto web_socket = std::make_unique<WebSocketLink>(loop_, std::move(link), options_.web_socket);
  over(exchange);
  const auto on_web_socket = on_web_socket_;
  on_web_socket(std::move(web_socket));
}

}  // namespace ringlet::web
