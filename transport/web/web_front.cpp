#include "transport/web/web_front.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/address.hpp"

namespace ringlet::web {

namespace {

constexpr std::size_t kMaxRefusedOrigins = 8;
constexpr std::size_t kMaxOriginBytes = 300;  // a host's name has at most 253

/// Programs that are no browsers may send anything, which people are not to copy into a shell.
bool is_as_browsers_write_it(const std::string& origin) {
  return origin.size() <= kMaxOriginBytes && origin.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_:/[]") == std::string::npos;
}

}  // namespace

WebFront::WebFront(EventLoop& loop, PageBundle page, WebOptions options, std::function<void(std::unique_ptr<Link>)> on_web_socket)
    : loop_(loop), page_(std::move(page)), options_(std::move(options)), on_web_socket_(std::move(on_web_socket)) {}

void WebFront::receive(std::unique_ptr<Link> connection, ConstBytes first_bytes) {
  if (visits_.size() >= options_.max_connections) make_room();
  std::string host = host_of(connection->peer_name());
  visits_.emplace_back(*this, std::move(host), std::move(connection)).exchange.start(first_bytes);
}

/// A host that opens many connections ends its own, not the downloads of others.
void WebFront::make_room() {
  std::map<std::string, std::size_t> per_host;
  for (const Visit& visit : visits_) ++per_host[visit.host];
  const auto has_fewer = [&](const Visit& one, const Visit& other) { return per_host.at(one.host) < per_host.at(other.host); };
  visits_.erase(std::max_element(visits_.begin(), visits_.end(), has_fewer));
}

Answer WebFront::answer(const HttpRequest& request) {
  Answer answer = answer_request(request, page_, options_.upgrade);
  if (answer.status == kOriginRefused) tell_refused(*request.find("origin"));
  return answer;
}

void WebFront::tell_refused(const std::string& origin) {
  if (!options_.on_refused_origin || !is_as_browsers_write_it(origin) || refused_origins_.size() >= kMaxRefusedOrigins) return;
  if (refused_origins_.insert(origin).second) options_.on_refused_origin(origin);
}

void WebFront::over(HttpExchange& exchange) {
  visits_.remove_if([&](const Visit& visit) { return &visit.exchange == &exchange; });
}

void WebFront::upgraded(HttpExchange& exchange, std::unique_ptr<Link> link) {
  auto web_socket = std::make_unique<WebSocketLink>(loop_, std::move(link), options_.web_socket);
  over(exchange);
  const auto on_web_socket = on_web_socket_;
  on_web_socket(std::move(web_socket));
}

}  // namespace ringlet::web
