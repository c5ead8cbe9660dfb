#pragma once

#include <memory>
#include <vector>

#include "tools/pairing/byte_link.hpp"
#include "tools/pairing/newcomer_session.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::pairing {

/// Takes a newcomer's conversation to a host. Belongs to the loop's thread.
class PairingDialler {
 public:
  /// Dials the addresses of one host in turn until one answers. `loop` and `session` outlive it.
  PairingDialler(UvLoop& loop, std::vector<Address> addresses, NewcomerSession& session);
  ~PairingDialler();
  PairingDialler(const PairingDialler&) = delete;
  PairingDialler& operator=(const PairingDialler&) = delete;

  /// The token is here, or will not come.
  bool settled() const noexcept { return settled_; }
  /// Why no conversation came to an end: nobody answered, the connection ended, or the time was up. Ok where one did.
  const Status& status() const noexcept { return status_; }
  /// Sends what the session has said since, and ends the connection.
  void finish();
  /// The other side has ended the connection, too, or has had its time.
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
