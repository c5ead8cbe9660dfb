#include "tests/web/wslay_client.hpp"

#include <algorithm>
#include <cstring>

#include "tests/native/expect.hpp"

namespace ringlet::test {

namespace {

constexpr std::size_t kMaxMessage = 16 << 10;

template <class Member>
auto& of(void* user_data, Member WslayClient::* member) {
  return static_cast<WslayClient*>(user_data)->*member;
}

/// Sends the bytes that the user was told have been sent, as a kernel does behind a closed socket.
class Farewell final : private LinkUser {
 public:
  Farewell(std::unique_ptr<Link> link, std::vector<std::byte> rest) : rest_(std::move(rest)), link_(std::move(link)) {
    link_->start(*this);
    link_->finish_sending();
  }

 private:
  std::span<const ConstBytes> to_send() override {
    part_ = ConstBytes(rest_).subspan(sent_);
    return {&part_, 1};
  }
  void sent(std::size_t bytes) override { sent_ += bytes; }
  std::span<const Bytes> to_receive() override { return {}; }
  void received(std::size_t) override {}
  void receive_ended() override {}
  void link_failed(const Status&) override {}

  std::vector<std::byte> rest_;
  std::size_t sent_ = 0;
  ConstBytes part_;
  std::unique_ptr<Link> link_;
};

}  // namespace

WslayClient::WslayClient(EventLoop& loop, std::unique_ptr<Link> connection, ConstBytes received_bytes, unsigned seed)
    : loop_(loop),
      peer_name_(connection->peer_name()),
      random_(seed),
      encoded_in_(received_bytes.begin(), received_bytes.end()),
      connection_(std::move(connection)) {
  wslay_frame_callbacks callbacks{};
  callbacks.send_callback = [](const std::uint8_t* data, std::size_t size, int, void* user_data) -> ssize_t {
    const auto bytes = std::as_bytes(std::span(data, size));
    auto& out = of(user_data, &WslayClient::encoded_out_);
    out.insert(out.end(), bytes.begin(), bytes.end());
    return static_cast<ssize_t>(size);
  };
  callbacks.recv_callback = [](std::uint8_t* buffer, std::size_t size, int, void* user_data) -> ssize_t {
    auto& in = of(user_data, &WslayClient::encoded_in_);
    const std::size_t count = std::min(size, in.size());
    if (count == 0) return -1;
    std::memcpy(buffer, in.data(), count);
    in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
    return static_cast<ssize_t>(count);
  };
  callbacks.genmask_callback = [](std::uint8_t* mask, std::size_t size, void* user_data) -> int {
    for (std::size_t i = 0; i < size; ++i) mask[i] = static_cast<std::uint8_t>(of(user_data, &WslayClient::random_)());
    return 0;
  };
  wslay_frame_context_ptr context = nullptr;
  expect(wslay_frame_context_init(&context, &callbacks, this) == 0, "wslay does not start");
  context_.reset(context);
  connection_->start(*this);
}

WslayClient::~WslayClient() {
  loop_.cancel(delivery_);
  if (destroyed_ != nullptr) *destroyed_ = true;
  if (encoded_out_.empty() || connection_ == nullptr) return;
  encoded_out_.erase(encoded_out_.begin(), encoded_out_.begin() + static_cast<std::ptrdiff_t>(out_sent_));
  const auto farewell = std::make_shared<Farewell>(std::move(connection_), std::move(encoded_out_));
  loop_.after(Duration::milliseconds(5), [farewell] {});
}

template <class Call>
bool WslayClient::survives(Call call) {
  bool destroyed = false;
  destroyed_ = &destroyed;
  call(*user_);
  if (!destroyed) destroyed_ = nullptr;
  return !destroyed;
}

void WslayClient::start(LinkUser& user) {
  user_ = &user;
  end_told_ = false;
  deliver_later();
  wake();
}

void WslayClient::wake() {
  woken_ = true;
  if (!decoded_.empty()) deliver_later();
  if (connection_) connection_->wake();
}

void WslayClient::finish_sending() {
  finish_requested_ = true;
  wake();
}

void WslayClient::deliver_later() {
  if (delivery_ != 0) return;
  delivery_ = loop_.after(Duration{}, [this] {
    delivery_ = 0;
    decode();
    if (deliver() && connection_) connection_->wake();
  });
}

std::span<const Bytes> WslayClient::to_receive() {
  if (user_ == nullptr || !decoded_.empty()) return {};
  room_ = buffer_;
  return {&room_, 1};
}

void WslayClient::received(std::size_t bytes) {
  encoded_in_.insert(encoded_in_.end(), buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
  decode();
  deliver();
}

void WslayClient::decode() {
  for (;;) {
    wslay_frame_iocb frame{};
    const auto result = wslay_frame_recv(context_.get(), &frame);
    if (result == WSLAY_ERR_WANT_READ) return;
    expect(result >= 0, "the server broke RFC 6455");
    expect(frame.mask == 0, "the server masked a frame");
    expect(frame.rsv == 0, "the server set reserved bits");
    expect(!ended_ || frame.opcode == WSLAY_CONNECTION_CLOSE, "the server sent more after its end");
    const auto data = std::as_bytes(std::span(frame.data, frame.data_length));
    if (frame.opcode == WSLAY_BINARY_FRAME)
      decoded_.insert(decoded_.end(), data.begin(), data.end());
    else if (frame.opcode == WSLAY_CONNECTION_CLOSE)
      ended_ = true;
    else
      expect(frame.opcode == WSLAY_PONG, "the server sent a frame that is no pong");
  }
}

bool WslayClient::deliver() {
  while (user_ != nullptr && !decoded_.empty()) {
    std::size_t bytes = 0;
    const LinkUser* const asked = user_;
    std::span<const Bytes> parts;
    if (!survives([&](LinkUser& user) { parts = user.to_receive(); })) return false;
    if (user_ != asked) continue;
    for (const Bytes part : parts) {
      const std::size_t count = std::min(part.size(), decoded_.size() - bytes);
      std::copy_n(decoded_.begin() + static_cast<std::ptrdiff_t>(bytes), count, part.begin());
      bytes += count;
    }
    decoded_.erase(decoded_.begin(), decoded_.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (bytes == 0) return true;
    if (!survives([&](LinkUser& user) { user.received(bytes); })) return false;
  }
  if (!ended_ || end_told_ || user_ == nullptr) return true;
  end_told_ = true;
  return survives([](LinkUser& user) { user.receive_ended(); });
}

void WslayClient::receive_ended() {
  ended_ = true;
  deliver();
}

void WslayClient::link_failed(const Status& status) {
  connection_.reset();
  if (user_ != nullptr) std::exchange(user_, nullptr)->link_failed(status);
}

std::span<const ConstBytes> WslayClient::to_send() {
  if (encoded_out_.empty() && !close_queued_ && user_ != nullptr) {
    woken_ = false;
    const LinkUser* const asked = user_;
    std::span<const ConstBytes> parts;
    if (!survives([&](LinkUser& user) { parts = user.to_send(); }) || user_ != asked) return {};
    if (const std::size_t bytes = write_message(parts); bytes > 0) {
      if (!survives([&](LinkUser& user) { user.sent(bytes); })) return {};
    } else if (finish_requested_ && !woken_) {
      const std::array<std::uint8_t, 2> normal{1000 >> 8, 1000 & 0xff};
      write_frame(WSLAY_CONNECTION_CLOSE, true, std::as_bytes(std::span(normal)));
      close_queued_ = true;
    }
  }
  offered_ = ConstBytes(encoded_out_).subspan(out_sent_);
  return {&offered_, 1};
}

std::size_t WslayClient::write_message(std::span<const ConstBytes> parts) {
  std::vector<std::byte> message;
  for (const ConstBytes part : parts) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(part.size(), kMaxMessage - message.size()));
    message.insert(message.end(), part.begin(), part.begin() + count);
  }
  ConstBytes rest = message;
  std::uint8_t opcode = WSLAY_BINARY_FRAME;
  while (!rest.empty()) {
    if (random_() % 8 == 0) write_frame(WSLAY_PING, true, rest.first(std::min<std::size_t>(rest.size(), random_() % 126)));
    const std::size_t count = random_() % 4 == 0 ? random_() % (rest.size() + 1) : rest.size();
    write_frame(opcode, count == rest.size(), rest.first(count));
    rest = rest.subspan(count);
    opcode = WSLAY_CONTINUATION_FRAME;
  }
  return message.size();
}

void WslayClient::write_frame(std::uint8_t opcode, bool fin, ConstBytes payload) {
  wslay_frame_iocb frame{};
  frame.fin = fin ? 1 : 0;
  frame.opcode = opcode;
  frame.mask = 1;
  frame.payload_length = payload.size();
  frame.data = reinterpret_cast<const std::uint8_t*>(payload.data());
  frame.data_length = payload.size();
  expect(wslay_frame_send(context_.get(), &frame) == static_cast<ssize_t>(payload.size()), "wslay does not send");
}

void WslayClient::sent(std::size_t bytes) {
  out_sent_ += bytes;
  if (out_sent_ < encoded_out_.size()) return;
  encoded_out_.clear();
  out_sent_ = 0;
}

}  // namespace ringlet::test
