#include "tests/conformance/suite_user.hpp"

#include <algorithm>

namespace ringlet::conformance {

namespace {

/// This is cheaper than CHECK where the condition holds, which is millions of times.
void expect(bool holds, const char* rule) {
  if (!holds) FAIL_CHECK("the link broke its contract: " << rule);
}

}  // namespace

void SuiteUser::use(std::unique_ptr<Link> new_link) {
  link = std::move(new_link);
  calling_ = true;
  link->start(*this);
  calling_ = false;
}

void SuiteUser::wake() {
  calling_ = true;
  link->wake();
  calling_ = false;
}

void SuiteUser::send(std::size_t more_bytes) {
  bytes_to_send += more_bytes;
  wake();
}

void SuiteUser::finish_sending() {
  calling_ = true;
  link->finish_sending();
  calling_ = false;
}

void SuiteUser::recall() {
  calling_ = true;
  const std::size_t kept = link->recall();
  calling_ = false;
  expect(kept <= offered_, "recall() keeps of what was offered");
  bytes_sent += kept;
  offered_ = poisoned_ = 0;
  std::fill(outgoing_.begin(), outgoing_.end(), std::byte{0xee});
  outgoing_ = {};
}

std::span<const ConstBytes> SuiteUser::to_send() {
  enter(Call::to_send);
  ++to_send_calls;
  send_parts_.clear();
  std::vector<std::size_t> sizes;
  std::size_t left = bytes_to_send - bytes_sent;
  for (std::size_t count = 1 + random_below(5); left > 0 && count > 0; --count) {
    sizes.push_back(std::min(left, 1 + random_below(longest_part)));
    // An empty part among others does not mean the end.
    if (random_below(4) == 0) sizes.insert(sizes.begin(), 0);
    left -= sizes.back();
  }
  offered_ = bytes_to_send - bytes_sent - left;
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(poisoned_));
  poisoned_ = 0;
  while (outgoing_.size() < offered_) outgoing_.push_back(byte_at(pattern_, bytes_sent + outgoing_.size()));
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    send_parts_.push_back(ConstBytes(outgoing_).subspan(begin, size));
    begin += size;
  }
  leave(Call::to_send);
  return send_parts_;
}

void SuiteUser::sent(std::size_t bytes) {
  enter(Call::sent);
  expect(bytes > 0 && bytes <= offered_, "sent() takes of what was offered");
  bytes_sent += bytes;
  offered_ = 0;
  // The parts are no longer borrowed, so they are overwritten: a link that still reads them sends rubbish.
  poisoned_ = bytes;
  std::fill_n(outgoing_.begin(), bytes, std::byte{0xee});
  leave(Call::sent);
}

std::span<const Bytes> SuiteUser::to_receive() {
  enter(Call::to_receive);
  const std::size_t room = receive_limit - bytes_received;
  const std::size_t first = std::min(room, 1 + random_below(longest_part));
  const std::size_t second = receive_parts == 1 ? 0 : std::min(room - first, 1 + random_below(longest_part));
  wanted_ = first + second;
  incoming_.assign(wanted_, std::byte{0});
  receive_parts_ = {Bytes(incoming_).first(first), Bytes(incoming_).last(second)};
  leave(Call::to_receive);
  return {receive_parts_.data(), receive_parts};
}

void SuiteUser::received(std::size_t bytes) {
  enter(Call::received);
  expect(bytes > 0 && bytes <= wanted_, "received() fills what the last to_receive() gave");
  wanted_ = 0;
  std::size_t wrong = 0;
  for (std::size_t index = 0; index < bytes; ++index) wrong += incoming_[index] == byte_at(peer_pattern_, bytes_received + index) ? 0 : 1;
  expect(wrong == 0, "bytes come in order and intact");
  bytes_received += bytes;
  leave(Call::received);
}

void SuiteUser::receive_ended() {
  enter(Call::receive_ended);
  ++receive_ended_calls;
  expect(receive_ended_calls == 1, "receive_ended() comes at most once");
  leave(Call::receive_ended);
}

void SuiteUser::link_failed(const Status& status) {
  enter(Call::link_failed);
  ++link_failed_calls;
  CHECK_FALSE(status.ok());
  CHECK_FALSE(status.text().empty());
  failure = status;
  leave(Call::link_failed);
  // Also where the user has destroyed the link.
  expect(status.text() == failure->text(), "the status lives as long as link_failed()");
}

void SuiteUser::enter(Call call) {
  expect(link != nullptr, "nothing is called after the destruction");
  expect(!calling_, "nothing is called inside a call of the user");
  expect(!being_called_, "calls do not nest");
  expect(link_failed_calls == 0, "nothing is called after link_failed()");
  if (call == Call::to_receive || call == Call::received) expect(receive_ended_calls == 0, "nothing is received after receive_ended()");
  being_called_ = true;
}

void SuiteUser::leave(Call call) {
  if (on_call) on_call(call);
  being_called_ = false;
}

std::byte SuiteUser::byte_at(unsigned pattern, std::size_t index) const {
  const std::uint64_t mixed = (index + pattern * 1'000'003ULL) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::byte>(mixed >> 56);
}

LinkedUsers::LinkedUsers(NetworkPair& pair) {
  auto opened = pair.network(1).listen(pair.any_port(1), [this](std::unique_ptr<Link> link) { acceptor.use(std::move(link)); });
  REQUIRE(opened.ok());
  listener = std::move(opened).value();
  pair.network(0).dial(listener->address(), Duration::seconds(10), [this](Result<std::unique_ptr<Link>> link) {
    REQUIRE(link.ok());
    dialler.use(std::move(link).value());
  });
  REQUIRE(pair.drive([this] { return dialler.link && acceptor.link; }));
}

void settle(NetworkPair& pair) {
  int expired = 0;
  for (const std::size_t side : {0U, 1U}) pair.loop(side).after(Duration::milliseconds(10), [&expired] { ++expired; });
  REQUIRE(pair.drive([&expired] { return expired == 2; }));
}

}  // namespace ringlet::conformance
