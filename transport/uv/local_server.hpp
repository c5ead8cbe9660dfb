#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.hpp"
#include "transport/uv/uv_loop.hpp"

namespace ringlet {

/// Answers programs of the same user on this machine, at a Unix-domain socket: each sends one line and gets one text. Programs of other
/// users are turned away, and so are those beyond `kMaxVisitors` at a time; a visitor that takes longer than `kPatience` is dropped.
/// Belongs to the loop's thread, and is destroyed before the loop.
class LocalServer {
 public:
  static constexpr std::size_t kMaxVisitors = 8;
  static constexpr std::size_t kMaxRequestBytes = 64;
  static constexpr Duration kPatience = Duration::seconds(5);

  /// The handler calls it exactly once, on the loop's thread, during its own call or later; the visitor or the server may have gone by
  /// then. An empty text closes the connection without an answer.
  using Answer = std::function<void(std::string text)>;
  using Handler = std::function<void(const std::string& request, Answer answer)>;

  /// Listens at `path`, and replaces a socket that exists there already. Only this user may connect. Fails with `io_error`, whose text has
  /// the reason.
  static Result<std::unique_ptr<LocalServer>> open(UvLoop& loop, const std::string& path, Handler handler);
  /// Removes the socket and closes all connections.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

 private:
  class State;
  explicit LocalServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace ringlet
