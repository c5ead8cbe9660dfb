#include "transport/uv/local_server.hpp"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "transport/uv/listen_socket.hpp"
#include "transport/uv/loop_state.hpp"
#include "transport/uv/peer_user.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet {

namespace {

using uv::LoopState;
using uv::SocketWatch;

constexpr int kBacklog = 16;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

class LocalServer::State : public std::enable_shared_from_this<State> {
 public:
  State(UvLoop& loop, std::string path, Handler handler) : loop_(loop.state()), path_(std::move(path)), handler_(std::move(handler)) {}
  ~State();

  Status listen();
  void admit(int socket);
  void ask(std::uint64_t id, const std::string& request);
  void dismiss(std::uint64_t id);

 private:
  class Visitor;

  LoopState& loop_;
  const std::string path_;
  Handler handler_;
  uv::ListenSocket* entrance_ = nullptr;
  std::map<std::uint64_t, Visitor*> visitors_;
  std::uint64_t last_id_ = 0;
};

class LocalServer::State::Visitor final : public SocketWatch {
 public:
  Visitor(LoopState& loop, State& state, std::uint64_t id) : SocketWatch(loop), state_(state), id_(id) {}

  int open(int socket) {
    const int error = SocketWatch::open(socket);
    if (error != 0) return error;
    set_interest(UV_READABLE);
    timer_ = loop().after(kPatience, [this] {
      timer_ = 0;
      state_.dismiss(id_);
    });
    return 0;
  }
  void leave() {
    if (timer_ != 0) loop().cancel(timer_);
    drop();
  }
  void answer(std::string text) {
    text_ = std::move(text);
    write();
  }

 private:
  void on_ready(int, bool broken) override {
    if (broken) return state_.dismiss(id_);
    asked_ ? write() : read();
  }

  void read() {
    std::array<char, kMaxRequestBytes> piece{};
    const ssize_t count = ::recv(socket(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count < 0 && would_block(errno)) return;
    if (count > 0) request_.append(piece.data(), static_cast<std::size_t>(count));
    const std::size_t end = request_.find('\n');
    if (end != std::string::npos && end < kMaxRequestBytes) {
      asked_ = true;
      set_interest(0);
      return state_.ask(id_, request_.substr(0, end));
    }
    if (count <= 0 || request_.size() >= kMaxRequestBytes) state_.dismiss(id_);
  }

  void write() {
    while (sent_ < text_.size()) {
      const ssize_t count = ::send(socket(), text_.data() + sent_, text_.size() - sent_, uv::kSendFlags);
      if (count < 0 && would_block(errno)) return set_interest(UV_WRITABLE);
      if (count < 0) break;
      sent_ += static_cast<std::size_t>(count);
    }
    state_.dismiss(id_);
  }

  State& state_;
  const std::uint64_t id_;
  TimerId timer_ = 0;
  bool asked_ = false;
  std::string request_;
  std::string text_;
  std::size_t sent_ = 0;
};

LocalServer::State::~State() {
  for (const auto& [id, visitor] : visitors_) visitor->leave();
  if (entrance_ == nullptr) return;
  ::unlink(path_.c_str());
  entrance_->abandon();
}

Status LocalServer::State::listen() {
  const auto failed = [&](const std::string& why) { return Status{Errc::io_error, "cannot listen at '" + path_ + "': " + why}; };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) return failed("the path is longer than the system allows for a socket");
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  const int socket = uv::open_stream_socket(AF_UNIX);
  if (socket < 0) return failed(uv::describe_error(errno));
  ::unlink(path_.c_str());
  const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  int error = bound && ::chmod(path_.c_str(), S_IRUSR | S_IWUSR) == 0 && ::listen(socket, kBacklog) == 0 ? 0 : errno;
  auto* entrance = new uv::ListenSocket(loop_, [this](int accepted) { admit(accepted); });
  if (error == 0) error = -entrance->open(socket);
  if (error == 0) {
    entrance_ = entrance;
    return {};
  }
  entrance->drop();
  ::close(socket);
  if (bound) ::unlink(path_.c_str());
  return failed(uv::describe_error(error));
}

void LocalServer::State::admit(int socket) {
  const std::uint64_t id = ++last_id_;
  if (visitors_.size() >= kMaxVisitors || !uv::is_of_same_user(socket)) {
    ::close(socket);
    return;
  }
  auto* visitor = new Visitor(loop_, *this, id);
  if (visitor->open(socket) == 0) {
    visitors_[id] = visitor;
    return;
  }
  visitor->drop();
  ::close(socket);
}

void LocalServer::State::ask(std::uint64_t id, const std::string& request) {
  handler_(request, [state = weak_from_this(), id](std::string text) {
    const auto self = state.lock();
    const auto visitor = self ? self->visitors_.find(id) : std::map<std::uint64_t, Visitor*>::iterator();
    if (self && visitor != self->visitors_.end()) visitor->second->answer(std::move(text));
  });
}

void LocalServer::State::dismiss(std::uint64_t id) {
  const auto visitor = visitors_.find(id);
  if (visitor == visitors_.end()) return;
  Visitor& gone = *visitor->second;
  visitors_.erase(visitor);
  gone.leave();
}

Result<std::unique_ptr<LocalServer>> LocalServer::open(UvLoop& loop, const std::string& path, Handler handler) {
  auto state = std::make_shared<State>(loop, path, std::move(handler));
  if (const Status status = state->listen(); !status.ok()) return status;
  return std::unique_ptr<LocalServer>(new LocalServer(std::move(state)));
}

LocalServer::~LocalServer() = default;

}  // namespace ringlet
