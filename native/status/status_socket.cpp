#include "native/status/status_socket.hpp"

#include <optional>
#include <utility>

#include "native/status/status_directory.hpp"
#include "native/status/status_report.hpp"

namespace ringlet::native {

Status StatusSocket::open() {
  const std::string directory = status_directory();
  if (Status status = make_status_directory(directory); !status.ok()) return status;
  // Called because it removes the sockets that dead ranks have left.
  (void)find_status_addresses(directory);
  auto server =
      LocalServer::open(loop_, status_path(directory, world_id_, world_.options().rank),
                        [this](const std::string& request, LocalServer::Answer answer) { on_request(request, std::move(answer)); });
  if (!server.ok()) return server.status();
  server_ = std::move(server).value();
  return {};
}

void StatusSocket::on_request(const std::string& request, LocalServer::Answer answer) {
  if (request != kRequest) return answer({});
  waiting_.push_back(std::move(answer));
  // Requests that come while the ranks are being asked get the same answer.
  if (waiting_.size() > 1) return;
  const bool asked = world_.survey(guard_.wrap([this](const Survey& survey) { answer_all(survey); }));
  if (!asked) answer_all({});
}

void StatusSocket::answer_all(const Survey& survey) {
  const std::string text = status_report(world_, world_id_, survey, membership_ ? std::optional(membership_->state()) : std::nullopt);
  for (const auto& answer : std::exchange(waiting_, {})) answer(text);
}

}  // namespace ringlet::native
