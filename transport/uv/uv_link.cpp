#include "transport/uv/uv_link.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "transport/uv/loop_state.hpp"
#include "transport/uv/socket.hpp"

namespace ringlet::uv {
namespace {

constexpr std::size_t kMaxSendParts = 64;
constexpr std::size_t kMaxReceiveParts = 4;
// These bound one link's share of a turn. The loop reports a socket that has more to do again in the next turn.
constexpr int kSendsPerTurn = 16;
constexpr int kReceivesPerTurn = 8;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

/// The first `Capacity` of `parts` at most, in the system's form.
template <std::size_t Capacity>
struct PartList {
  std::array<iovec, Capacity> entries;
  std::size_t count = 0;
  std::size_t bytes = 0;

  template <class Span>
  explicit PartList(std::span<const Span> parts) {
    for (const auto& part : parts) {
      if (count == Capacity) break;
      if (part.empty()) continue;
      entries[count++] = {const_cast<std::byte*>(part.data()), part.size()};
      bytes += part.size();
    }
  }
  msghdr message() {
    msghdr header{};
    header.msg_iov = entries.data();
    header.msg_iovlen = static_cast<decltype(header.msg_iovlen)>(count);
    return header;
  }
};

}  // namespace

/// The implementation of a UvLink. It lives longer than the UvLink: until uv has closed the handle.
class LinkSocket final : public SocketWatch {
 public:
  LinkSocket(LoopState& loop, std::string own_name, std::string peer_name)
      : SocketWatch(loop), own_name_(std::move(own_name)), peer_name_(std::move(peer_name)) {}

  int open(int socket) { return SocketWatch::open(socket); }
  void start(LinkUser& user);
  void wake();
  void finish_sending();
  void receive_seldom();
  /// Called when the owner is destroyed: the user is not called any more.
  void abandon();
  const std::string& own_name() const noexcept { return own_name_; }
  const std::string& peer_name() const noexcept { return peer_name_; }
  std::optional<SendCounters> send_counters() const { return closed() ? std::nullopt : uv::send_counters(socket()); }

 private:
  enum class Received { all, some, none, ended };

  void on_ready(int events, bool broken) override;
  void flush_output() override;
  bool receive_directly() override { return receive_batch(); }

  bool receive_batch();
  void pause_receiving(bool paused);
  Received receive_once(int& error);
  void end_receiving();
  void send_all();
  void end_sending();
  void fail_after_draining(int error);
  void fail(int error);
  void update_interest();

  const std::string own_name_, peer_name_;
  LinkUser* user_ = nullptr;  // null before start() and after the last call
  bool receiving_ = false;
  bool receive_paused_ = false;  // the user had no room
  bool receives_seldom_ = false;
  bool sending_ = false;       // inside send_all()
  bool send_stalled_ = false;  // the socket's send buffer is full
  bool woken_ = false;         // wake() was called since to_send() was last called
  bool finish_requested_ = false;
  bool send_ended_ = false;
};

void LinkSocket::start(LinkUser& user) {
  if (closed()) return;
  user_ = &user;
  // An end that was reported to the former user must be reported to the new one, too: watching again makes the socket report it again.
  receiving_ = true;
  pause_receiving(false);
}

void LinkSocket::pause_receiving(bool paused) {
  receive_paused_ = paused;
  set_direct_receiving(!paused && !receives_seldom_);
  update_interest();
}

void LinkSocket::wake() {
  woken_ = true;
  // While it runs, send_all() checks woken_ itself; a stalled link calls to_send() as soon as the socket is writable.
  if (user_ != nullptr && (receive_paused_ || (!sending_ && !send_stalled_ && !send_ended_))) mark_woken();
}

void LinkSocket::finish_sending() {
  wake();
  finish_requested_ = true;
}

void LinkSocket::receive_seldom() {
  receives_seldom_ = true;
  set_direct_receiving(false);
}

void LinkSocket::abandon() {
  user_ = nullptr;
  drop();
}

void LinkSocket::update_interest() {
  set_interest((receiving_ && !receive_paused_ ? static_cast<int>(UV_READABLE) : 0) | (send_stalled_ ? static_cast<int>(UV_WRITABLE) : 0));
}

void LinkSocket::on_ready(int events, bool broken) {
  if (user_ == nullptr) return;
  if (broken)
    if (const int error = take_error(socket()); error != 0) return fail_after_draining(error);
  if ((events & UV_READABLE) != 0) receive_batch();
  if (user_ == nullptr) return;
  if ((events & UV_WRITABLE) != 0) send_all();
  if (user_ != nullptr) update_interest();
}

LinkSocket::Received LinkSocket::receive_once(int& error) {
  const auto destination = user_->to_receive();
  if (user_ == nullptr) return Received::none;
  PartList<kMaxReceiveParts> parts(destination);
  if (parts.bytes == 0) {
    pause_receiving(true);
    return Received::none;
  }
  auto message = parts.message();
  ssize_t count;
  do count = recvmsg(socket(), &message, MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count == 0) return Received::ended;
  if (count < 0) {
    error = would_block(errno) ? 0 : errno;
    return Received::none;
  }
  user_->received(static_cast<std::size_t>(count));
  return static_cast<std::size_t>(count) == parts.bytes ? Received::all : Received::some;
}

bool LinkSocket::receive_batch() {
  if (!receiving_ || receive_paused_) return false;
  for (int round = 0; round < kReceivesPerTurn; ++round) {
    int error = 0;
    const auto outcome = receive_once(error);
    if (user_ == nullptr) return true;
    if (outcome == Received::ended) {
      end_receiving();
      return true;
    }
    if (error != 0) {
      fail(error);
      return true;
    }
    // A short read means that the socket's buffer is empty, so another call would find nothing.
    if (outcome != Received::all) return outcome == Received::some || round > 0;
  }
  return true;
}

void LinkSocket::end_receiving() {
  receiving_ = false;
  set_direct_receiving(false);
  update_interest();
  user_->receive_ended();
}

void LinkSocket::flush_output() {
  if (user_ != nullptr && receiving_ && receive_paused_) pause_receiving(false);
  if (user_ != nullptr && !send_stalled_) send_all();
}

void LinkSocket::send_all() {
  if (send_ended_) return;
  sending_ = true;
  bool stalled = false;
  for (int round = 0; !stalled; ++round) {
    woken_ = false;
    const auto source = user_->to_send();
    if (user_ == nullptr) return;
    PartList<kMaxSendParts> parts(source);
    if (parts.bytes == 0) break;
    // This link has used up its share of the turn. The socket is writable, so the loop reports it again, after the other links.
    stalled = round == kSendsPerTurn;
    if (stalled) break;
    const auto message = parts.message();
    const auto count = sendmsg(socket(), &message, kSendFlags);
    if (count < 0) {
      if (errno == EINTR) continue;
      stalled = would_block(errno);
      if (stalled) break;
      sending_ = false;
      return fail_after_draining(errno);
    }
    stalled = static_cast<std::size_t>(count) < parts.bytes;
    user_->sent(static_cast<std::size_t>(count));
    if (user_ == nullptr) return;
  }
  sending_ = false;
  send_stalled_ = stalled;
  // wake() was called while to_send() returned nothing, so the user is asked again, after the other links.
  if (!stalled && woken_)
    mark_woken();
  else if (!stalled && finish_requested_)
    end_sending();
  update_interest();
}

void LinkSocket::end_sending() {
  send_ended_ = true;
  // This fails if the connection is broken; receiving reports that.
  ::shutdown(socket(), SHUT_WR);
}

// The peer's last bytes are still in the socket's buffer and may tell why it has closed the connection, so they are read first.
void LinkSocket::fail_after_draining(int error) {
  while (receiving_) {
    int receive_error = 0;
    const auto outcome = receive_once(receive_error);
    if (user_ == nullptr) return;
    if (outcome == Received::none || outcome == Received::ended) break;
  }
  fail(error);
}

void LinkSocket::fail(int error) {
  auto& user = *std::exchange(user_, nullptr);
  close_socket();
  user.link_failed({Errc::peer_lost, "the connection to " + peer_name_ + " broke: " + describe_error(error)});
}

namespace {

class UvLink final : public Link {
 public:
  explicit UvLink(LinkSocket& socket) : socket_(socket) {}
  ~UvLink() override { socket_.abandon(); }

  void start(LinkUser& user) override { socket_.start(user); }
  void wake() override { socket_.wake(); }
  void finish_sending() override { socket_.finish_sending(); }
  void receive_seldom() override { socket_.receive_seldom(); }
  std::string peer_name() const override { return socket_.peer_name(); }
  std::string own_name() const override { return socket_.own_name(); }
  std::optional<SendCounters> send_counters() const override { return socket_.send_counters(); }

 private:
  LinkSocket& socket_;
};

}  // namespace

Result<std::unique_ptr<Link>> open_link(LoopState& loop, int socket) {
  set_stream_options(socket);
  auto* state = new LinkSocket(loop, to_string(to_address(local_address(socket))), to_string(to_address(remote_address(socket))));
  auto link = std::make_unique<UvLink>(*state);
  const int error = state->open(socket);
  if (error == 0) return Result<std::unique_ptr<Link>>(std::move(link));
  const auto peer_name = link->peer_name();
  ::close(socket);
  return Status{Errc::peer_lost, "cannot watch the connection to " + peer_name + ": " + uv_strerror(error)};
}

}  // namespace ringlet::uv
