#include "transport/uv/uv_dial.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/uv/uv_link.hpp"

namespace ringlet::uv {
namespace {

constexpr std::size_t kMaxCandidates = 16;
// Longer timeouts are cut to this, so that adding a timeout to the time cannot overflow.
constexpr Duration kLongestTimeout = Duration::seconds(1'000'000'000);

}  // namespace

/// A socket that is being connected, for one address of a dial.
class ConnectSocket final : public SocketWatch {
 public:
  ConnectSocket(LoopState& loop, Dial& dial) : SocketWatch(loop), dial_(dial) {}

  /// Returns 0 if the connection is under way, else an errno.
  int connect(const SocketAddress& address) {
    const int socket = open_stream_socket(address.family());
    if (socket < 0) return errno;
    int error = ::connect(socket, address.get(), address.length) == 0 || errno == EINPROGRESS ? 0 : errno;
    if (error == 0) error = -open(socket);
    if (error != 0)
      ::close(socket);
    else
      set_interest(UV_WRITABLE);
    return error;
  }

 private:
  void on_ready(int, bool) override {
    int error = take_error(socket());
    if (error == 0 && connected_to_itself(socket())) error = ECONNREFUSED;
    dial_.attempt_ended(error, error == 0 ? release_socket() : -1);
  }

  Dial& dial_;
};

Dial* Dial::start(LoopState& loop, const Address& address, Duration timeout, Dialled on_dialled, std::function<void(Dial*)> on_end) {
  return new Dial(loop, address, timeout, std::move(on_dialled), std::move(on_end));
}

Dial::Dial(LoopState& loop, const Address& address, Duration timeout, Dialled on_dialled, std::function<void(Dial*)> on_end)
    : loop_(loop),
      address_(address),
      timeout_(timeout),
      deadline_(loop.now() + std::min(timeout, kLongestTimeout)),
      on_dialled_(std::move(on_dialled)),
      on_end_(std::move(on_end)) {
  // The dial starts from the loop, because it may fail at once, and the callback may not run inside this call.
  set_timer({}, &Dial::look_up);
}

void Dial::set_timer(Duration delay, void (Dial::*member)()) {
  loop_.cancel(timer_);
  timer_ = loop_.after(delay, [this, member] { (this->*member)(); });
}

void Dial::look_up() {
  candidates_ = numeric_addresses(address_);
  if (!candidates_.empty()) return try_next();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  request_.data = this;
  const auto on_found = [](uv_getaddrinfo_t* request, int error, addrinfo* found) {
    auto& self = *static_cast<Dial*>(request->data);
    self.looking_up_ = false;
    if (self.ended_)
      self.free_if_unused();
    else
      self.loop_.dispatch([&] { self.looked_up(error, found); });
    uv_freeaddrinfo(found);
  };
  const int error = uv_getaddrinfo(loop_.uv(), &request_, on_found, address_.host.c_str(), std::to_string(address_.port).c_str(), &hints);
  if (error != 0) return looked_up(error, nullptr);
  looking_up_ = true;
  set_timer(deadline_ - loop_.now(), &Dial::attempt_timed_out);
}

void Dial::looked_up(int error, const addrinfo* found) {
  for (; error == 0 && found != nullptr && candidates_.size() < kMaxCandidates; found = found->ai_next) {
    auto& candidate = candidates_.emplace_back();
    std::memcpy(&candidate.storage, found->ai_addr, found->ai_addrlen);
    candidate.length = found->ai_addrlen;
  }
  if (!candidates_.empty()) return try_next();
  const std::string reason = error == 0 ? "it has no address" : uv_strerror(error);
  finish(Status{Errc::peer_lost, "cannot find the host \"" + address_.host + "\" (to connect to " + to_string(address_) + "): " + reason});
}

void Dial::try_next() {
  const auto& candidate = candidates_[next_candidate_++];
  attempt_ = new ConnectSocket(loop_, *this);
  if (const int error = attempt_->connect(candidate); error != 0) return attempt_ended(error, -1);
  const auto share = (deadline_ - loop_.now()) / static_cast<std::int64_t>(candidates_.size() - next_candidate_ + 1);
  set_timer(share, &Dial::attempt_timed_out);
}

void Dial::attempt_ended(int error, int socket) {
  std::exchange(attempt_, nullptr)->drop();
  refused_ &= error == ECONNREFUSED;
  if (error == 0) return finish(open_link(loop_, socket));
  if (next_candidate_ < candidates_.size()) return try_next();
  const std::string advice = error == ECONNREFUSED ? "; is the other side listening there?" : "";
  finish(Status{Errc::peer_lost, "cannot connect to " + name_of_attempt() + ": " + describe_error(error) + advice});
}

void Dial::attempt_timed_out() {
  refused_ = false;
  if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->drop();
  if (next_candidate_ < candidates_.size()) return try_next();
  const auto what = candidates_.empty()
                        ? "no name service has found the host \"" + address_.host + "\" (to connect to " + to_string(address_) + ")"
                        : name_of_attempt() + " has not answered";
  finish(Status{Errc::timed_out, what + " within " + std::to_string(timeout_.whole_milliseconds()) + " ms"});
}

/// Returns the address as it was given and, if that was a name, the numeric address that was tried last.
std::string Dial::name_of_attempt() const {
  const auto tried = to_address(candidates_[next_candidate_ - 1]);
  return to_string(address_) + (tried.host == address_.host ? "" : " (" + tried.host + ")");
}

void Dial::stop() {
  ended_ = true;
  loop_.cancel(timer_);
  if (attempt_ != nullptr) std::exchange(attempt_, nullptr)->drop();
  if (looking_up_) uv_cancel(reinterpret_cast<uv_req_t*>(&request_));
}

void Dial::finish(Result<std::unique_ptr<Link>> outcome) {
  stop();
  on_end_(this);
  const auto on_dialled = std::move(on_dialled_);
  free_if_unused();
  on_dialled(std::move(outcome));
}

void Dial::abandon() {
  stop();
  free_if_unused();
}

void Dial::free_if_unused() {
  if (ended_ && !looking_up_) delete this;
}

}  // namespace ringlet::uv
