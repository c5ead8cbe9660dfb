#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/ports/link.hpp"

namespace ringlet::test {

/// A link user that sends what `outgoing` holds, keeps what comes, and counts the calls.
class ByteUser final : public LinkUser {
 public:
  std::vector<std::byte> outgoing;
  std::vector<std::byte> incoming;
  std::vector<std::size_t> pieces;  // sizes that received() was called with
  std::size_t sent_bytes = 0;
  std::size_t pulls = 0;
  std::size_t part_bytes = 1000;
  bool ended = false;
  std::optional<Status> failure;
  std::unique_ptr<Link> link;

  void use(std::unique_ptr<Link> new_link) {
    link = std::move(new_link);
    link->start(*this);
  }
  /// Where the bytes that come are put.
  ConstBytes place() const { return buffer_; }
  void send(std::size_t bytes) {
    for (std::size_t index = 0; index < bytes; ++index)
      outgoing.push_back(static_cast<std::byte>(outgoing.size() * 7 + outgoing.size() / 251));
    link->wake();
  }

  std::span<const ConstBytes> to_send() override {
    ++pulls;
    offered_ = ConstBytes(outgoing).subspan(sent_bytes);
    return {&offered_, offered_.empty() ? 0U : 1U};
  }
  void sent(std::size_t bytes) override { sent_bytes += bytes; }
  std::span<const Bytes> to_receive() override {
    buffer_.resize(2 * part_bytes);
    parts_ = {Bytes(buffer_).first(part_bytes), Bytes(buffer_).last(part_bytes)};
    return parts_;
  }
  void received(std::size_t bytes) override {
    incoming.insert(incoming.end(), buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
    pieces.push_back(bytes);
  }
  void receive_ended() override { ended = true; }
  void link_failed(const Status& status) override { failure = status; }

 private:
  ConstBytes offered_;
  std::vector<std::byte> buffer_;
  std::array<Bytes, 2> parts_;
};

}  // namespace ringlet::test
