#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/ports/event_loop.hpp"
#include "core/ports/link.hpp"
#include "transport/web/http_answer.hpp"

namespace ringlet::web {

struct ExchangeLimits {
  std::size_t max_head_bytes = 8 << 10;
  /// The time from the start of the connection, or from the end of an answer, to the last byte of the next request's head.
  Duration request_timeout = Duration::seconds(10);
  /// The time within which the peer must have taken the next `answer_bytes` of an answer, or all that is left of it. A count of bytes keeps
  /// a peer that takes one at a time from holding its connection for ever.
  Duration answer_timeout = Duration::seconds(60);
  std::size_t answer_bytes = 64 << 10;
  /// The time within which the peer should close after the last answer. Closing earlier on this side could discard bytes that the peer has
  /// not read.
  Duration close_timeout = Duration::seconds(2);
};

/// One HTTP connection: reads requests and answers them one after the other, until one of them makes it a WebSocket.
class HttpExchange final : private LinkUser {
 public:
  class Owner {
   public:
    virtual Answer answer(const HttpRequest& request) = 0;
    /// Called when the connection has ended. The owner destroys the exchange.
    virtual void over(HttpExchange& exchange) = 0;
    /// Called when the answer that makes the connection a WebSocket has been sent. The owner destroys the exchange.
    virtual void upgraded(HttpExchange& exchange, std::unique_ptr<Link> link) = 0;

   protected:
    ~Owner() = default;
  };

  /// `owner` must outlive the exchange.
  HttpExchange(EventLoop& loop, std::unique_ptr<Link> link, const ExchangeLimits& limits, Owner& owner);
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  /// `first_bytes` are bytes that have already been read from the link.
  void start(ConstBytes first_bytes);

 private:
  enum class Stage { reading, answering, closing };

  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override;
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override;
  void link_failed(const Status& status) override;

  void take_input();
  void begin_answer(Answer answer);
  void time_answer();
  void end_answer();
  void enter(Stage stage, Duration timeout);

  EventLoop& loop_;
  std::unique_ptr<Link> link_;
  const ExchangeLimits limits_;
  Owner& owner_;
  Stage stage_ = Stage::reading;
  TimerId deadline_ = 0;
  std::optional<RequestParser> parser_;
  std::vector<std::byte> input_;  // received and not yet parsed
  std::vector<std::byte> buffer_;
  Bytes room_;
  Answer answer_;
  std::size_t answer_sent_ = 0;
  std::size_t timed_from_ = 0;  // what had been sent of the answer when its time last began
  std::vector<ConstBytes> parts_;
};

}  // namespace ringlet::web
