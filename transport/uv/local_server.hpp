#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

/// Answers programs of the same user on this machine, at a Unix-domain socket: each asks one line and gets one text. Others are turned
/// away, at most `kMostVisitors` are served at a time, and nobody for longer than `kPatience`. Belongs to whoever has the loop, and is
/// destroyed before it.
class LocalServer {
 public:
  static constexpr std::size_t kMostVisitors = 8;
  static constexpr std::size_t kMostRequestBytes = 64;
  static constexpr Duration kPatience = Duration::seconds(5);

  /// Called once, from the loop, at once or later, also when the visitor or the server has gone. An empty text: only hang up.
  using Answer = std::function<void(std::string text)>;
  using Handler = std::function<void(const std::string& request, Answer answer)>;

  /// Listens at `path`, in the place of a socket that stands there already; only this user may connect. `io_error` with the reason.
  static Result<std::unique_ptr<LocalServer>> open(UvLoop& loop, const std::string& path, Handler handler);
  /// Removes the socket, and hangs up on everyone.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

 private:
  class State;
  explicit LocalServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace ringlet
