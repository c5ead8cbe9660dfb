#include "tools/agent/path_probe.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ringlet::agent {

namespace {

constexpr std::uint32_t kSmallOnes = 8;
constexpr std::uint32_t kLargeOnes = 4;
constexpr std::size_t kLargeBytes = 256 * 1024;
constexpr Duration kPatience = Duration::seconds(4);
constexpr DialTimes kDialTimes{Duration::seconds(3), Duration::seconds(3)};

}  // namespace

PathProbe::PathProbe(EventLoop& loop, Network& network, Authenticator& authenticator, const Address& address, ProbeEnds ends,
                     OnDone on_done)
    : loop_(loop),
      network_(network),
      host_(address.host),
      dialler_(loop, network, authenticator),
      ends_(std::move(ends)),
      on_done_(std::move(on_done)) {
  dialler_.dial(address, kDialTimes, {.kind = LinkRequest::Kind::agent},
                [this](Result<std::unique_ptr<Link>> link) { on_dialled(std::move(link)); });
}

PathProbe::~PathProbe() { loop_.cancel(timer_); }

void PathProbe::on_dialled(Result<std::unique_ptr<Link>> link) {
  if (!link.ok()) {
    quality_.status = link.status();
    return end();
  }
  link_ = std::make_unique<job::MessageLink>(loop_, std::move(link).value(), job::kAgentLimits);
  link_->start([this](const job::Message& message) { on_message(message); },
               [this](const Status& status) {
                 quality_.status = status;
                 end();
               });
  link_->send(ends_.identity->question(ends_.group, link_->binding()));
  wait_for_answer();
}

void PathProbe::on_offer(const job::Offer& offer) {
  if (offer.protocol != job::kProtocol)
    quality_.status = {Errc::protocol_error, "its `ringlet` " + offer.version + " speaks version " + std::to_string(offer.protocol) +
                                                 " of the protocol of jobs, this one " + std::to_string(job::kProtocol)};
  else if (const auto key = sender_of(offer, ends_.group, link_->binding()); !key)
    quality_.status = {Errc::protocol_error, "it did not prove who it is"};
  else if (std::string doubt = ends_.find_doubt(offer.name, *key); !doubt.empty())
    quality_.status = {Errc::mismatch, std::move(doubt)};
  else if (!offer.refusal.empty())
    quality_.status = {Errc::mismatch, offer.refusal};
  else
    return ask();
  quality_.not_trusted = quality_.status.code() == Errc::mismatch;
  end();
}

void PathProbe::ask() {
  ++number_;
  asked_at_ = loop_.now();
  if (number_ == kSmallOnes + 1) large_since_ = asked_at_;
  // The answer to the last one is as long as the request.
  const bool large = number_ > kSmallOnes;
  const bool last = number_ == kSmallOnes + kLargeOnes;
  link_->send(job::EchoRequest{number_, std::string(large ? kLargeBytes : 0, '\0'), last ? static_cast<std::uint32_t>(kLargeBytes) : 0});
  wait_for_answer();
}

void PathProbe::wait_for_answer() {
  loop_.cancel(timer_);
  timer_ = loop_.after(kPatience, [this] {
    quality_.stalled = number_ > kSmallOnes;
    quality_.status = {Errc::timed_out, "no answer within 4 s"};
    end();
  });
}

void PathProbe::on_message(const job::Message& message) {
  if (const auto* offer = std::get_if<job::Offer>(&message); offer != nullptr && number_ == 0 && !over_) return on_offer(*offer);
  const auto* echo = std::get_if<job::Echo>(&message);
  if (over_ || quality_.rank_port != 0 || echo == nullptr || echo->number != number_) return;
  const Duration taken = loop_.now() - asked_at_;
  if (number_ <= kSmallOnes && (!quality_.round_trip || taken < *quality_.round_trip)) {
    quality_.round_trip = taken;
    const auto here = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    quality_.clock_ahead = Duration::milliseconds(static_cast<std::int64_t>(echo->unix_ms) - here) + taken / 2;
  }
  if (number_ < kSmallOnes + kLargeOnes) return ask();
  const double seconds = static_cast<double>(std::max<std::int64_t>((loop_.now() - large_since_).nanoseconds, 1)) / 1e9;
  quality_.bytes_per_second = static_cast<double>((kLargeOnes + 1) * kLargeBytes) / seconds;
  if (echo->rank_port == 0) return end();
  try_rank_port(static_cast<std::uint16_t>(echo->rank_port));
}

void PathProbe::try_rank_port(std::uint16_t port) {
  loop_.cancel(timer_);
  quality_.rank_port = port;
  network_.dial({host_, port}, kDialTimes.connect, alive_.wrap([this](const Result<std::unique_ptr<Link>>& link) {
    quality_.rank_port_status = link.status();
    end();
  }));
}

void PathProbe::end() {
  if (std::exchange(over_, true)) return;
  loop_.cancel(timer_);
  // The caller is the dialler or the link, and the callback may destroy this object.
  timer_ = loop_.after(Duration{}, [this] {
    link_.reset();
    const OnDone on_done = on_done_;
    const PathQuality quality = quality_;
    on_done(quality);
  });
}

}  // namespace ringlet::agent
