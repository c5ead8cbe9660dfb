#include "tools/command/status_client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "native/status/status_directory.hpp"
#include "native/status/status_socket.hpp"
#include "transport/unique_fd.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::command {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using native::StatusAddress;

/// A report of the largest world takes some megabytes.
constexpr std::size_t kMaxBytes = 64 << 20;
/// If ranks do not answer, at most this many of a world are asked.
constexpr std::size_t kMaxAsked = 4;

bool wait_for(int socket, short events, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd watched{socket, events, 0};
  return left > 0 && ::poll(&watched, 1, static_cast<int>(left)) > 0;
}

/// Returns the rank's report, or the part of it that came before the deadline.
std::string ask(const StatusAddress& rank, Clock::time_point deadline) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (rank.path.size() >= sizeof to.sun_path) return {};
  std::memcpy(to.sun_path, rank.path.c_str(), rank.path.size() + 1);
  const UniqueFd socket(uv::open_stream_socket(AF_UNIX));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
  const std::string request = std::string(native::StatusSocket::kRequest) + "\n";
  if (::send(socket.get(), request.data(), request.size(), uv::kSendFlags) != static_cast<ssize_t>(request.size())) return {};
  std::string text;
  std::array<char, 1 << 16> piece{};
  while (text.size() < kMaxBytes && wait_for(socket.get(), POLLIN, deadline)) {
    const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (count <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

bool is_report(const Json& json) { return json.is_object() && json.value("format", 0) == 1 && json.contains("ranks"); }

Json nobody_answers(const std::vector<StatusAddress>& ranks) {
  Json list = Json::array();
  for (const StatusAddress& one : ranks) list.push_back({{"rank", one.rank}, {"state", "not_answering"}, {"pid", one.process}});
  return {{"format", 1},        {"world", fmt::format("{:016x}", ranks.front().world)},
          {"size", nullptr},    {"told_by", nullptr},
          {"failure", nullptr}, {"stalled", true},
          {"ranks", list}};
}

}  // namespace

std::vector<Json> ask_worlds(const StatusFilter& filter, std::chrono::milliseconds patience) {
  std::vector<Json> reports;
  const std::string directory = native::status_directory();
  if (!native::check_status_directory(directory).ok()) return reports;
  const auto addresses = native::find_status_addresses(directory);
  for (auto first = addresses.begin(); first != addresses.end();) {
    const auto end = std::find_if(first, addresses.end(), [&](const StatusAddress& one) { return one.world != first->world; });
    std::vector<StatusAddress> ranks;
    std::copy_if(first, end, std::back_inserter(ranks), [&](const StatusAddress& one) {
      return (!filter.process || one.process == *filter.process) && (!filter.world || one.world == *filter.world);
    });
    first = end;
    if (ranks.empty()) continue;
    std::optional<Json> report;
    for (std::size_t i = 0; i < std::min(ranks.size(), kMaxAsked) && !report; ++i) {
      Json json = Json::parse(ask(ranks[i], Clock::now() + patience), nullptr, false);
      if (is_report(json)) report = std::move(json);
    }
    reports.push_back(report ? std::move(*report) : nobody_answers(ranks));
  }
  return reports;
}

}  // namespace ringlet::command
