#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "core/base/time.hpp"
#include "core/ports/link.hpp"

namespace ringlet::pairing {

/// After its last bytes, a side waits this long for the other to end the connection, so that these bytes are read.
inline constexpr Duration kFarewell = Duration::seconds(2);

/// A link for small messages. Belongs to the loop's thread. It may be destroyed inside its callbacks.
class ByteLink final : private LinkUser {
 public:
  using OnBytes = std::function<void(ConstBytes)>;  // borrowed for the call
  using OnEnd = std::function<void()>;              // the other side has ended or the link broke; at most once

  ByteLink(std::unique_ptr<Link> link, OnBytes on_bytes, OnEnd on_end);
  ByteLink(const ByteLink&) = delete;
  ByteLink& operator=(const ByteLink&) = delete;

  void send(std::string bytes);
  /// Ends sending. No bytes may be sent afterwards.
  void finish();
  std::string peer_name() const { return link_->peer_name(); }

 private:
  std::span<const ConstBytes> to_send() override;
  void sent(std::size_t bytes) override { outgoing_.erase(0, bytes); }
  std::span<const Bytes> to_receive() override;
  void received(std::size_t bytes) override;
  void receive_ended() override { tell_end(); }
  void link_failed(const Status&) override { tell_end(); }
  void tell_end();

  OnBytes on_bytes_;
  OnEnd on_end_;
  std::string outgoing_;
  ConstBytes send_part_;
  std::array<std::byte, 4'096> incoming_{};
  Bytes receive_part_{incoming_};
  std::unique_ptr<Link> link_;
};

}  // namespace ringlet::pairing
