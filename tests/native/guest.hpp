#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/requests.hpp"
#include "core/rendezvous/guest_entry.hpp"
#include "core/rendezvous/meeting.hpp"
#include "transport/crypto/token_authenticator.hpp"
#include "transport/uv/uv_network.hpp"

namespace ringlet::test {

/// A guest over TCP, or over any other network that can dial. It does what a browser's tab does, but in C++. For one thread.
class NativeGuest {
 public:
  using MakeNetwork = std::function<std::unique_ptr<Network>(UvLoop& loop)>;

  NativeGuest(
      const Address& coordinator, const std::string& token, const std::string& name,
      const MakeNetwork& make_network = [](UvLoop& loop) { return std::make_unique<UvNetwork>(loop); });
  ~NativeGuest();
  NativeGuest(const NativeGuest&) = delete;

  /// Waits until all ranks have met, or returns why they have not. May be called again where the world of an elastic group has ended.
  Status meet();
  /// Of an elastic group: as Group::epoch(), agree() and revoke().
  ///@{
  std::uint32_t epoch() const { return epoch_; }
  Status agree(bool mine);
  void revoke() { world_->revoke(); }
  ///@}
  /// Ends its world, and tells the others that this is why.
  void fail(const Status& why) { world_->fail(why); }
  int rank() const { return world_->options().rank; }
  const WorldOptions& options() const { return world_->options(); }
  /// Runs one operation to its end.
  Status run(Result<CollectiveTask> task);
  Status send(Result<MessageTask> task);
  Status receive(Result<MessageTask> task);
  void close();

 private:
  void drive(const std::function<bool()>& done);
  Status complete(const std::function<void(Completion)>& start);

  UvLoop loop_;
  std::unique_ptr<Network> network_;
  TokenAuthenticator authenticator_;
  const Address coordinator_;
  const std::string name_;
  std::unique_ptr<World> world_;
  std::uint32_t epoch_ = 0;
  std::unique_ptr<Meeting> meeting_;
};

}  // namespace ringlet::test
