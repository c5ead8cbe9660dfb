#pragma once

#include <memory>
#include <vector>

#include "tools/pairing/byte_link.hpp"
#include "tools/pairing/newcomer_session.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::pairing {

/// Connects a newcomer's conversation to a host. Belongs to the loop's thread.
class PairingDialler {
 public:
  /// Dials the addresses of one host in turn until one answers. `loop` and `session` must outlive this object.
  PairingDialler(UvLoop& loop, std::vector<Address> addresses, NewcomerSession& session);
  ~PairingDialler();
  PairingDialler(const PairingDialler&) = delete;
  PairingDialler& operator=(const PairingDialler&) = delete;

  /// Tells whether the token has come, or will not come.
  bool settled() const noexcept { return settled_; }
  /// Tells why no conversation was completed: nobody answered, the connection ended, or the time was up. Ok if one was completed.
  const Status& status() const noexcept { return status_; }
  /// Sends the session's last messages and ends the connection.
  void finish();
  /// Tells whether the other side has ended the connection too, or its time for that is up.
  bool closed() const noexcept { return closed_; }

 private:
  void dial_next();
  void start(std::unique_ptr<Link> link);
  void on_bytes(ConstBytes bytes);
  void fail(Errc code, std::string text);

  UvLoop& loop_;
  UvNetwork network_;
  const std::vector<Address> addresses_;
  NewcomerSession& session_;
  std::size_t next_ = 0;
  std::unique_ptr<ByteLink> link_;
  Status status_;
  TimerId timer_ = 0;
  bool settled_ = false;
  bool closed_ = false;
};

}  // namespace ringlet::pairing
