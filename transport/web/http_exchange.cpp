#include "transport/web/http_exchange.hpp"

#include <algorithm>
#include <utility>

namespace ringlet::web {

namespace {

std::optional<int> refusal_of(RequestParser::State state) {
  switch (state) {
    case RequestParser::State::malformed:
      return 400;
    case RequestParser::State::has_body:
      return 413;
    case RequestParser::State::too_long:
      return 431;
    case RequestParser::State::unknown_version:
      return 505;
    default:
      return std::nullopt;
  }
}

}  // namespace

HttpExchange::HttpExchange(EventLoop& loop, std::unique_ptr<Link> link, const ExchangeLimits& limits, Owner& owner)
    : loop_(loop), link_(std::move(link)), limits_(limits), owner_(owner), buffer_(limits.max_head_bytes) {}

HttpExchange::~HttpExchange() { loop_.cancel(deadline_); }

void HttpExchange::start(ConstBytes first_bytes) {
  link_->start(*this);
  enter(Stage::reading, limits_.request_timeout);
  input_.assign(first_bytes.begin(), first_bytes.end());
  take_input();
}

void HttpExchange::enter(Stage stage, Duration timeout) {
  stage_ = stage;
  loop_.cancel(deadline_);
  deadline_ = loop_.after(timeout, [this] { owner_.over(*this); });
}

std::span<const Bytes> HttpExchange::to_receive() {
  // The next request is read only when this one has been answered.
  if (stage_ == Stage::answering) return {};
  room_ = buffer_;
  return {&room_, 1};
}

void HttpExchange::received(std::size_t bytes) {
  if (stage_ == Stage::closing) return;
  input_.assign(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
  take_input();
}

void HttpExchange::take_input() {
  if (stage_ != Stage::reading || input_.empty()) return;
  if (!parser_) parser_.emplace(limits_.max_head_bytes);
  ConstBytes rest = input_;
  const auto state = parser_->feed(rest);
  input_.erase(input_.begin(), input_.end() - static_cast<std::ptrdiff_t>(rest.size()));
  if (state == RequestParser::State::complete)
    begin_answer(owner_.answer(parser_->request()));
  else if (const auto status = refusal_of(state))
    begin_answer(refuse_request(*status));
}

void HttpExchange::begin_answer(Answer answer) {
  // A WebSocket client must not send a frame before it has received the answer.
  if (answer.upgrade && !input_.empty()) answer = refuse_request(400);
  answer_ = std::move(answer);
  answer_sent_ = 0;
  time_answer();
  link_->wake();
}

void HttpExchange::time_answer() {
  timed_from_ = answer_sent_;
  enter(Stage::answering, limits_.answer_timeout);
}

std::span<const ConstBytes> HttpExchange::to_send() {
  parts_.clear();
  if (stage_ != Stage::answering) return parts_;
  std::size_t skipped = answer_sent_;
  for (const ConstBytes part : {std::as_bytes(std::span(answer_.head)), answer_.body}) {
    const std::size_t left = std::min(skipped, part.size());
    skipped -= left;
    if (left < part.size()) parts_.push_back(part.subspan(left));
  }
  return parts_;
}

void HttpExchange::sent(std::size_t bytes) {
  answer_sent_ += bytes;
  if (answer_sent_ == answer_.head.size() + answer_.body.size()) return end_answer();
  if (answer_sent_ - timed_from_ >= limits_.answer_bytes) time_answer();
}

void HttpExchange::end_answer() {
  parser_.reset();
  if (answer_.upgrade) return owner_.upgraded(*this, std::move(link_));
  if (answer_.keep_alive) {
    enter(Stage::reading, limits_.request_timeout);
    link_->wake();
    return take_input();
  }
  enter(Stage::closing, limits_.close_timeout);
  link_->finish_sending();
  link_->wake();
}

void HttpExchange::receive_ended() { owner_.over(*this); }

void HttpExchange::link_failed(const Status&) { owner_.over(*this); }

}  // namespace ringlet::web
